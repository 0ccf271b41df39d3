package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

func TestWhoLogsInIsShown(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	for _, c := range []struct{ secret, person, shown string }{
		{webtest.RootKey, "Ada", "root (Ada)"},
		{webtest.Alice, "", "alice"},
		{webtest.Alice, "<b>\x1b[1m" + strings.Repeat("é", 50), "alice (&lt;b&gt;[1m" + strings.Repeat("é", 29) + ")"},
	} {
		text := d.As(c.secret, "person", c.person).Send("", nil).Body.String()
		assert.Contains(t, text, ">"+c.shown+"<")
	}
	assert.Contains(t, d.As(webtest.Alice, "look_only", "1").Send("", nil).Body.String(), "alice, look only")
	assert.Contains(t, d.ConsoleLog.String(), `msg="logged in to the console" client=root person=Ada look_only=false`)
	for _, secret := range []string{webtest.RootKey, webtest.Alice} {
		assert.NotContains(t, d.ConsoleLog.String()+d.Log.String(), secret)
	}
}

func TestAWrongSecretIsRefused(t *testing.T) {
	rdbtest.OneRedisOnly(t, "wrong logins are counted in the process")
	d := consoletest.New(t, rdbtest.Embedded(t))
	b := d.Browser()
	for _, wrong := range []string{"wrong-secret", "", webtest.RootKey + "x", webtest.Alice + ":junk", webtest.Alice + ":", webtest.RootKey + ":junk"} {
		w := b.Send("login", url.Values{"secret": {wrong}, "next": {"help"}})
		assert.Equal(t, http.StatusUnauthorized, w.Code)
		assert.Equal(t, []string{"Cookie"}, w.Header().Values("WWW-Authenticate"), "no browser prompts for that")
		text := w.Body.String()
		requireClean(t, "login", text, 0)
		assert.Contains(t, text, `type="password"`)
		assert.Contains(t, text, `name="next" value="help"`)
		assert.NotContains(t, text, "wrong-secret")
	}
	assert.Empty(t, b.Cookies)
	assert.NotContains(t, d.ConsoleLog.String()+d.Log.String(), "wrong-secret")
	assert.Equal(t, 1, strings.Count(d.ConsoleLog.String(), "level=WARN"), "one line a minute: %s", d.ConsoleLog)
}

func TestATokenMayHaveColons(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	require.NoError(t, d.PutToken(t.Context(), "a:b:c", "colons"))
	assert.Contains(t, d.As("a:b:c").Send("", nil).Body.String(), ">colons<")
}

func TestFewWrongLoginsAreAnsweredInASecond(t *testing.T) {
	rdbtest.OneRedisOnly(t, "wrong logins are counted in the process")
	d := consoletest.New(t, rdbtest.Embedded(t))
	answers := make(chan int)
	const guesses = 40
	for range guesses {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/login", strings.NewReader("secret=wrong"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			d.Handler.ServeHTTP(w, r)
			answers <- w.Code
		}()
	}
	count := map[int]int{}
	for i := range guesses {
		count[<-answers]++
		if i == 0 || i == guesses/2 { // others wait, or are refused
			for range 10 {
				assert.NotEmpty(t, d.As(webtest.RootKey).Cookies, "who knows a secret does not wait")
			}
		}
	}
	// 10 at once, and the ones whose turn comes within 2 s; a few more if the guesses came slowly.
	assert.GreaterOrEqual(t, count[http.StatusTooManyRequests], guesses-25, "%v", count)
	assert.Equal(t, guesses, count[http.StatusUnauthorized]+count[http.StatusTooManyRequests], "%v", count)
}

