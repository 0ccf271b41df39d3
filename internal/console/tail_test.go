package console_test

import (
	"bufio"
	"net/http"
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

// watch asks for the live tail of a topic over the network, like a browser that takes compressed
// answers. It returns the response and a channel of its lines.
func watch(t *testing.T, b *consoletest.Browser, topic string) (*http.Response, chan string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+"topics/"+topic+"/tail", nil)
	require.NoError(t, err)
	r.Header.Set("Accept-Encoding", "gzip")
	for _, cookie := range b.Cookies {
		r.AddCookie(cookie)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
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

// next returns the next line; it is not ok if the stream has ended.
func next(t *testing.T, lines chan string) (line string, ok bool) {
	t.Helper()
	select {
	case line, ok = <-lines:
	case <-time.After(time.Minute):
		require.Fail(t, "nothing came")
	}
	return line, ok
}

func TestALiveTailIsForwardedUntilTheSessionEnds(t *testing.T) {
	console.CheckSessionsEvery(t, 20*time.Millisecond)
	d := consoletest.Full(t, rdbtest.Embedded(t))
	d.Serve()
	b := d.As(shop)
	resp, lines := watch(t, b, "widgets")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	assert.Empty(t, resp.Header.Get("Content-Encoding"))
	d.RequireDone(consoletest.Warehouse, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/1","timestamp":7,"data":{"n":9007199254740993,"x":1.0}}`)
	line, _ := next(t, lines)
	assert.Equal(t, `data: {"topic":"widgets","type":"noop","url":"https://x.example/1","t":7,"data":{"n":9007199254740993,"x":1.0}}`, line)
	require.Equal(t, http.StatusSeeOther, b.Send("logout", url.Values{}).Code)
	_, ok := next(t, lines)
	assert.False(t, ok, "it has ended")
}

func TestALiveTailIsForWhoIsLoggedIn(t *testing.T) {
	rdbtest.OneRedisOnly(t, "a session is found as for a page, and refused tails take seconds to close")
	d := consoletest.Full(t, rdbtest.Embedded(t))
	d.Serve()
	for name, b := range map[string]*consoletest.Browser{"nobody": d.Browser(), "a session that has ended": {Desk: d, Cookies: map[string]*http.Cookie{"routemaster": {Name: "routemaster", Value: "none"}}}} {
		resp, _ := watch(t, b, "widgets")
		assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, name)
		assert.Equal(t, []string{"Cookie"}, resp.Header.Values("WWW-Authenticate"), name)
	}
	resp, _ := watch(t, d.As(shop), "none")
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)

	revoked := d.As(search)
	d.RequireDone(webtest.RootKey, "DELETE", "/api_tokens/"+search, "")
	resp, _ = watch(t, revoked, "widgets")
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, "the API says so")
	assert.Equal(t, []string{"Cookie"}, resp.Header.Values("WWW-Authenticate"))
}

func TestTheLastEventOfATopicKeepsItsDigits(t *testing.T) {
	body := consoletest.Full(t, rdbtest.Embedded(t)).As(shop).Send("topics/widgets", nil).Body.String()
	assert.Contains(t, body, "&#34;n&#34;: 9007199254740993,")
	assert.Contains(t, body, "&#34;x&#34;: 1.0,")
	assert.Contains(t, body, `data-tail="../topics/widgets/tail"`)
}

func TestASessionHasFewLiveTails(t *testing.T) {
	d := consoletest.Full(t, rdbtest.Embedded(t))
	d.Serve()
	b := d.As(shop)
	var open *http.Response
	for range 4 {
		open, _ = watch(t, b, "widgets")
		require.Equal(t, http.StatusOK, open.StatusCode)
	}
	refused, _ := watch(t, b, "widgets")
	assert.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	another, _ := watch(t, d.As(shop), "widgets")
	assert.Equal(t, http.StatusOK, another.StatusCode, "of another session")
	require.NoError(t, open.Body.Close())
	assert.Eventually(t, func() bool {
		again, _ := watch(t, b, "widgets")
		return again.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
}
