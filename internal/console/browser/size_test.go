//go:build !race

package browser_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	b := open(t, newDesk(t, consoletest.Trouble()))
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
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.desk.url+path, http.NoBody)
	require.NoError(b.t, err)
	r.AddCookie(b.cookie)
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(b.t, err)
	defer answer.Body.Close()
	require.Equal(b.t, http.StatusOK, answer.StatusCode, path)
	var text bytes.Buffer
	squeezed, err := gzip.NewWriterLevel(&text, 5) // as web has it
	require.NoError(b.t, err)
	_, err = io.Copy(squeezed, answer.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, squeezed.Close())
	return text.Len()
}

func TestPagesWorkWithoutScripts(t *testing.T) {
	d := newDesk(t, consoletest.Trouble())
	d.furnish()
	b := open(t, d)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit("login?next=subscribers")
	ctx, cancel := b.step()
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.SendKeys(chromedp.ID("secret"), webtest.RootKey+"\r"))
	require.NoError(t, err)
	assert.Equal(t, 31, ask[int](b, `document.querySelectorAll("#list tbody tr").length`))
	b.visit("")
	assert.Positive(t, ask[int](b, `document.querySelectorAll("figure table tbody tr").length`), "charts have their figures as a table")
}
