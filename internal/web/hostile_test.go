package web_test

import (
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
	"routemaster/internal/web/webtest"
)

// FuzzRequests sends any body and any headers to the endpoints that read them. No request may get a
// status of 500 or above, and every response must be as documented.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		webtest.EventText(1), webtest.EventsText(1, 3), `{"type":"noop","url":"https://x.example/","timestamp":1,"data":{"a":[1,1.5,null,"x"]}}`,
		`{"topics":["a"],"callback":"https://x.example/","uuid":"u","timeout":1,"max":1}`, `{"name":"a","token":"b"}`, `[`,
		`{"name":"a","delivery_strategy":"at_least_once","attempts":3,"concurrency":5,"url":null,"schedule":"0 6 * * *","schedule_data":7}`, `{"a":{"a":1,"a":2}}`,
	} {
		f.Add(body, "key", "Basic YWxpY2UtLTE6")
		f.Add(body, "", `Digest username="alice", realm="routemaster", nonce="x", uri="/", response="", qop=auth, nc=1, cnonce="c"`)
	}
	redis := rdbtest.Embedded(f)
	a := newAPI(f, redis)
	f.Fuzz(func(t *testing.T, body, key, authorization string) {
		for _, who := range []string{alice, rootKey} {
			for _, path := range []string{"/topics/a", "/subscription", "/api_tokens", "/v2/job-types"} {
				r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
				r.SetBasicAuth(who, "")
				r.Header.Set("Idempotency-Key", key)
				w := httptest.NewRecorder()
				a.Handler.ServeHTTP(w, r)
				webtest.RequireDocumented(t, r, body, w)
				require.Less(t, w.Code, 500, "%s", w.Body)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/topics", nil)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		a.Handler.ServeHTTP(w, r)
		require.Less(t, w.Code, 500, "%s", w.Body)
	})
}

// TestSlowSendersDoNotHoldOthersUp opens many connections that send almost nothing, and measures
// how long the requests of another client take meanwhile.
func TestSlowSendersDoNotHoldOthersUp(t *testing.T) {
	rdbtest.OneRedisOnly(t, "what it measures is over before Redis is asked")
	t.Parallel()
	a := newAPI(t, rdbtest.Real(t))
	url := a.Run()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	publish := func() time.Duration {
		began := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/topics/a", strings.NewReader(webtest.EventText(1)))
		require.NoError(t, err)
		r.SetBasicAuth(alice, "")
		resp, err := client.Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 200, resp.StatusCode)
		return time.Since(began)
	}
	head := "POST /topics/a HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2UtLTE6\r\nContent-Length: 100\r\n\r\n"
	rdbtest.Promptly(t, time.Second, func() (slowest time.Duration) {
		gone := sendSlowly(t, strings.TrimPrefix(url, "http://"), head)
		for range 300 {
			slowest = max(slowest, publish())
		}
		t.Logf("300 publishes beside %d slow senders: none above %v", cap(gone), slowest)
		for range cap(gone) {
			assert.True(t, <-gone, "a slow sender is not cut off")
		}
		return slowest
	})
}

// sendSlowly opens many connections that send the beginning of a request, and then one byte a
// second. The channel gets for each whether the server closed it.
func sendSlowly(t *testing.T, address, head string) (gone chan bool) {
	gone = make(chan bool, 200)
	for i := range cap(gone) {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		sent := head[:i%len(head)] // some stop in the header, some before the body
		if i%2 == 0 {
			sent = head + "{"
		}
		_, err = io.WriteString(conn, sent)
		require.NoError(t, err)
		go func() {
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for range 60 {
				if _, err := conn.Write([]byte(" ")); err != nil {
					gone <- true
					return
				}
				<-ticker.C
			}
			gone <- false
		}()
	}
	return gone
}
