package rest

import (
	"errors"
	"net/http"
	"strings"
)

// RecoverPanics reports a panic in a handler, and responds with 500.
func (s *Service) RecoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(reason) // how handlers abort a connection
			}
			s.Reporter.Panic(s.Log, "request panicked", reason, requestFields(r)...)
			writeProblem(w, r, internalError)
		}()
		next.ServeHTTP(w, r)
	})
}

// RefuseAmbiguous refuses a request whose framing is ambiguous, and closes its connection.
func RefuseAmbiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Ambiguous(r) {
			w.Header().Set("Connection", "close")
			writeProblem(w, r, Problem{
				Status: http.StatusBadRequest, Detail: "must not have both Transfer-Encoding and Content-Length, nor folded headers",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// crossOrigin recognizes requests that a browser sends for a page of another site.
var crossOrigin = http.NewCrossOriginProtection()

// RefuseCrossOrigin refuses changes that a page of another site has a browser make: it may have
// credentials of the API, typed into its prompt. Clients that are no browsers do not send the
// headers that it goes by.
func RefuseCrossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if crossOrigin.Check(r) != nil {
			writeProblem(w, r, Problem{
				Status: http.StatusForbidden, ID: "cross_origin", Detail: "a page of another site must not change anything here with a browser's credentials",
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// RefuseSlashes refuses requests for paths with a prefix that contain a percent-encoded slash:
// decoding the path would split the name with the slash into two.
func RefuseSlashes(prefix string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") && strings.HasPrefix(r.URL.Path, prefix) {
			writeProblem(w, r, Problem{Status: http.StatusBadRequest, Detail: "a name in the path must not have a slash"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// DecodePath makes the router match the decoded path, so that a%3Ab and a:b are the same.
func DecodePath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawPath = ""
		next.ServeHTTP(w, r)
	})
}

// strictTransport makes browsers and clients use only https for a year. It must not be sent in the
// clear (RFC 6797, section 7.2).
const strictTransport = "max-age=31536000"

// ForceTLS redirects requests that came in the clear to the same URL under https. Load balancers
// may request /health without TLS. Clients of jobs expect a refusal instead, if it is a proxy that
// says so.
func ForceTLS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" || strings.HasPrefix(r.URL.Path, "/health/") {
			next.ServeHTTP(w, r)
			return
		}
		// The first element of a list is the client's protocol, the others are between proxies.
		proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
		proto = strings.ToLower(strings.TrimSpace(proto))
		switch {
		case r.TLS != nil || proto == "https":
			w.Header().Set("Strict-Transport-Security", strictTransport)
			next.ServeHTTP(w, r)
		case proto == "http" && isJobPath(r.URL.Path):
			writeProblem(w, r, Problem{Status: http.StatusForbidden, ID: "insecure_request", Detail: "use https"})
		case r.Host == "":
			writeProblem(w, r, Problem{Status: http.StatusBadRequest, Detail: "use https"})
		default:
			http.Redirect(w, r, "https://"+r.Host+r.URL.RequestURI(), http.StatusPermanentRedirect)
		}
	})
}

// isJobPath reports whether a path is one of the API of jobs.
func isJobPath(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v2/")
}
