package web

import (
	"errors"
	"net/http"
	"strings"

	"routemaster/internal/web/server"
)

// recoverPanics makes a panic in a handler a 500 with a report.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(reason) // net/http's own way to end a connection
			}
			s.config.Reporter.Panic(s.log, "a request panicked", reason, requestFields(r)...)
			writeProblem(w, problem{Status: http.StatusInternalServerError, Detail: "an error in the bus; it has been logged"})
		}()
		next.ServeHTTP(w, r)
	})
}

// refuseAmbiguous refuses a request whose framing is ambiguous, and closes its connection. Under TLS,
// where the framing is not parsed, the connection is closed after every chunked request of HTTP/1.1.
func refuseAmbiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if server.Ambiguous(r) {
			w.Header().Set("Connection", "close")
			writeProblem(w, problem{
				Status: http.StatusBadRequest, Detail: "must not have both Transfer-Encoding and Content-Length, nor folded headers",
			})
			return
		}
		if r.TLS != nil && r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// decodePath makes the router go by the decoded path, so that a%3Ab and a:b are the same.
func decodePath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawPath = ""
		next.ServeHTTP(w, r)
	})
}

// strictTransport tells browsers and clients to keep to https for a year (RFC 6797).
const strictTransport = "max-age=31536000"

// forceTLS sends requests that came in the clear to the same URL under https, if the operator wants that. Load
// balancers may ask for /health as they like.
func (s *Server) forceTLS(next http.Handler) http.Handler {
	if !s.config.ForceTLS {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" || strings.HasPrefix(r.URL.Path, "/health/") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Strict-Transport-Security", strictTransport)
		// The first of a list is what the client used; the others are between proxies.
		proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
		switch {
		case r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https"):
			next.ServeHTTP(w, r)
		case r.Host == "":
			writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "use https"})
		default:
			http.Redirect(w, r, "https://"+r.Host+r.URL.RequestURI(), http.StatusPermanentRedirect)
		}
	})
}
