package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// TestADamagedTopicHidesNoOther has something else than the bus write to what is a topic's.
func TestADamagedTopicHidesNoOther(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		for _, topic := range []string{"gadgets", "widgets"} {
			a.RequireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		}
		require.NoError(t, redis.Raw.Set(t.Context(), "topic:gadgets", "x", 0).Err())
		got := a.Do(rootKey, "GET", "/topics", "")
		require.Equal(t, http.StatusOK, got.Status, got.Body)
		assert.JSONEq(t, `[{"name":"widgets","publisher":"`+alice+`","events":1}]`, got.Body)
		assert.Equal(t, 1, strings.Count(a.Log.String(), "skipped topics with damaged data"), a.Log)
		assert.Contains(t, a.Log.String(), "keys=[topic:gadgets]")
	})
}

func TestAClientThatIsGoneIsStillShownAsThePublisher(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	require.NoError(t, a.PutToken(t.Context(), "s3cret", "carol"))
	a.RequireDone("s3cret", "POST", "/topics/a", `{"type":"noop","url":"https://x.example/"}`)
	a.RequireDone(rootKey, "DELETE", "/api_tokens/s3cret", "")
	assert.JSONEq(t, `[{"name":"a","publisher":"carol","events":1}]`, a.Do(bob, "GET", "/topics", "").Body)
}

func TestOneTopic(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://bob.example/","timeout":60000}`)
		assert.JSONEq(t, `{"name":"widgets","publisher":null,"events":0,"last_event":null,
			"subscribers":[{"name":"bob","health_points":100,"queued":0,"oldest":null}]}`, a.Do(alice, "GET", "/topics/widgets", "").Body)

		a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"update","url":"https://x.example/1","timestamp":5,"data":{"n":9007199254740993}}`)
		got := a.Do(bob, "GET", "/topics/widgets", "").Body
		assert.Regexp(t, `"last_event":{"topic":"widgets","type":"update","url":"https://x.example/1","t":5,"data":{"n":9007199254740993}}`, got)
		assert.Regexp(t, `"publisher":"alice","events":1,`, got)
		assert.Regexp(t, `"name":"bob","health_points":100,"queued":1,"oldest":\d{13}}`, got)
		assert.NotContains(t, got, alice)
		assert.NotContains(t, got, bob)
		assert.Contains(t, a.Do(rootKey, "GET", "/topics/widgets", "").Body, `"publisher":"`+alice+`"`)
		assert.Equal(t, 404, a.Problem(bob, "GET", "/topics/gadgets", "").Status)
		assert.Equal(t, 400, a.Problem(bob, "GET", "/topics/widgets?limit=1", "").Status)

		require.NoError(t, redis.Raw.HSet(t.Context(), "topic:widgets", "last_event", "x").Err())
		require.NoError(t, redis.Raw.Set(t.Context(), "subscriber:"+bob, "x", 0).Err())
		got = a.Do(alice, "GET", "/topics/widgets", "").Body
		assert.Regexp(t, `"last_event":{"unreadable":true},"subscribers":\[\]}`, got)
		assert.Contains(t, a.Log.String(), "keys=[subscriber:bob]")
	})
}

func TestDeleteTopic(t *testing.T) {
	redis := rdbtest.Embedded(t)
	a := newAPI(t, redis)
	for _, topic := range []string{"one", "two"} {
		a.RequireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		assert.Equal(t, 403, a.Problem(bob, "DELETE", "/topics/"+topic, "").Status)
	}
	a.RequireDone(alice, "DELETE", "/topics/one", "")
	a.RequireDone(rootKey, "DELETE", "/topic/two", "")
	assert.Equal(t, 404, a.Problem(alice, "DELETE", "/topics/one", "").Status)
	assert.Equal(t, 404, a.Problem(alice, "DELETE", "/topics/One", "").Status)
	redis.Raw.SAdd(t.Context(), "topics", "Widgets") // as the Ruby original let in
	a.RequireDone(rootKey, "DELETE", "/topics/Widgets", "")
	assert.JSONEq(t, `[]`, a.Do(alice, "GET", "/topics", "").Body)
}

// newLimitedAPI is newAPI with limits of topics.
func newLimitedAPI(t *testing.T, redis *rdbtest.Server) *api {
	t.Helper()
	st := storetest.Open(t, redis, func(o *store.Options) { o.MaxClientTopics, o.MaxTopics = 3, 5 })
	return withSchemes(webtest.On(t, st, func(c *web.Config) { c.Subscriber.MaxTopics = 4 }))
}

func TestLimitsOfTopicsAreReported(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newLimitedAPI(t, redis)
		subscription := func(topics string) string { return `{"callback":"https://x.example/","topics":` + topics + `}` }
		const event = `{"type":"noop","url":"https://x.example/"}`
		a.RequireDone(alice, "POST", "/subscription", subscription(`["a","b","c"]`))
		p := a.Problem(alice, "POST", "/subscription", subscription(`["a","b","c","d"]`))
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "more than 3 topics")
		p = a.Problem(alice, "POST", "/topics/d", event)
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "more than 3 topics")
		p = a.Problem(bob, "POST", "/subscription", subscription(`["a","b","c","d","e"]`))
		assert.Equal(t, 400, p.Status)
		assert.Equal(t, "/topics", p.Pointer)
		assert.Contains(t, p.Detail, "at most 4")
		a.RequireDone(bob, "POST", "/subscription", subscription(`["a","b","d","e"]`))
		p = a.Problem(bob, "POST", "/topics/f", event)
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "limit of 5 topics")
		a.RequireDone(rootKey, "DELETE", "/topics/e", "")
		a.RequireDone(bob, "POST", "/topics/f", event)
		storetest.RequireSound(t, a.Store)
	})
}
