package web

import (
	"net/http"
	"strings"

	"routemaster/internal/bus"
)

// client is who sent a request.
type client struct {
	name bus.ClientName
	// token is empty for root.
	token bus.Token
	// root is set for who has the root key, whatever the names in Redis say.
	root bool
}

// caller is the client that [Server.authenticate] found.
func caller(r *http.Request) client { return exchangeOf(r).client }

// authenticate lets a request pass with the credentials of a client or of root.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, ok, stale, err := s.identify(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case !ok:
			if !stale && r.Header.Get("Authorization") != "" {
				s.refusedLog.add(r)
			}
			s.challenge(w, stale)
		default:
			exchangeOf(r).client = found
			next.ServeHTTP(w, r)
		}
	})
}

// identify returns the client that a request's credentials name, in either scheme.
func (s *Server) identify(r *http.Request) (found client, ok, stale bool, err error) {
	scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(scheme) {
	case "digest":
		return s.digest(r, credentials)
	case "basic":
		found, ok, err = s.basic(r)
		return found, ok, false, err
	}
	return client{}, false, false, nil
}

// basic returns the client that a request's Basic credentials name: the user name is a token or the root
// key, the password does not matter. RFC 7617 ends the user name at the first colon, but a token may have
// colons: so the longest that is known counts.
func (s *Server) basic(r *http.Request) (found client, ok bool, err error) {
	user, password, ok := r.BasicAuth()
	if !ok {
		return client{}, false, nil
	}
	return s.directory.find(r.Context(), userNames(user+":"+password, len(s.config.RootKey)))
}

// userNames are the parts of Basic credentials that may be the user name, the longest first.
func userNames(credentials string, rootKeyLen int) (names []string) {
	longest := max(bus.MaxTokenLen, rootKeyLen)
	for end := min(len(credentials)-1, longest); end >= 0; end-- {
		if credentials[end] == ':' {
			names = append(names, credentials[:end])
		}
	}
	return names
}

// challenge asks for credentials, in either scheme (RFC 7616, RFC 7617).
func (s *Server) challenge(w http.ResponseWriter, stale bool) {
	for _, header := range s.digester.challenges(stale) {
		w.Header().Add("WWW-Authenticate", header)
	}
	w.Header().Add("WWW-Authenticate", `Basic realm="`+realm+`", charset="UTF-8"`)
	writeProblem(w, problem{
		Status: http.StatusUnauthorized,
		Detail: "send valid credentials: a token as the user name of HTTP Basic authentication, or a client's name and its token as the user name and password of HTTP Digest",
	})
}

func (s *Server) allowClients(next http.Handler) http.Handler {
	return allow(next, func(c client) bool { return !c.root }, "this is for clients; use a client's token, not the root key")
}

func (s *Server) allowRoot(next http.Handler) http.Handler {
	return allow(next, func(c client) bool { return c.root }, "this is for the operator; use the root key")
}

func allow(next http.Handler, allowed func(client) bool, otherwise string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(caller(r)) {
			writeProblem(w, problem{Status: http.StatusForbidden, Detail: otherwise})
			return
		}
		next.ServeHTTP(w, r)
	})
}
