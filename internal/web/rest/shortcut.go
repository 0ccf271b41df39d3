package rest

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// shortcut is a router that leads to one of its routes by itself.
type shortcut struct {
	chi.Router
	method, prefix, pattern string
	handler                 http.Handler
}

// NewShortcut returns a router that finds its route for one method and prefix, with one parameter
// after the prefix, by itself, and runs the route's handler with all of its middleware. It is for
// publishes: the router takes longer to find their route than it takes to authenticate them. The
// handler gets no parameters. It panics if there is no such route.
func NewShortcut(router chi.Router, method, prefix, parameter string) http.Handler {
	s := &shortcut{Router: router, method: method, prefix: prefix, pattern: prefix + parameter}
	_ = chi.Walk(router, func(of, route string, handler http.Handler, outer ...func(http.Handler) http.Handler) error {
		if of == method && route == s.pattern {
			s.handler = chi.Chain(outer...).Handler(handler)
		}
		return nil
	})
	if s.handler == nil {
		panic("no route " + method + " " + s.pattern)
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *shortcut) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parameter, found := strings.CutPrefix(r.URL.Path, s.prefix)
	if r.Method != s.method || !found || parameter == "" || strings.Contains(parameter, "/") {
		s.Router.ServeHTTP(w, r)
		return
	}
	r.Pattern = s.pattern
	s.handler.ServeHTTP(w, r)
}
