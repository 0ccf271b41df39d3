package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// BenchmarkPage makes pages of a bus with 1,000 subscribers and 500 topics, with all that a request
// for one costs web but the network: the session, the figures, the template, compression.
func BenchmarkPage(b *testing.B) {
	live := consoletest.NewLive(consoletest.Many(1000))
	d := consoletest.New(b, rdbtest.Real(b), func(c *console.Config) { c.Live = live })
	d.RequireDone(webtest.Alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
	cookies := d.As(webtest.Alice).Cookies
	for _, name := range []string{
		"overview", "subscribers", "subscribers?sort=-queued", "topics", "subscribers/alice", "help",
		"refresh topics", "refresh subscribers/alice",
	} {
		b.Run(name, func(b *testing.B) {
			path, isRefresh := strings.CutPrefix(name, "refresh ")
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/console/"+strings.TrimPrefix(path, "overview"), nil)
			r.Header.Set("Accept-Encoding", "gzip")
			if isRefresh {
				r.Header.Set("X-Refresh", "1")
			}
			for _, cookie := range cookies {
				r.AddCookie(cookie)
			}
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				d.Handler.ServeHTTP(w, r)
				require.Equal(b, http.StatusOK, w.Code)
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
