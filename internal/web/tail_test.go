package web_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web/rest"
	"routemaster/internal/web/webtest"
)

// watch reads the live tail of a topic, a field of an event at a time, from when it has begun.
func (a *api) watch(url, topic string) (fields chan string, stop func()) {
	ctx, stop := context.WithCancel(a.T.Context())
	a.T.Cleanup(stop)
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/topics/"+topic+"/tail", nil)
	require.NoError(a.T, err)
	r.SetBasicAuth(bob, "x")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(a.T, err)
	require.Equal(a.T, 200, resp.StatusCode)
	assert.Equal(a.T, "text/event-stream", resp.Header.Get("Content-Type"))
	fields = make(chan string, 1000)
	go func() {
		defer close(fields)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if text := lines.Text(); text != "" && !strings.HasPrefix(text, ":") {
				fields <- text
			}
		}
	}()
	return fields, stop
}

func field(t *testing.T, fields chan string) string {
	t.Helper()
	select {
	case text := <-fields:
		return text
	case <-time.After(time.Minute):
		require.Fail(t, "nothing came")
		return ""
	}
}

func TestTooManyLiveTailsOfAClient(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/0"}`)
	url := a.Run()
	for range 20 {
		a.watch(url, "widgets")
	}
	got := a.Do(bob, "GET", "/topics/widgets/tail", "")
	assert.Equal(t, http.StatusServiceUnavailable, got.Status)
	assert.Contains(t, got.Body, "live tails")
}

func TestALiveTailShowsEvents(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/0"}`)
	fields, stop := a.watch(a.Run(), "widgets")
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/1","timestamp":7,"data":{"n":9007199254740993,"x":1.0}}`)
	assert.Equal(t, `data: {"topic":"widgets","type":"noop","url":"https://x.example/1","t":7,"data":{"n":9007199254740993,"x":1.0}}`, field(t, fields))

	const event = `{"type":"noop","url":"https://x.example/2","timestamp":8}`
	a.RequireDone(alice, "POST", "/topics/widgets", "["+strings.Repeat(event+",", 24)+event+"]")
	for range 20 {
		assert.Contains(t, field(t, fields), `"t":8}`)
	}
	assert.Equal(t, "event: left_out", field(t, fields))
	assert.Equal(t, "data: 5", field(t, fields))
	stop()
	p := a.Home("widgets").Partition()
	require.Eventually(t, func() bool { return p.Exists(t.Context(), p.Namespace()+"plans").Val() == 0 }, time.Minute, time.Millisecond)
}

// TestALiveTailHoldsNoStopUp stops a server while a client watches.
func TestALiveTailHoldsNoStopUp(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/0"}`)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.Server.Run(ctx, listener) }()
	fields, _ := a.watch("http://"+listener.Addr().String(), "widgets")
	stop()
	for text := range fields {
		require.Fail(t, text)
	}
	require.NoError(t, <-ran)
}

// TestALiveTailEndsWithItsToken watches on with a token that another process removes.
func TestALiveTailEndsWithItsToken(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/0"}`)
	fields, _ := a.watch(a.Run(), "widgets")
	require.NoError(t, a.DeleteToken(t.Context(), bob))
	for text := range fields {
		require.Fail(t, text)
	}
}

func TestALiveTailEndsWithItsTopic(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/0"}`)
	url := a.Run()
	ended, _ := a.watch(url, "widgets")
	too, stop := a.watch(url, "widgets")
	a.RequireDone(alice, "DELETE", "/topics/widgets", "")
	for _, fields := range []chan string{ended, too} {
		for text := range fields {
			require.Fail(t, text)
		}
	}
	stop()
	assert.Equal(t, http.StatusNotFound, a.Do(bob, "GET", "/topics/widgets/tail", "").Status)
}

// TestASlowBodyIsRefusedWhenItsTokenIsGone removes a token between the head of a request and the
// end of its body.
func TestASlowBodyIsRefusedWhenItsTokenIsGone(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	body, sender := io.Pipe()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/topics/widgets", body)
	a.Authorize(r, bob)
	go func() {
		began := time.Now()
		_, _ = sender.Write([]byte("["))
		a.RequireDone(rootKey, "DELETE", "/api_tokens/"+bob, "")
		<-time.After(time.Until(began.Add(rest.SlowBody + time.Millisecond)))
		_, _ = sender.Write([]byte(webtest.EventText(1) + "]"))
		_ = sender.Close()
	}()
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	assert.Equal(t, http.StatusUnauthorized, w.Code, w.Body)
	assert.Equal(t, "[]", a.Do(alice, "GET", "/topics", "").Body)
}
