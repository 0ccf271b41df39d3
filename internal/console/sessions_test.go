package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/consoletest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// endings are the links of the activity that lead to the end of sessions, by whose they are.
func endings(body string) map[string]string {
	links := map[string]string{}
	for _, found := range regexp.MustCompile(`href="\./(sessions/[0-9a-f]+/end)" aria-label="End the session of ([^"]*)"`).FindAllStringSubmatch(body, -1) {
		links[found[2]] = found[1]
	}
	return links
}

func TestRootEndsSessions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		d, other := consoletest.New(t, redis), consoletest.New(t, redis)
		root, alice, bob := d.As(webtest.RootKey), d.As(webtest.Alice, "person", "Ada", "look_only", "1"), d.As(webtest.Bob)
		status := func(b *consoletest.Browser) int {
			return (&consoletest.Browser{Desk: other, Cookies: b.Cookies}).Send("help", nil).Code
		}
		body := root.Send("activity", nil).Body.String()
		assert.Contains(t, body, ">root, this one<")
		assert.Contains(t, body, ">look only<")
		assert.Contains(t, body, ">192.0.2.1<")
		links := endings(body)
		require.Len(t, links, 3)

		code, body := root.Submit(links["alice (Ada)"])
		assert.Equal(t, http.StatusSeeOther, code)
		assert.Contains(t, body, "Ended a session.")
		assert.Len(t, endings(body), 2)
		assert.Equal(t, http.StatusUnauthorized, status(alice))
		assert.Equal(t, http.StatusOK, status(bob))
		assert.Equal(t, http.StatusNotFound, root.Send(links["alice (Ada)"], url.Values{}).Code, "it has ended")

		_, body = root.Submit("sessions/all/end")
		assert.Contains(t, body, `type="password"`)
		for _, b := range []*consoletest.Browser{root, bob} {
			assert.Equal(t, http.StatusUnauthorized, status(b))
		}
		assert.Empty(t, redis.Raw.Keys(t.Context(), "*console:session*").Val())
		assert.Equal(t, 2, strings.Count(d.ConsoleLog.String(), `msg="root ended `))
	})
}

func TestWhereALoginCameFrom(t *testing.T) {
	d := consoletest.New(t, rdbtest.Embedded(t))
	root := d.As(webtest.RootKey)
	for named, shown := range map[string]string{
		"198.51.100.7": "198.51.100.7 via 192.0.2.1", "evil, 2001:db8::7": "2001:db8::7 via 192.0.2.1", "<b>": "192.0.2.1",
	} {
		w := d.Browser().Send("login", url.Values{"secret": {webtest.Alice}}, "X-Forwarded-For", named)
		require.Equal(t, http.StatusSeeOther, w.Code)
		assert.Contains(t, root.Send("activity", nil).Body.String(), ">"+shown+"<", named)
	}
}
