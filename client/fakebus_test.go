package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// fakeBus responds as a test wants, and keeps the requests.
type fakeBus struct {
	*httptest.Server
	// respond responds to request number n, from 0.
	respond func(n int, w http.ResponseWriter, body string)

	mu       sync.Mutex
	requests []sent
}

// sent is a request that arrived.
type sent struct {
	method, path, key, keyTTL, body, user, agent string
	at                                           time.Time
}

func newFakeBus(t testing.TB, respond func(n int, w http.ResponseWriter, body string)) *fakeBus {
	b := &fakeBus{respond: respond}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *fakeBus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, _, _ := r.BasicAuth()
	b.mu.Lock()
	n := len(b.requests)
	b.requests = append(b.requests, sent{r.Method, r.URL.EscapedPath(), r.Header.Get("Idempotency-Key"), r.Header.Get("Idempotency-Expires-In"), string(body), user, r.UserAgent(), time.Now()})
	b.mu.Unlock()
	b.respond(n, w, string(body))
}

func (b *fakeBus) all() []sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sent{}, b.requests...)
}

// problem responds as a bus that refuses a request.
func problem(w http.ResponseWriter, status int, pointer, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail, "pointer": pointer})
}

// breakConnection ends a connection without a response.
func breakConnection() { panic(http.ErrAbortHandler) }
