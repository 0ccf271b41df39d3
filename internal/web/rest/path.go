package rest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
)

// TopicParam returns the topic in a request's path. The name may be invalid: the Ruby original
// accepted others, and these can still be deleted.
func TopicParam(r *http.Request) bus.TopicName { return bus.TopicName(chi.URLParam(r, "topic")) }

// CleanPath drops empty and "." segments from the path of a request: clients that join a bus
// address which ends with a slash send //topics/widgets. It does not redirect, since a client need
// not follow. A slash at the end stays, and so does "..": no client joins texts to that. Paths
// below the prefix stay as they are: pages have relative links, so that a browser has to be
// redirected.
func CleanPath(pages string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path := r.URL.EscapedPath()
			if !strings.HasPrefix(path, pages) && (strings.Contains(path, "//") || strings.Contains(path, "/.")) {
				path = withoutEmptySegments(path)
				// It was escaped correctly before, so that it can be decoded.
				r.URL.Path, _ = url.PathUnescape(path)
				r.URL.RawPath = path
			}
			next.ServeHTTP(w, r)
		})
	}
}

// withoutEmptySegments works on an escaped path: a name that is sent as %2E is not a segment ".".
func withoutEmptySegments(path string) string {
	segments := strings.Split(path, "/")
	kept, last := []string{""}, len(segments)-1
	for i, segment := range segments {
		switch {
		case segment != "" && segment != ".":
			kept = append(kept, segment)
		case i == last:
			kept = append(kept, "")
		}
	}
	return strings.Join(kept, "/")
}
