package web_test

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry/metrics"
	"routemaster/internal/web"
)

// BenchmarkHandler measures a request through all of the server but the network. The health request
// shows what the middleware costs, since its handler does almost nothing.
func BenchmarkHandler(b *testing.B) {
	for _, c := range []struct{ name, method, path, body string }{
		{"health", "GET", "/health", ""},
		{"publish", "POST", "/topics/widgets", `{"type":"update","url":"https://x.example/1","data":{"stock":3}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := newAPI(b, rdbtest.Real(b))
			log := slog.New(slog.NewTextHandler(io.Discard, nil)) // at INFO, as in production
			handler := web.New(web.Config{RootKey: rootKey, NonceTTL: time.Minute, MaxEventData: 64}, a.Store, a.Queue, ingest.New(a.Store, ingest.Options{}),
				metrics.NewRegistry().Handler(), log, time.Now).Handler()
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), c.method, c.path, strings.NewReader(c.body))
				r.SetBasicAuth(alice, "")
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				require.Less(b, w.Code, 300)
			}
		})
	}
}