func TestTheCookieIsForTheConsoleAlone(t *testing.T) {
	for _, secure := range []bool{false, true} {
		d := consoletest.New(t, rdbtest.Embedded(t), func(c *console.Config) { c.Secure = secure })
		b := d.As(webtest.Alice)
		name := map[bool]string{false: "routemaster", true: "__Host-routemaster"}[secure]
		cookie := b.Cookies[name]
		require.NotNil(t, cookie)
		assert.Len(t, cookie.Value, 43, "32 bytes")
		want := &http.Cookie{
			Name: name, Value: cookie.Value, Path: "/", MaxAge: 12 * 3600, Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		}
		want.Raw = cookie.Raw
		assert.Equal(t, want, cookie)

		for method, path := range map[string]string{"GET": "/topics", "POST": "/topics/x"} {
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(webtest.EventText(1)))
			r.AddCookie(cookie)
			w := httptest.NewRecorder()
			d.Handler.ServeHTTP(w, r)
			assert.Equal(t, http.StatusUnauthorized, w.Code, "%s %s", method, path)
		}
		assert.Equal(t, 30*24*3600, d.As(webtest.Alice, "look_only", "1").Cookies[name].MaxAge)
	}
}

func TestWhatEndsASession(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d, other := consoletest.New(t, redis), consoletest.New(t, redis)
		renewed := consoletest.New(t, redis, func(c *console.Config) {
			c.RootKey = "another-root-key"
			c.Sessions = console.NewSessions(d.First().Partition(), c.RootKey, time.Now)
		})
		status := func(d *consoletest.Desk, b *consoletest.Browser) int {
			copied := d.Browser()
			copied.Cookies = b.Cookies
			return copied.Send("help", nil).Code
		}
		root, alice, bob := d.As(webtest.RootKey), d.As(webtest.Alice), d.As(webtest.Bob)
		for _, b := range []*consoletest.Browser{root, alice, bob} {
			assert.Equal(t, http.StatusOK, status(other, b))
		}

		d.RequireDone(webtest.RootKey, "DELETE", "/api_tokens/"+webtest.Alice, "")
		assert.Equal(t, http.StatusUnauthorized, status(d, alice), "its token is gone")
		assert.Eventually(t, func() bool { return status(other, alice) == http.StatusUnauthorized }, time.Minute, 10*time.Millisecond)
		require.NoError(t, d.PutToken(t.Context(), webtest.Alice, "alice"))
		assert.Equal(t, http.StatusUnauthorized, status(d, alice), "the session does not come back with the token")

		assert.Equal(t, http.StatusUnauthorized, status(renewed, root), "the root key is another")
		assert.Equal(t, http.StatusUnauthorized, status(renewed, bob), "it cannot tell who made the session")

		copied := d.Browser()
		copied.Cookies["routemaster"] = bob.Cookies["routemaster"]
		w := bob.Send("logout", url.Values{})
		assert.Equal(t, http.StatusSeeOther, w.Code)
		assert.Empty(t, bob.Cookies)
		assert.Equal(t, http.StatusUnauthorized, status(other, copied))
	})
}

func TestALoginLeadsBackIntoTheConsoleOnly(t *testing.T) {
	redis := rdbtest.Embedded(t)
	for next, location := range map[string]string{
		"": "./", "help": "./help", "help?a=b&c": "./help?a=b&c", "?range=6h": "./?range=6h", "topics/widgets": "./topics/widgets",
		"//evil.example": "./", "https://evil.example/": "./", "/\\evil.example": "./", "../api_tokens": "./",
		"a/../../x": "./", "javascript:alert(1)": "./", "/topics": "./", "\\\\evil.example": "./",
	} {
		d := consoletest.New(t, redis) // which has not seen a login yet
		w := d.Browser().Send("login", url.Values{"secret": {webtest.Alice}, "next": {next}})
		assert.Equal(t, location, w.Header().Get("Location"), next)
	}
}

func TestAPageAsksForALoginAndComesBack(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	w := d.Browser().Send("help?x=1", nil)
	assert.Equal(t, http.StatusUnauthorized, w.Code)
	assert.Contains(t, w.Body.String(), `name="next" value="help?x=1"`)
	assert.Contains(t, w.Body.String(), `action="./login"`)
}
