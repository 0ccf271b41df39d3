package outbound_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/outbound"
)

// TestBodiesAreKept requires which bytes of a response's body are kept for its status.
func TestBodiesAreKept(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	eachProtocol(t, func(t *testing.T, http2 bool) {
		for name, test := range map[string]struct {
			status   int
			body     string
			keep     int
			kept     string
			complete bool
		}{
			"failure":          {500, "broken", 256, "broken", true},
			"long failure":     {500, long, 256, long[:256], false},
			"redirect":         {302, "elsewhere", 256, "elsewhere", true},
			"just enough":      {500, "broken", 6, "broken", true},
			"one byte less":    {500, "broken", 5, "broke", false},
			"nothing asked":    {500, "broken", 0, "", false},
			"no body":          {204, "", 256, "", true},
			"receipt":          {207, `{"retry":[1]}`, 256 << 10, `{"retry":[1]}`, true},
			"long receipt":     {207, long, 1 << 20, long[:256<<10], false},
			"acknowledgement":  {200, long, 256, long[:256], false},
			"short and thanks": {200, "thanks", 256, "thanks", true},
		} {
			t.Run(name, func(t *testing.T) {
				e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.body)
				})
				r := request(e.url)
				r.KeepBody = func(status int) int {
					assert.Equal(t, test.status, status)
					return test.keep
				}
				a := newClient(t).Send(t.Context(), r)
				assert.Equal(t, test.status, a.Status)
				assert.Equal(t, test.kept, string(a.Body))
				assert.Equal(t, test.complete, a.BodyComplete)
				assert.Empty(t, a.Error)
			})
		}
	})
}

// TestKeptBodiesLeaveTheConnection sends twice to an endpoint whose bodies are read to their end.
func TestKeptBodiesLeaveTheConnection(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		receipt := bytes.Repeat([]byte(" "), 200<<10)
		e := newEndpoint(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusMultiStatus)
			_, _ = w.Write(receipt)
		})
		c, r := newClient(t), request(e.url)
		r.KeepBody = func(int) int { return 256 << 10 }
		for i := range 2 {
			a := c.Send(t.Context(), r)
			assert.True(t, a.BodyComplete)
			assert.Equal(t, i == 1, a.Reused)
		}
		assert.EqualValues(t, 1, e.opened.Load())
	})
}

// TestBodiesThatTakeLong has an endpoint begin a body and not end it. Only a receipt is waited for
// as long as the attempt may take.
func TestBodiesThatTakeLong(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		for name, test := range map[string]struct {
			status  int
			timeout time.Duration
		}{
			"failure":         {500, time.Hour},
			"acknowledgement": {200, time.Hour},
			"receipt":         {207, time.Second / 2},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := newEndpoint(t, http2, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, "begun")
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
				r := request(e.url)
				r.KeepBody = func(int) int { return 256 }
				a := newClient(t, func(c *outbound.Config) { c.Timeout = test.timeout }).Send(t.Context(), r)
				assert.Equal(t, test.status, a.Status)
				assert.Equal(t, "begun", string(a.Body))
				assert.False(t, a.BodyComplete)
				assert.Less(t, a.Duration, soon)
			})
		}
	})
}

// TestGet asks an endpoint for a body that takes longer than others may.
func TestGet(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		e := newEndpoint(t, http2, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, http.MethodGet, r.Method)
			assert.Zero(t, r.ContentLength)
			assert.Equal(t, "mine", r.UserAgent())
			_, _ = io.WriteString(w, `{"a":`)
			w.(http.Flusher).Flush()
			time.Sleep(1100 * time.Millisecond) // longer than reading an unwanted body may take
			_, _ = io.WriteString(w, `1}`)
		})
		c := newClient(t, func(c *outbound.Config) { c.Timeout = time.Millisecond })
		a := c.Send(t.Context(), outbound.Request{
			Method: http.MethodGet, URL: e.url, Header: http.Header{"User-Agent": {"mine"}}, Timeout: time.Minute,
			KeepBody: func(int) int { return 100 }, AwaitBody: true,
		})
		assert.NoError(t, a.Err)
		assert.Equal(t, `{"a":1}`, string(a.Body))
		assert.True(t, a.BodyComplete)
	})
}

func gzipped(t *testing.T, text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.String()
}

// TestCodedBodies has an endpoint respond in codings that the request did not ask for. Limits apply
// to the decoded body.
func TestCodedBodies(t *testing.T) {
	object, bomb := gzipped(t, `{"v":1}`), gzipped(t, strings.Repeat("x", 50<<20))
	eachProtocol(t, func(t *testing.T, http2 bool) {
		for name, test := range map[string]struct {
			coding, body, kept, err string
		}{
			"gzip":          {"gzip", object, `{"v":1}`, ""},
			"in capitals":   {"X-GZIP", object, `{"v":1}`, ""},
			"identity":      {"identity", `{"v":1}`, `{"v":1}`, ""},
			"no body":       {"gzip", "", "", ""},
			"too long":      {"gzip", bomb, strings.Repeat("x", 100), "is longer than 100 bytes"},
			"cut off":       {"gzip", object[:len(object)-9], `{"v":1}`, "breaks off after 7 bytes: unexpected EOF"},
			"not gzip":      {"gzip", `{"v":1}`, "", "cannot be decoded from gzip: "},
			"another":       {"br", "\x0b", "", `has the Content-Encoding "br", though identity was asked for`},
			"one after one": {"gzip, br", "\x0b", "", `has the Content-Encoding "gzip, br"`},
		} {
			t.Run(name, func(t *testing.T) {
				e := newEndpoint(t, http2, func(w http.ResponseWriter, r *http.Request) {
					assert.Equal(t, []string{"identity"}, r.Header["Accept-Encoding"])
					w.Header().Set("Content-Encoding", test.coding)
					_, _ = io.WriteString(w, test.body)
				})
				r := request(e.url)
				r.KeepBody = func(int) int { return 100 }
				c := newClient(t)
				a := c.Send(t.Context(), r)
				require.NoError(t, a.Err, "the status decides")
				assert.Equal(t, test.kept, string(a.Body))
				assert.Equal(t, test.err == "", a.BodyComplete)
				if test.err == "" {
					assert.NoError(t, a.BodyErr)
					assert.True(t, c.Send(t.Context(), r).Reused)
				} else {
					assert.ErrorContains(t, a.BodyErr, test.err)
				}
			})
		}
	})
}
