//go:build !race

package browser_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/web/webtest"
)

func TestALinkLogsInByItsFragment(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Calm()))
	var made struct{ URL string }
	require.NoError(t, json.Unmarshal([]byte(d.Do(webtest.Alice, "POST", "/console_logins", "").Body), &made))
	link := strings.TrimSuffix(d.URL, "console/") + made.URL
	_, code, _ := strings.Cut(made.URL, "#")

	b := open(t, d)
	b.expect("401 (Unauthorized)")
	for _, shown := range []struct{ at, text string }{
		{".notice.done", "The link has logged you in as alice."}, {"#problem", "this link is good once"},
	} {
		call(b, page.Navigate, page.NavigateParams{URL: link}) // a script goes on to another page
		b.run(chromedp.WaitVisible(chromedp.CSS(shown.at)))
		assert.Contains(t, b.text(shown.at), shown.text)
		assert.NotContains(t, ask[string](b, "location.href"), code)
		for _, path := range b.requested() {
			assert.NotContains(t, path, code)
		}
	}
}
