package console

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"routemaster/internal/overview"
	"routemaster/internal/web/rest"
)

// root is where the console is mounted.
const root = "/console/"

// Live knows how the bus is, and has been.
type Live interface {
	// Figures are never nil where they are lists, and are there at once, also while Redis is away.
	Figures(ctx context.Context) overview.Figures
	// Tracks returns the recent figures.
	Tracks(ctx context.Context) overview.Tracks
}

// Bodies is the memory for request bodies, within a budget that all of web shares. Read fails when
// the budget or the sender's share is used up. The caller must release the body, for the same
// sender.
type Bodies interface {
	Read(sender string, from io.Reader) ([]byte, error)
	Release(sender string, body []byte)
}

// Config configures a console.
type Config struct {
	// RootKey is the operator's key.
	RootKey string
	// Name and Environment tell buses apart. Version is the program's version.
	Name, Environment, Version string
	// ReadOnly refuses to change anything.
	ReadOnly bool
	// Secure is set if browsers reach the console over TLS only.
	Secure   bool
	Sessions *Store
	// Bodies is the memory for posted forms.
	Bodies Bodies
	// Guesses slow down wrong logins, together with wrong credentials for the API.
	Guesses *rest.Guesses
	// Live may be nil: then there are no figures.
	Live Live
	Log  *slog.Logger
	Now  func() time.Time
}

// server serves the console.
type server struct {
	Config
	api    http.Handler
	views  views
	assets *assets
	nav    []Page
	failed failedLogins
	tails  tails
	onces  onces
	// commons are the parts of pages that are the same for every visitor.
	commons commons
}

// New makes a console, to be mounted at /console/. Its requests to the API go to a handler.
func New(c Config, api http.Handler) http.Handler {
	assets := newAssets()
	all := All()
	c.Guesses = cmp.Or(c.Guesses, rest.NewGuesses())
	s := &server{
		Config: c, api: api, assets: assets, views: parseViews(all, assets),
		tails: tails{open: map[string]int{}},
		onces: onces{all: map[string]*once{}},
	}
	mux := http.NewServeMux()
	for _, p := range all {
		if p.Nav != "" {
			s.nav = append(s.nav, p)
		}
		pattern := root + p.Path
		if p.Path == "" {
			pattern += "{$}"
		}
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { s.get(w, r, p) })
		if p.Submit != nil {
			mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) { s.post(w, r, p) })
		}
	}
	mux.HandleFunc("GET "+root+"login", s.getLogin)
	mux.HandleFunc("POST "+root+"login", s.postLogin)
	mux.HandleFunc("POST "+root+"logout", s.postLogout)
	mux.HandleFunc("GET "+root+"series", s.getSeries)
	mux.HandleFunc("GET "+root+"topics/{topic}/tail", s.getTail)
	mux.HandleFunc("GET "+root+"static/{hash}/{name...}", assets.serve)
	mux.HandleFunc("GET "+root, s.notFound) // other methods are the library's 405
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(s.refuseCrossOrigin))
	return secured(crossOrigin.Handler(withoutEmptyNames(mux)))
}

// The sizes of forms in bytes: maxLogin before the sender is known.
const (
	maxLogin = 4 << 10
	maxForm  = 1 << 20
)

// policy lets pages load the console's own files, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secured adds the headers that have browsers keep the pages apart from others. Only forms have a
// body: reading one of another request would take memory.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "same-origin") // no-referrer would have forms sent with Origin: null
		h.Set("X-Robots-Tag", "noindex")
		h.Set("Cache-Control", "no-store")
		if r.Method != http.MethodPost {
			r.Body = http.NoBody
		}
		next.ServeHTTP(w, r)
	})
}
