package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/receipt"
)

// quiet drops the log of servers that are connected to without TLS.
var quiet = log.New(io.Discard, "", 0)

// deliver sends a body to a handler, and returns its response.
func deliver(t *testing.T, h http.Handler, method, user string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", body)
	if user != "" {
		r.SetBasicAuth(user, "x")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const delivery = `[{"topic":"widgets","type":"update","url":"https://x.example/1","t":1700000000000,"data":{"a":1},"extra":[]},{"topic":"parcels","type":"noop","url":"https://x.example/2","t":2}]`

func TestAHandlerAcknowledges(t *testing.T) {
	var got []client.Event
	var fails error
	h := client.NewHandler("a-uuid", func(_ context.Context, events []client.Event) error {
		got = append(got, events...)
		return fails
	})
	w := deliver(t, h, "POST", "a-uuid", strings.NewReader(delivery))
	assert.Equal(t, 204, w.Code)
	require.Len(t, got, 2)
	assert.Equal(t, "widgets", got[0].Topic)
	assert.Equal(t, client.Update, got[0].Type)
	assert.Equal(t, `{"a":1}`, string(got[0].Data))
	assert.EqualValues(t, 1700000000000, got[0].Timestamp.UnixMilli())
	assert.Equal(t, "parcels", got[1].Topic)
	assert.Nil(t, got[1].Data)

	fails = errors.New("the database's password is wrong")
	w = deliver(t, h, "POST", "a-uuid", strings.NewReader(delivery))
	assert.Equal(t, 500, w.Code)
	assert.NotContains(t, w.Body.String(), "password")

	fails = errors.Join(receipt.Retry(1), receipt.Reject(0, "no such widget"))
	w = deliver(t, h, "POST", "a-uuid", strings.NewReader(delivery))
	assert.Equal(t, 207, w.Code)
	assert.JSONEq(t, `{"retry":[1],"reject":[{"index":0,"reason":"no such widget"}]}`, w.Body.String())
}

// TestAHandlerThatPanicsIsNoOutage has the bus learn that it is the batch that fails, not the
// endpoint.
func TestAHandlerThatPanicsIsNoOutage(t *testing.T) {
	server := httptest.NewUnstartedServer(client.NewHandler("a-uuid", func(context.Context, []client.Event) error { panic("no such widget") }))
	var logged strings.Builder
	server.Config.ErrorLog = log.New(&logged, "", 0)
	server.Start()
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(delivery))
	require.NoError(t, err)
	r.SetBasicAuth("a-uuid", "x")
	resp, err := server.Client().Do(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, 500, resp.StatusCode)
	server.Close() // which waits for the handler
	assert.Contains(t, logged.String(), "no such widget", "the server logs it, as ever")
}

func TestAHandlerRefusesInvalidDeliveries(t *testing.T) {
	calls := 0
	h := client.NewHandler("a-uuid", func(context.Context, []client.Event) error {
		calls++
		return nil
	})
	for _, user := range []string{"", "a-uui", "a-uuid2", "A-UUID", "another"} {
		w := deliver(t, h, "POST", user, strings.NewReader(delivery))
		assert.Equal(t, 401, w.Code, user)
		assert.NotEmpty(t, w.Header().Get("WWW-Authenticate"))
		assert.NotContains(t, w.Body.String(), "a-uuid")
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		w := deliver(t, h, method, "a-uuid", strings.NewReader(delivery))
		assert.Equal(t, 405, w.Code)
		assert.Equal(t, "POST", w.Header().Get("Allow"))
	}
	for _, body := range []string{"", "{}", "null", "[1]", "[{]", "[] []", `[{"t":"now"}]`, "events"} {
		assert.Equal(t, 400, deliver(t, h, "POST", "a-uuid", strings.NewReader(body)).Code, body)
	}
	assert.Equal(t, 413, deliver(t, h, "POST", "a-uuid", io.LimitReader(blanks{}, client.MaxDelivery+1)).Code)
	assert.Equal(t, 400, deliver(t, h, "POST", "a-uuid", io.MultiReader(strings.NewReader("["), broken{})).Code)
	assert.Zero(t, calls)
	assert.Equal(t, 204, deliver(t, h, "POST", "a-uuid", strings.NewReader("[]")).Code)
	assert.Panics(t, func() { client.NewHandler("", nil) }, "anybody could deliver")
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
