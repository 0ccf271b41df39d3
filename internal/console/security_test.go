package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
	"routemaster/internal/web/webtest"
)

func TestPagesMayLoadNothingOfOthers(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	page := root.Send("", nil)
	for _, w := range []*httptest.ResponseRecorder{page, d.Browser().Send("", nil), root.Send("none/such", nil)} {
		h := w.Header()
		assert.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "+
			"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'", h.Get("Content-Security-Policy"))
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Robots-Tag": "noindex",
		} {
			assert.Equal(t, []string{value}, h.Values(name), name)
		}
	}
	files := regexp.MustCompile(`static/[0-9a-f]{8}/[^"]+`).FindAllString(page.Body.String(), -1)
	assert.NotEmpty(t, files)
	for _, file := range files {
		w := root.Send(file, nil, "Accept-Encoding", "gzip", "Range", "bytes=0-5")
		assert.Equal(t, http.StatusOK, w.Code, file)
		assert.Equal(t, "public, max-age=31536000, immutable", w.Header().Get("Cache-Control"))
		changed := strings.Replace(file, "static/", "static/x", 1)
		assert.Equal(t, http.StatusNotFound, root.Send(changed, nil).Code, "another version of it")
	}
}

// TestOtherSitesChangeNothing sends requests as a browser does for pages of other sites.
func TestOtherSitesChangeNothing(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	for _, c := range []struct {
		name    string
		headers []string
		refused bool
	}{
		{"a browser, cross-site", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"a browser, from a sibling", []string{"Sec-Fetch-Site", "same-site"}, true},
		{"over plain http, forged origin", []string{"Origin", "http://evil.example"}, true},
		{"over plain http, hidden origin", []string{"Origin", "null"}, true},
		{"a browser, its own form", []string{"Sec-Fetch-Site", "same-origin"}, false},
		{"over plain http, its own form", []string{"Origin", "http://example.com"}, false},
		{"no browser", nil, false},
	} {
		status := root.Send("display", url.Values{"theme": {"dark"}}, c.headers...).Code
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/topics/x", strings.NewReader(webtest.EventText(1)))
		r.SetBasicAuth(webtest.Alice, "")
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		published := httptest.NewRecorder()
		d.Handler.ServeHTTP(published, r)
		if c.refused {
			assert.Equal(t, http.StatusForbidden, status, c.name)
			assert.Equal(t, http.StatusForbidden, published.Code, c.name)
			assert.Contains(t, published.Body.String(), `"id":"cross_origin"`)
			continue
		}
		assert.Equal(t, http.StatusSeeOther, status, c.name)
		assert.Equal(t, http.StatusOK, published.Code, c.name)
	}
	got := root.Send("help", nil, "Sec-Fetch-Site", "cross-site")
	assert.Equal(t, http.StatusOK, got.Code, "a link from elsewhere arrives logged in")
}

// TestWhoOnlyLooksChangesNothing posts every form that calls the API.
func TestWhoOnlyLooksChangesNothing(t *testing.T) {
	redis := rdbtest.Embedded(t)
	readOnly := consoletest.New(t, redis, func(c *console.Config) { c.ReadOnly = true })
	d := consoletest.Full(t, redis)
	before := rdbtest.Dump(t, redis.Raw)
	for name, b := range map[string]*consoletest.Browser{
		"look only": d.As(webtest.RootKey, "look_only", "1"), "read-only": readOnly.As(webtest.RootKey),
	} {
		for _, p := range console.All() {
			if p.Submit == nil {
				continue
			}
			status := b.Send(d.Path(p), url.Values{"name": {"shop"}}).Code
			if !p.Personal {
				assert.Equal(t, http.StatusForbidden, status, "%s: /%s", name, p.Path)
			}
		}
		assert.Contains(t, b.Send("", nil).Body.String(), "look only")
	}
	after := rdbtest.Dump(t, redis.Raw)
	for key := range after {
		if strings.Contains(key, "console:") {
			delete(after, key)
		}
	}
	assert.Equal(t, before, after)
}

// TestEveryFormCallsTheAPI checks that the bus documents each route that a page's form calls.
func TestEveryFormCallsTheAPI(t *testing.T) {
	var document struct {
		Paths map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal(web.OpenAPI(), &document))
	for _, p := range console.All() {
		if p.Calls == "" {
			continue
		}
		assert.NotNil(t, p.Submit, p.Path)
		method, path, _ := strings.Cut(p.Calls, " ")
		assert.Contains(t, document.Paths[path], strings.ToLower(method), "/%s calls %s", p.Path, p.Calls)
	}
}

func TestChoicesOfTheDisplayAreKept(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t), func(c *console.Config) { c.Secure = true })
	b := d.As(webtest.Alice)
	w := b.Send("display", url.Values{"theme": {"dark"}, "refresh": {"7"}, "zone": {"utc"}, "keys": {`"><script>`}})
	assert.Equal(t, "display", strings.TrimPrefix(w.Header().Get("Location"), "./"))
	cookie := b.Cookies["routemaster_display"]
	assert.True(t, cookie.Secure && cookie.HttpOnly)
	text := b.Send("display", nil).Body.String()
	assert.Contains(t, text, `data-theme="dark" data-refresh="5" data-zone="utc" data-keys="on"`, "what is no choice is the default")
	assert.Contains(t, text, "The display is as you chose.")
	assert.NotContains(t, b.Send("display", nil).Body.String(), "The display is as you chose.", "it is said once")
}

// TestTheConsoleBehindAProxyThatSpeaksTLS has the proxy speak http to web.
func TestTheConsoleBehindAProxyThatSpeaksTLS(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t), func(c *console.Config) { c.Secure = true })
	forced := rest.ForceTLS(d.Handler)
	send := func(form string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/login", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		forced.ServeHTTP(w, r)
		return w
	}
	form := url.Values{"secret": {webtest.Alice}}.Encode()
	proxied := []string{"X-Forwarded-Proto", "https", "Origin", "https://example.com"}
	w := send(form, proxied...)
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Len(t, w.Result().Cookies(), 1)
	cookie := w.Result().Cookies()[0]
	assert.Equal(t, "__Host-routemaster", cookie.Name)
	assert.True(t, cookie.Secure)
	assert.NotEmpty(t, w.Header().Get("Strict-Transport-Security"))

	w = send(form)
	assert.Equal(t, http.StatusPermanentRedirect, w.Code, "without TLS")
	assert.Equal(t, "https://example.com/console/login", w.Header().Get("Location"))
	assert.Empty(t, w.Result().Cookies())
	w = send(form, "X-Forwarded-Proto", "https", "Origin", "https://evil.example")
	assert.Equal(t, http.StatusForbidden, w.Code)

	b := d.Browser()
	b.Cookies["routemaster"] = &http.Cookie{Name: "routemaster", Value: cookie.Value}
	assert.Equal(t, http.StatusUnauthorized, b.Send("help", nil).Code, "a cookie that another host of the domain could set")
	b.Cookies = map[string]*http.Cookie{cookie.Name: cookie}
	assert.Equal(t, http.StatusOK, b.Send("help", nil).Code)
}
