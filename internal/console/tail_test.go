package console_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/webtest"
)

// watch asks for the live tail of a topic over the network, as a browser does that takes compressed
// answers. The status and what comes are returned.
func (b *browser) watch(topic string) (*http.Response, chan string) {
	b.t.Helper()
	server := httptest.NewServer(b.Handler)
	b.t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, server.URL+"/console/topics/"+topic+"/tail", nil)
	require.NoError(b.t, err)
	r.Header.Set("Accept-Encoding", "gzip")
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for all := bufio.NewScanner(resp.Body); all.Scan(); {
			if strings.HasPrefix(all.Text(), "data: ") {
				lines <- all.Text()
			}
		}
	}()
	return resp, lines
}

// next is what comes next; it is not ok if the stream has ended.
func next(t *testing.T, lines chan string) (line string, ok bool) {
	t.Helper()
	select {
	case line, ok = <-lines:
	case <-time.After(10 * time.Second):
		require.Fail(t, "nothing came")
	}
	return line, ok
}

func TestALiveTailIsForwardedUntilTheSessionEnds(t *testing.T) {
	console.CheckSessionsEvery(t, 20*time.Millisecond)
	d := busy(t, rdbtest.Embedded(t))
	b := d.as(t, shop)
	resp, lines := b.watch("widgets")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	assert.Empty(t, resp.Header.Get("Content-Encoding"))
	d.RequireDone("warehouse--1", "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/1","timestamp":7,"data":{"n":9007199254740993,"x":1.0}}`)
	line, _ := next(t, lines)
	assert.Equal(t, `data: {"topic":"widgets","type":"noop","url":"https://x.example/1","t":7,"data":{"n":9007199254740993,"x":1.0}}`, line)
	require.Equal(t, http.StatusSeeOther, b.send("logout", url.Values{}).Code)
	_, ok := next(t, lines)
	assert.False(t, ok, "it has ended")
}

func TestALiveTailIsForWhoIsLoggedIn(t *testing.T) {
	d := busy(t, rdbtest.Embedded(t))
	for name, b := range map[string]*browser{"nobody": d.browser(t), "a session that has ended": {d, t, map[string]*http.Cookie{"routemaster": {Name: "routemaster", Value: "none"}}}} {
		resp, _ := b.watch("widgets")
		assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, name)
		assert.Equal(t, []string{"Cookie"}, resp.Header.Values("WWW-Authenticate"), name)
	}
	resp, _ := d.as(t, shop).watch("none")
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)

	revoked := d.as(t, search)
	d.RequireDone(webtest.RootKey, "DELETE", "/api_tokens/"+search, "")
	resp, _ = revoked.watch("widgets")
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, "the API says so")
	assert.Equal(t, []string{"Cookie"}, resp.Header.Values("WWW-Authenticate"))
}

func TestTheLastEventOfATopicKeepsItsDigits(t *testing.T) {
	body := busy(t, rdbtest.Embedded(t)).as(t, shop).send("topics/widgets", nil).Body.String()
	assert.Contains(t, body, "&#34;n&#34;: 9007199254740993,")
	assert.Contains(t, body, "&#34;x&#34;: 1.0,")
	assert.Contains(t, body, `data-tail="../topics/widgets/tail"`)
}
