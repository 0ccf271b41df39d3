package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
)

// stream responds with server-sent events, and flushes them.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

const event = `data: {"topic":"widgets","type":"update","url":"https://x.example/1","t":7,"data":{"n":9007199254740993}}` + "\n\n"

func TestATailGoesOnWhenItsStreamIsLost(t *testing.T) {
	bus := newFakeBus(t, func(n int, w http.ResponseWriter, _ string) {
		switch n {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			stream(w, ": live\n\n"+event+"event: left_out\r\ndata: 5\r\n\r\nevent: another\ndata: ?\n\n"+event[:20])
			breakConnection()
		case 2:
			stream(w, "") // and ends it
		case 3:
			w.WriteHeader(http.StatusBadGateway)
		case 4:
			stream(w, event)
		default:
			problem(w, http.StatusUnauthorized, "", "the token is unknown")
		}
	})
	var got []client.TailItem
	var failure error
	for item, err := range connect(t, bus.URL).Tail(t.Context(), "widgets") {
		require.NoError(t, failure, "an error is the last")
		if failure = err; err == nil {
			got = append(got, item)
		}
	}
	want := &client.Event{Topic: "widgets", Type: client.Update, URL: "https://x.example/1", Timestamp: time.UnixMilli(7), Data: json.RawMessage(`{"n":9007199254740993}`)}
	var lost []error
	for i := range got {
		if got[i].Lost != nil {
			lost = append(lost, got[i].Lost)
			got[i].Lost = errors.ErrUnsupported
		}
	}
	live, gone := client.TailItem{Live: true}, client.TailItem{Lost: errors.ErrUnsupported}
	assert.Equal(t, []client.TailItem{live, {Event: want}, {LeftOut: 5}, gone, live, gone, gone, live, {Event: want}, gone}, got)
	require.Len(t, lost, 4)
	for i, ended := range []bool{false, true, false, true} {
		assert.Equal(t, ended, errors.Is(lost[i], client.ErrTailEnded), lost[i])
		assert.True(t, client.IsTemporary(lost[i]), lost[i])
	}
	assert.EqualError(t, failure, "tail widgets: 401 Unauthorized: the token is unknown")
	for _, r := range bus.all() {
		assert.Equal(t, []string{"GET", "/topics/widgets/tail", token}, []string{r.method, r.path, r.user})
	}
}

func TestATailThatCannotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		requests int
		respond  func(w http.ResponseWriter)
		want     string
	}{
		"unknown topic": {1, func(w http.ResponseWriter) { problem(w, http.StatusNotFound, "", "there is no such topic") }, "404 Not Found: there is no such topic"},
		"overloaded":    {3, func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, "503 Service Unavailable"},
		"away":          {3, func(http.ResponseWriter) { breakConnection() }, "EOF"},
		"another page":  {1, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<p>") }, `the response is not from a bus: it is "text/html", not a stream of events`},
		"not an event":  {1, func(w http.ResponseWriter) { stream(w, "data: x\n\n") }, "the response is not from a bus: "},
		"not a count":   {1, func(w http.ResponseWriter) { stream(w, "event: left_out\ndata: x\n\n") }, "the response is not from a bus: "},
	} {
		t.Run(name, func(t *testing.T) {
			bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) { c.respond(w) })
			var last error
			for item, err := range connect(t, bus.URL, client.WithRetries(2)).Tail(t.Context(), "widgets") {
				last = err
				assert.NoError(t, item.Lost)
			}
			assert.ErrorContains(t, last, "tail widgets: "+c.want)
			assert.Len(t, bus.all(), c.requests)
		})
	}
}

func TestATailEndsWhenItsCallerWantsNoMore(t *testing.T) {
	for name, end := range map[string]func(stop func()) (leave bool){
		"left":      func(func()) bool { return true },
		"cancelled": func(stop func()) bool { stop(); return false },
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			bus := newFakeBus(t, func(_ int, w http.ResponseWriter, _ string) {
				defer close(gone)
				stream(w, event)
				for http.NewResponseController(w).Flush() == nil { // until the caller has gone
					if _, err := io.WriteString(w, ": live\n\n"); err != nil {
						return
					}
				}
			})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			for item, err := range connect(t, bus.URL).Tail(ctx, "widgets") {
				require.NoError(t, err)
				require.NoError(t, item.Lost)
				if item.Event != nil && end(stop) {
					break
				}
			}
			<-gone
			assert.Len(t, bus.all(), 1)
		})
	}
}

// silentBus responds with a stream that lives for a time, with a line every 15 s, and then sends
// nothing.
type silentBus struct{ lives time.Duration }

func (b silentBus) RoundTrip(r *http.Request) (*http.Response, error) {
	body, stream := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = stream.CloseWithError(r.Context().Err()) })
	go func() {
		var err error
		for began := time.Now(); err == nil && time.Since(began) < b.lives; time.Sleep(15 * time.Second) {
			_, err = io.WriteString(stream, ": live\n\n")
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
}

// TestASilentStreamIsLost has a stream that outlives the timeout of other requests, until the bus
// is silent.
func TestASilentStreamIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := connect(t, "http://bus.example", client.WithHTTPClient(&http.Client{Transport: silentBus{10 * time.Minute}, Timeout: time.Second}))
		for item, err := range c.Tail(t.Context(), "widgets") {
			require.NoError(t, err)
			if item.Live {
				time.Sleep(5 * time.Minute) // the caller may take its time
			}
			if item.Lost != nil {
				assert.ErrorContains(t, item.Lost, "tail widgets: the bus has sent nothing for 45s")
				break
			}
		}
		assert.InDelta(t, 10*time.Minute+45*time.Second, time.Since(began), float64(15*time.Second))
	})
}
