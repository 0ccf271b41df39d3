package rest

import (
	"errors"
	"net/http"
	"strings"
)

// Caller is the client that [Service.Authenticate] found.
func Caller(r *http.Request) Client { return requestInfoOf(r).client }

// Authenticate passes on requests with the credentials of a client or of root.
func (s *Service) Authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, err := s.Auth.Authenticate(r)
		switch {
		case err == nil:
			requestInfoOf(r).client = client
			next.ServeHTTP(w, r)
		case errors.Is(err, ErrRefused) || errors.Is(err, ErrStaleNonce):
			s.challenge(w, r, err)
		case errors.Is(err, ErrGuesses):
			w.Header().Set("Connection", "close") // each guess has to begin with another
			writeProblem(w, r, Problem{Status: http.StatusTooManyRequests, ID: "too_many_wrong_credentials", Detail: "these credentials are wrong, " +
				"and more wrong ones come from this address, or from all, than are answered: send the right ones, which are never held up"})
		default:
			s.Fail(w, r, err)
		}
	})
}

// Hold is for a request whose answer waits for long, or is a stream. The context of the request
// that it returns also ends when the token is removed, within a second; [Service.Fail] then
// responds with 401. Release must be called when the request ends. See [Authenticator.Hold].
func (s *Service) Hold(r *http.Request) (held *http.Request, release func()) {
	ctx, release := s.Auth.Hold(r.Context(), Caller(r))
	return r.WithContext(ctx), release
}

// challenge asks for credentials. Err says why: see [Authenticator.Challenge].
func (s *Service) challenge(w http.ResponseWriter, r *http.Request, err error) {
	s.Auth.Challenge(w.Header(), err)
	id := ""
	if credentials, basic := BasicCredentials(r); basic && strings.HasPrefix(credentials, ":") {
		id = "missing_authentication"
	}
	writeProblem(w, r, Problem{
		Status: http.StatusUnauthorized, ID: id,
		Detail: "send valid credentials, by HTTP Basic or Digest: a client's name and its token as user name and password, or the token as the user name with an empty password",
	})
}

// AllowClients refuses root.
func AllowClients(next http.Handler) http.Handler {
	return allow(next, func(c Client) bool { return !c.Root }, "this is for clients; use a client's token, not the root key")
}

// AllowRoot refuses clients.
func AllowRoot(next http.Handler) http.Handler {
	return allow(next, func(c Client) bool { return c.Root }, "this is for the operator; use the root key")
}

// allow refuses requests of callers that are not allowed, with a detail.
func allow(next http.Handler, allowed func(Client) bool, detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(Caller(r)) {
			writeProblem(w, r, Problem{Status: http.StatusForbidden, Detail: detail})
			return
		}
		next.ServeHTTP(w, r)
	})
}
