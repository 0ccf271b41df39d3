package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// code asks the API for a link that logs in to the console, and returns its code.
func code(t *testing.T, d *consoletest.Desk, who, body string) string {
	t.Helper()
	got := d.Do(who, "POST", "/console_logins", body)
	require.Equal(t, http.StatusCreated, got.Status, got.Body)
	var made struct{ URL string }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &made))
	code, ok := strings.CutPrefix(made.URL, "console/login#code=")
	require.True(t, ok, made.URL)
	return code
}

func TestALinkLogsInOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d, other := consoletest.New(t, redis), consoletest.New(t, redis)
		for _, c := range []struct{ who, body, shown, said string }{
			{webtest.Alice, "", ">alice<", "The link has logged you in as alice."},
			{webtest.RootKey, `{"person":"Ada","look_only":true}`, ">root (Ada), look only<", "The link has logged you in as root."},
		} {
			made := code(t, d, c.who, c.body)
			b := other.Browser()
			w := b.Send("login", url.Values{"code": {made}})
			require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
			assert.Equal(t, "./", w.Header().Get("Location"))
			body := b.Send("", nil).Body.String()
			assert.Contains(t, body, c.shown)
			assert.Contains(t, body, c.said)

			again := d.Browser().Send("login", url.Values{"code": {made}})
			assert.Equal(t, http.StatusUnauthorized, again.Code, "it was used")
			assert.Contains(t, again.Body.String(), "this link is good once")
			assert.NotContains(t, d.ConsoleLog.String()+d.Log.String()+body+again.Body.String(), made)
		}
	})
}

func TestALinkOfARevokedTokenDoesNotLogIn(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	made := code(t, d, webtest.Alice, "")
	d.RequireDone(webtest.RootKey, "DELETE", "/api_tokens/"+webtest.Alice, "")
	b := d.Browser()
	assert.Equal(t, http.StatusUnauthorized, b.Send("login", url.Values{"code": {made}}).Code)
	assert.Empty(t, b.Cookies)
}

func TestALoginReplacesTheOneOfTheBrowser(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	b := d.As(webtest.RootKey)
	before := d.Browser()
	before.Cookies["routemaster"] = b.Cookies["routemaster"]
	require.Equal(t, http.StatusOK, before.Send("help", nil).Code)
	require.Equal(t, http.StatusSeeOther, b.Send("login", url.Values{"code": {code(t, d, webtest.Alice, "")}}).Code)
	assert.Equal(t, http.StatusUnauthorized, before.Send("help", nil).Code)
	assert.Contains(t, b.Send("", nil).Body.String(), ">alice<")
}
