package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/ingest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry/metrics"
	"routemaster/internal/web"
	"routemaster/internal/web/subscriber"
)

// TestADamagedTopicHidesNoOther has something else than the bus write to what is a topic's.
func TestADamagedTopicHidesNoOther(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		for _, topic := range []string{"gadgets", "widgets"} {
			a.requireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		}
		require.NoError(t, redis.Raw.Set(t.Context(), "topic:gadgets", "x", 0).Err())
		got := a.do(rootKey, "GET", "/topics", "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		assert.JSONEq(t, `[{"name":"widgets","publisher":"`+alice+`","events":1}]`, got.body)
		assert.Equal(t, 1, strings.Count(a.log.String(), "skipped topics with damaged data"), a.log)
		assert.Contains(t, a.log.String(), "keys=[topic:gadgets]")
	})
}

func TestAClientThatIsGoneIsStillShownAsThePublisher(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "s3cret", "carol"))
	a.requireDone("s3cret", "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`)
	a.requireDone(rootKey, "DELETE", "/api_tokens/s3cret", "")
	assert.JSONEq(t, `[{"name":"a","publisher":"carol","events":1}]`, a.do(bob, "GET", "/topics", "").body)
}

func TestDeleteTopic(t *testing.T) {
	redis := rdbtest.Embedded(t)
	a := newAPI(t, redis)
	for _, topic := range []string{"one", "two"} {
		a.requireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		assert.Equal(t, 403, a.problem(bob, "DELETE", "/topics/"+topic, "").Status)
	}
	a.requireDone(alice, "DELETE", "/topics/one", "")
	a.requireDone(rootKey, "DELETE", "/topic/two", "")
	assert.Equal(t, 404, a.problem(alice, "DELETE", "/topics/one", "").Status)
	assert.Equal(t, 404, a.problem(alice, "DELETE", "/topics/One", "").Status)
	redis.Raw.SAdd(t.Context(), "topics", "Widgets") // as the Ruby original let in
	a.requireDone(rootKey, "DELETE", "/topics/Widgets", "")
	assert.JSONEq(t, `[]`, a.do(alice, "GET", "/topics", "").body)
}

// newLimitedAPI is newAPI with limits of topics.
func newLimitedAPI(t *testing.T, redis *rdbtest.Server) *api {
	a := newAPI(t, redis)
	a.Store = storetest.Open(t, redis, func(o *store.Options) { o.MaxClientTopics, o.MaxTopics = 3, 5 })
	a.Queue = storetest.NewQueue(a.Store, 1)
	a.server = web.New(web.Config{RootKey: rootKey, NonceTTL: time.Minute, MaxEventData: 64, Subscriber: subscriber.Config{MaxTopics: 4}}, a.Store, a.Queue,
		ingest.New(a.Store, ingest.Options{}), metrics.NewRegistry().Handler(), a.logger(), time.Now)
	a.handler = a.server.Handler()
	return a
}

func TestLimitsOfTopicsAreReported(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newLimitedAPI(t, redis)
		subscription := func(topics string) string { return `{"callback":"https://x.example/","topics":` + topics + `}` }
		const event = `{"type":"noop","url":"https://x.example/"}`
		a.requireDone(alice, "POST", "/subscription", subscription(`["a","b","c"]`))
		p := a.problem(alice, "POST", "/subscription", subscription(`["a","b","c","d"]`))
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "more than 3 topics")
		p = a.problem(alice, "POST", "/topics/d", event)
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "more than 3 topics")
		p = a.problem(bob, "POST", "/subscription", subscription(`["a","b","c","d","e"]`))
		assert.Equal(t, 400, p.Status)
		assert.Equal(t, "/topics", p.Pointer)
		assert.Contains(t, p.Detail, "at most 4")
		a.requireDone(bob, "POST", "/subscription", subscription(`["a","b","d","e"]`))
		p = a.problem(bob, "POST", "/topics/f", event)
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "limit of 5 topics")
		a.requireDone(rootKey, "DELETE", "/topics/e", "")
		a.requireDone(bob, "POST", "/topics/f", event)
		storetest.RequireSound(t, a.Store)
	})
}
