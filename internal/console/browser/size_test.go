//go:build !race

package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/web/webtest"
)

// The budgets of the overview, in bytes that were compressed and in requests.
const (
	maxBytes       = 60_000
	maxBeforePaint = 14_000 // the page and its style sheet
	maxRequests    = 10
)

func TestTheOverviewIsSmall(t *testing.T) {
	b := open(t, serve(t, consoletest.Showing(consoletest.Trouble())))
	b.logIn(webtest.RootKey)
	b.visit("")
	b.await(`document.querySelectorAll("canvas").length > 2`)
	paths := b.requested()
	assert.LessOrEqual(t, len(paths), maxRequests, "%q", paths)
	all, before := 0, 0
	for _, path := range paths {
		size := b.compressed(path)
		all += size
		if path == "" || strings.HasSuffix(path, "/console.css") {
			before += size
		}
	}
	assert.LessOrEqual(t, all, maxBytes)
	assert.LessOrEqual(t, before, maxBeforePaint)
	t.Logf("%d bytes in %d requests, %d bytes before the first paint", all, len(paths), before)
	b.visit("help")
	b.visit("")
	b.await(`document.querySelectorAll("canvas").length > 2`)
	sent := `performance.getEntriesByType("resource").filter((one) => one.name.includes("/static/") && one.transferSize > 0).map((one) => one.name)`
	assert.Empty(t, ask[[]string](b, sent), "the browser has kept them")
}

// compressed is how many bytes an answer has.
func (b *tab) compressed(path string) int {
	b.t.Helper()
	answer := b.session.Send(path, nil, "Accept-Encoding", "gzip")
	require.Equal(b.t, http.StatusOK, answer.Code, path)
	return answer.Body.Len()
}
