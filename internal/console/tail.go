package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// sessionCheck is the interval at which a tail checks that its watcher's session has not ended.
var sessionCheck = 15 * time.Second

// maxTails is how many live tails a session may have at once. A browser has six connections to a
// host, and its other tabs need some.
const maxTails = 4

// tails counts the live tails of each session, by its cookie.
type tails struct {
	mu   sync.Mutex
	open map[string]int
}

// begin notes one more, unless there are too many.
func (t *tails) begin(cookie string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[cookie] >= maxTails {
		return false
	}
	t.open[cookie]++
	return true
}

func (t *tails) end(cookie string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[cookie]--; t.open[cookie] == 0 {
		delete(t.open, cookie)
	}
}

// getTail forwards the live tail of a topic from the API as it arrives: the API calls of pages keep
// whole answers. The API ends it when the token is removed.
func (s *server) getTail(w http.ResponseWriter, r *http.Request) {
	cookie, err := r.Cookie(s.cookieName("routemaster"))
	var known Session
	if err == nil {
		known, err = s.Sessions.Find(r.Context(), cookie.Value)
	}
	switch {
	case errors.Is(err, http.ErrNoCookie), errors.Is(err, ErrNone):
		w.Header().Set("WWW-Authenticate", "Cookie")
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	case err != nil:
		problem := s.problemOf(err, shownPage{RequestID: w.Header().Get(requestID)})
		http.Error(w, problem.Detail, problem.Status)
		return
	}
	if !s.tails.begin(cookie.Value) {
		http.Error(w, "this login has its live tails open already; stop one", http.StatusTooManyRequests)
		return
	}
	defer s.tails.end(cookie.Value)
	ctx, cancel := context.WithCancel(r.Context())
	var checks sync.WaitGroup
	checks.Go(func() { s.cancelAtEnd(ctx, cookie.Value, cancel) })
	s.api.ServeHTTP(unprompted{w}, s.tailOf(ctx, r, known, w.Header().Get(requestID)))
	cancel()
	checks.Wait()
}

// tailOf is the request for the tail to the API, in the name of a session.
func (s *server) tailOf(ctx context.Context, r *http.Request, known Session, id string) *http.Request {
	topic := r.PathValue("topic")
	in := r.Clone(ctx)
	in.URL = &url.URL{Path: "/topics/" + topic + "/tail", RawPath: "/topics/" + url.PathEscape(topic) + "/tail"}
	in.RequestURI, in.Header = in.URL.RequestURI(), http.Header{requestID: {id}}
	in.SetBasicAuth(s.secret(known), "")
	return in
}

// cancelAtEnd cancels when the session of a cookie has ended. It returns when the context is done.
func (s *server) cancelAtEnd(ctx context.Context, cookie string, cancel context.CancelFunc) {
	check := time.NewTicker(sessionCheck)
	defer check.Stop()
	for {
		select {
		case <-check.C:
			if _, err := s.Sessions.Find(ctx, cookie); errors.Is(err, ErrNone) {
				cancel()
			}
		case <-ctx.Done():
			return
		}
	}
}

// unprompted is a response of the API that has no browser ask for a password.
type unprompted struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (w unprompted) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Cookie")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] find the flusher and the deadlines.
func (w unprompted) Unwrap() http.ResponseWriter { return w.ResponseWriter }
