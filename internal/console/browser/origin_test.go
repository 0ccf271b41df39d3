//go:build !race

package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/web/webtest"
)

// TestFormsOfOtherSitesAreRefused has the console at an address of plain http that is not loopback:
// there browsers send no Sec-Fetch-Site. With a form of a sibling they send the session's cookie.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	d := serve(t)
	d.URL = strings.Replace(d.URL, "127.0.0.1", "console.test", 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Win</title><link rel="icon" href="data:,"><form method="post" action="%stokens/new">
			<input name="name" value="mallory"><input name="nonce" value="%s"><button>Win</button></form>`, d.URL, strings.Repeat("n", 26))
	}))
	t.Cleanup(elsewhere.Close)
	b := open(t, d)
	b.expect("403 (Forbidden)", "Cross-Origin-Opener-Policy header has been ignored", "/favicon.ico")
	b.visit("login")
	b.fill("#secret", webtest.RootKey)
	require.Equal(t, http.StatusOK, b.click("form button"))
	for _, host := range []string{"sibling.console.test", "elsewhere.test"} {
		address := strings.Replace(elsewhere.URL, "127.0.0.1", host, 1)
		b.expect("another origin: "+address, "another origin: data:")
		b.goTo(address)
		assert.Equal(t, http.StatusForbidden, b.click("button"), host)
		assert.Contains(t, b.text("body"), "another site")
	}
	assert.NotContains(t, d.Do(webtest.RootKey, "GET", "/api_tokens", "").Body, "mallory")

	b.visit("tokens/new")
	b.fill("main input[name=name]", "billing")
	require.Equal(t, http.StatusOK, b.click("main form button"))
	assert.Contains(t, b.text("main"), "billing--", "its own form")
	require.Equal(t, http.StatusOK, b.visit("tokens"))
	assert.NotContains(t, b.text("body"), "billing--", "it was shown once")
}

// TestTheConsoleStandsBehindAProxyThatStripsAPath fails if the browser asks for anything else.
func TestTheConsoleStandsBehindAProxyThatStripsAPath(t *testing.T) {
	d := serve(t, consoletest.Showing(consoletest.Trouble()))
	d.Fill()
	to, err := url.Parse(strings.TrimSuffix(d.URL, "/console/"))
	require.NoError(t, err)
	const prefix = "/some/prefix"
	proxy := httptest.NewServer(http.StripPrefix(prefix, &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		FlushInterval: -1,
	}))
	t.Cleanup(proxy.Close)
	d.URL = proxy.URL + prefix + "/console/"

	b := open(t, d)
	b.clockwork()
	b.expect("401 (Unauthorized)")
	assert.Equal(t, http.StatusUnauthorized, b.visit("subscribers?q=s"))
	b.fill("#secret", webtest.RootKey)
	require.Equal(t, http.StatusOK, b.click("form button"))
	assert.Equal(t, d.URL+"subscribers?q=s", ask[string](b, "location.href"))
	b.await("timers.size > 0")
	b.refresh()
	require.Equal(t, http.StatusOK, b.click("#subscriber-shop a"))
	require.Equal(t, http.StatusOK, b.click(`main a[href*="/pause"]`))
	require.Equal(t, http.StatusOK, b.click("main form button"))
	assert.Contains(t, b.text(".notice.done"), "Paused shop")
	b.visit("topics/widgets")
	b.tail("Live")
	b.do(`document.querySelector("details.menu").open = true`)
	require.Equal(t, http.StatusOK, b.click(`form[action$="logout"] button`))
	assert.Equal(t, d.URL+"login", ask[string](b, "location.href"))
}
