package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// TestHalfSentBodiesOfAClientKeepNoOthersOut has alice hold her share: four bodies of 4 KiB of a
// budget of 64 KiB, until they are released.
func TestHalfSentBodiesOfAClientKeepNoOthersOut(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t), func(c *web.Config) { c.BodyBudget = 64 << 10 })
	event := webtest.EventText(1)
	var senders sync.WaitGroup
	var bodies []*io.PipeWriter
	var responses []*httptest.ResponseRecorder
	for range 4 {
		body, sender := io.Pipe()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/topics/a", body)
		a.Authorize(r, alice)
		w := httptest.NewRecorder()
		senders.Go(func() { a.Handler.ServeHTTP(w, r) })
		_, err := io.WriteString(sender, event[:1]) // which is read into a buffer
		require.NoError(t, err)
		bodies, responses = append(bodies, sender), append(responses, w)
	}
	refused := a.Do(alice, "POST", "/topics/a", event)
	assert.Equal(t, 429, refused.Status)
	assert.Equal(t, "1", refused.Header.Get("Retry-After"))
	assert.Equal(t, "close", refused.Header.Get("Connection"))
	a.RequireDone(bob, "POST", "/topics/b", event)
	for _, sender := range bodies {
		_, err := io.WriteString(sender, event[1:])
		require.NoError(t, err)
		require.NoError(t, sender.Close())
	}
	senders.Wait()
	for _, w := range responses {
		assert.Equal(t, 200, w.Code, w.Body.String())
	}
	a.RequireDone(alice, "POST", "/topics/a", event)
}
