package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// TestADamagedTopicHidesNoOther overwrites a topic's key, as a foreign program might.
func TestADamagedTopicHidesNoOther(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		for _, topic := range []string{"gadgets", "widgets"} {
			a.RequireDone(alice, "POST", "/topics/"+topic, `{"type":"noop","url":"https://x.example/"}`)
		}
		p := a.Home("gadgets").Partition()
		require.NoError(t, p.Set(t.Context(), p.Namespace()+"topic:gadgets", "x", 0).Err())
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

		home, p := a.Home("widgets").Partition(), a.Of(bob).Partition()
		require.NoError(t, home.HSet(t.Context(), home.Namespace()+"topic:widgets", "last_event", "x").Err())
		require.NoError(t, p.Set(t.Context(), p.Namespace()+"subscriber:"+bob, "x", 0).Err())
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
	p := a.Home("Widgets").Partition()
	p.SAdd(t.Context(), p.Namespace()+"topics", "Widgets") // as the Ruby original let in
	a.RequireDone(rootKey, "DELETE", "/topics/Widgets", "")
	assert.JSONEq(t, `[]`, a.Do(alice, "GET", "/topics", "").Body)
}

// newLimitedAPI is newAPI with limits of topics.
func newLimitedAPI(t *testing.T, redis *rdbtest.Server) *api {
	t.Helper()
	all := storetest.OpenAll(t, redis, func(o *store.Options) { o.MaxClientTopics, o.MaxTopics = 3, 5 })
	return withSchemes(webtest.On(t, all, func(c *web.Config) { c.Subscriber.MaxTopics = 4 }))
}

// topicsOfOneHome are the names of some topics that one partition is the home of.
func topicsOfOneHome(a *api, count int) (topics []string) {
	for i := 0; len(topics) < count; i++ {
		name := "topic_" + strings.Repeat("x", i)
		if a.Home(bus.TopicName(name)) == a.Home("topic_") {
			topics = append(topics, name)
		}
	}
	return topics
}

// TestLimitsOfTopicsAreReported has topics of one home: as they are published to, each home keeps
// the limits by itself.
func TestLimitsOfTopicsAreReported(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newLimitedAPI(t, redis)
		topics := topicsOfOneHome(a, 6)
		subscription := func(first, last int) string {
			list, err := json.Marshal(topics[first : last+1])
			require.NoError(t, err)
			return `{"callback":"https://x.example/","topics":` + string(list) + `}`
		}
		const event = `{"type":"noop","url":"https://x.example/"}`
		a.RequireDone(alice, "POST", "/subscription", subscription(0, 2))
		p := a.Problem(alice, "POST", "/subscription", subscription(0, 3))
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "more than 3 topics")
		p = a.Problem(alice, "POST", "/topics/"+topics[3], event)
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "more than 3 topics")
		p = a.Problem(bob, "POST", "/subscription", subscription(0, 4))
		assert.Equal(t, 400, p.Status)
		assert.Equal(t, "/topics", p.Pointer)
		assert.Contains(t, p.Detail, "at most 4")
		a.RequireDone(bob, "POST", "/subscription", subscription(1, 4))
		p = a.Problem(bob, "POST", "/topics/"+topics[5], event)
		assert.Equal(t, 409, p.Status)
		assert.Contains(t, p.Detail, "limit of 5 topics")
		a.RequireDone(rootKey, "DELETE", "/topics/"+topics[4], "")
		a.RequireDone(bob, "POST", "/topics/"+topics[5], event)
		storetest.RequireAllSound(t, a.Bus)
	})
}
