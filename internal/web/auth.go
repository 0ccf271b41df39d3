package web

import (
	"errors"
	"net/http"

	"routemaster/internal/web/auth"
)

// caller is the client that [API.authenticate] found.
func caller(r *http.Request) auth.Client { return requestInfoOf(r).client }

// authenticate passes on requests with the credentials of a client or of root.
func (a *API) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, err := a.auth.Authenticate(r)
		switch {
		case err == nil:
			requestInfoOf(r).client = client
			next.ServeHTTP(w, r)
		case errors.Is(err, auth.ErrRefused) || errors.Is(err, auth.ErrStaleNonce):
			a.challenge(w, err)
		default:
			a.fail(w, r, err)
		}
	})
}

// challenge asks for credentials. Err says why: see [auth.Authenticator.Challenge].
func (a *API) challenge(w http.ResponseWriter, err error) {
	a.auth.Challenge(w.Header(), err)
	writeProblem(w, problem{
		Status: http.StatusUnauthorized,
		Detail: "send valid credentials: a token as the user name of HTTP Basic authentication, or a client's name and its token as the user name and password of HTTP Digest",
	})
}

func (a *API) allowClients(next http.Handler) http.Handler {
	return allow(next, func(c auth.Client) bool { return !c.Root }, "this is for clients; use a client's token, not the root key")
}

func (a *API) allowRoot(next http.Handler) http.Handler {
	return allow(next, func(c auth.Client) bool { return c.Root }, "this is for the operator; use the root key")
}

// allow refuses requests of callers that are not allowed, with a detail.
func allow(next http.Handler, allowed func(auth.Client) bool, detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(caller(r)) {
			writeProblem(w, problem{Status: http.StatusForbidden, Detail: detail})
			return
		}
		next.ServeHTTP(w, r)
	})
}
