package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
)

func TestEveryAnswerHasARequestID(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	ask := func(ids ...string) string {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/nowhere", nil)
		r.Header["X-Request-Id"] = ids
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		return w.Header().Get("X-Request-Id")
	}
	longest := strings.Repeat("~", 128)
	for _, id := range []string{"a", "5f0c-1", longest} {
		assert.Equal(t, id, ask(id))
	}
	seen := map[string]bool{}
	for _, ids := range [][]string{nil, {""}, {"a b"}, {"a\tb"}, {"ä"}, {longest + "x"}, {"a", "b"}} {
		id := ask(ids...)
		assert.Regexp(t, `^[0-9a-f]{16}$`, id, "%q", ids)
		assert.False(t, seen[id])
		seen[id] = true
	}
}

func TestTheLogSaysWhatWasAnswered(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	got := a.Do(rootKey, "DELETE", "/api_tokens/secret--1", "")
	id := got.Header.Get("X-Request-Id")
	for _, want := range []string{
		`level=DEBUG msg="request served" request_id=` + id + " ", "method=DELETE", "route=/api_tokens/{token}", "status=204", "client=root", "duration=",
	} {
		assert.Contains(t, a.Log.String(), want)
	}
	a.Log.Reset()
	a.Do(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
	assert.Contains(t, a.Log.String(), "client=alice ")
	a.Do("", "GET", "/topics", "")
	assert.Contains(t, a.Log.String(), "status=401")
	a.Do(alice, "GET", "/alice--1", "")
	assert.Contains(t, a.Log.String(), `status=404`)
	assert.NotContains(t, a.Log.String(), alice)
	assert.NotContains(t, a.Log.String(), rootKey)
}

func TestALineAboutARequestHasItsID(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	var log bytes.Buffer
	handler := web.New(web.Config{RootKey: rootKey, NonceTTL: time.Minute, MaxEventData: 64}, a.Bus, ingest.New(a.Bus, ingest.Options{}),
		panics{"poison"}, slog.New(slog.NewTextHandler(&log, nil)), time.Now).Handler()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	r.SetBasicAuth(alice, "")
	r.Header.Set("X-Request-Id", "mine")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	assert.Equal(t, 500, w.Code)
	assert.Contains(t, w.Body.String(), `"id":"server_error","instance":"/metrics"`)
	assert.Equal(t, "mine", w.Header().Get("X-Request-Id"))
	line := log.String()
	require.Equal(t, 1, strings.Count(line, "\n"))
	assert.Contains(t, line, `level=ERROR msg="request panicked" request_id=mine method=GET route=/metrics client=alice panic=poison stack=`)
	assert.NotContains(t, line, alice)
	assert.NotContains(t, line, "Authorization")
}

// panics is a handler that panics.
type panics struct{ reason any }

func (p panics) ServeHTTP(http.ResponseWriter, *http.Request) { panic(p.reason) }
