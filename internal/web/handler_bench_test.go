package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
	"routemaster/internal/web"
)

// BenchmarkHandler measures a request through the server without the network and net/http. The
// health request shows the cost of the middleware, since its handler does almost nothing.
func BenchmarkHandler(b *testing.B) {
	for _, c := range []struct{ name, method, path, body string }{
		{"health", "GET", "/health", ""},
		{"publish", "POST", "/topics/widgets", `{"type":"update","url":"https://x.example/1","data":{"stock":3}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := newAPI(b, rdbtest.Real(b))
			log := slog.New(slog.NewTextHandler(io.Discard, nil)) // at INFO, as in production
			handler := web.New(web.Config{RootKey: rootKey, NonceTTL: time.Minute, MaxEventData: 64}, a.Bus, ingest.New(a.Bus, ingest.Options{}),
				telemetry.NewRegistry().Handler(), log, time.Now).Handler()
			request := httptest.NewRequestWithContext(b.Context(), c.method, c.path, nil)
			request.SetBasicAuth(alice, "")
			body := strings.NewReader(c.body)
			request.Body = io.NopCloser(body)
			w := &statusWriter{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(c.body)
				r := *request
				handler.ServeHTTP(w, &r)
				if w.status >= 300 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// statusWriter keeps nothing of a response but its status.
type statusWriter struct {
	header http.Header
	status int
}

func (w *statusWriter) Header() http.Header         { return w.header }
func (w *statusWriter) WriteHeader(status int)      { w.status = status }
func (w *statusWriter) Write(b []byte) (int, error) { return len(b), nil }
