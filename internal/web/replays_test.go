package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web/webtest"
)

func TestReplays(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventsText(1, 3))
		a.RequireDone(bob, "PUT", "/topics/widgets/history", `{"events":1000}`)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventsText(4, 10))
		a.RequireDone(bob, "POST", "/topics/things", webtest.EventText(1))
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets","things"],"callback":"https://a.example/","timeout":0}`)
		assert.Equal(t, "[]", a.Do(alice, "GET", "/subscriber/replays", "").Body)

		begun := a.Do(alice, "POST", "/subscriber/replays", `{"topic":"widgets","from":1,"to":9}`)
		require.Equal(t, 202, begun.Status, begun.Body)
		var done, cancelled struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(begun.Body), &done))
		assert.JSONEq(t, fmt.Sprintf(`{"id":"%s","topic":"widgets","from":4,"to":9,"events":6}`, done.ID), begun.Body)
		assert.Contains(t, a.Log.String(), `msg="a replay began" request_id=`)
		assert.Contains(t, a.Log.String(), fmt.Sprintf("client=alice replay=%s topic=widgets from=4 to=9 events=6\n", done.ID))
		assert.Equal(t, 409, a.Problem(alice, "POST", "/subscriber/replays", `{"topic":"widgets","since":0}`).Status, "one runs")
		_, status := a.settings(alice, "/subscriber")
		assert.EqualValues(t, 1, status["replays"])

		_, err := store.NewReplays(a.Bus, a.Of(alice)).Copy(t.Context(), storetest.Start, func() bool { return true })
		require.NoError(t, err)
		listed := a.Do(rootKey, "GET", "/subscribers/alice--1/replays", "").Body
		assert.Contains(t, listed, `"from":4,"to":9,"next":10,"copied":6,"skipped":0,"state":"done","created_at":`)
		assert.Contains(t, a.Do(alice, "GET", "/subscriber/batches", "").Body, `"replay":"`+done.ID+`"`)

		second := a.Do(rootKey, "POST", "/subscribers/alice--1/replays", `{"topic":"widgets","until":253402300799999}`)
		require.Equal(t, 202, second.Status, second.Body)
		require.NoError(t, json.Unmarshal([]byte(second.Body), &cancelled))
		assert.Contains(t, second.Body, `"from":4,"to":10,"events":7`)
		a.RequireDone(alice, "DELETE", "/subscriber/replays/"+cancelled.ID, "")
		a.RequireDone(alice, "DELETE", "/subscriber/replays/"+cancelled.ID, "")
		assert.Contains(t, a.Do(alice, "GET", "/subscriber/replays", "").Body, `"next":4,"copied":0,"skipped":0,"state":"cancelled"`)
		assert.Contains(t, a.Log.String(), fmt.Sprintf("client=alice replay=%s state=cancelled\n", cancelled.ID))
		assert.NotContains(t, a.Log.String(), alice)
		storetest.RequireAllSound(t, a.Bus)
		for _, want := range []int{2, 1} {
			_, status := a.settings(alice, "/subscriber")
			assert.EqualValues(t, want, status["replays"])
			p := a.Of(alice).Partition()
			require.NoError(t, p.Del(t.Context(), layout.Keys{Namespace: p.Namespace()}.Replay(bus.ReplayID(done.ID))).Err(), "as if it expired")
		}
	})
}

// TestAReplayIsBegunOnceWithAKey repeats the request also when the replay has ended, where without
// a key its events would be delivered again.
func TestAReplayIsBegunOnceWithAKey(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(1))
		a.RequireDone(bob, "PUT", "/topics/widgets/history", `{"events":1000}`)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventsText(2, 5))
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","timeout":0}`)
		begin := func(who, path, body, key string) webtest.Response { return a.DoOnce(who, "POST", path, body, key) }
		first := begin(alice, "/subscriber/replays", `{"topic":"widgets"}`, "k")
		require.Equal(t, 202, first.Status, first.Body)
		require.Equal(t, first.Body, begin(alice, "/subscriber/replays", `{"topic":"widgets"}`, "k").Body, "while it runs")
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(6))
		_, err := store.NewReplays(a.Bus, a.Of(alice)).Copy(t.Context(), storetest.Start, func() bool { return true })
		require.NoError(t, err)
		again := begin(alice, "/subscriber/replays", `{"topic":"widgets"}`, "k")
		require.Equal(t, 202, again.Status)
		require.Equal(t, first.Body, again.Body, "now that it is done")
		for _, body := range []string{`{"topic":"widgets","from":3}`, `{"topic":"things"}`} {
			refused := begin(alice, "/subscriber/replays", body, "k")
			assert.Equal(t, 409, refused.Status, body)
			assert.Contains(t, refused.Body, "with this Idempotency-Key")
		}
		assert.Equal(t, 400, begin(alice, "/subscriber/replays", `{"topic":"widgets"}`, "two words").Status)
		byRoot := begin(rootKey, "/subscribers/alice--1/replays", `{"topic":"widgets"}`, "k")
		require.Equal(t, 202, byRoot.Status)
		assert.NotEqual(t, first.Body, byRoot.Body, "the key is another client's")
		assert.Equal(t, 2, strings.Count(a.Log.String(), "a replay began"))
	})
}

func TestReplaysAreRefused(t *testing.T) {
	a := newSubscriberAPI(t, rdbtest.Embedded(t))
	a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(1))
	a.RequireDone(bob, "PUT", "/topics/widgets/history", `{"events":1000}`)
	a.RequireDone(bob, "POST", "/topics/things", webtest.EventText(1))
	a.RequireDone(bob, "PUT", "/topics/things/history", `{"events":1000}`)
	a.RequireDone(bob, "POST", "/topics/others", webtest.EventText(1))
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets","others"],"callback":"https://a.example/"}`)
	for _, c := range []struct {
		body, pointer string
		status        int
	}{
		{`{}`, "/topic", 400},
		{`{"topic":"widgets","from":1,"since":0}`, "", 400},
		{`{"topic":"widgets","from":1,"to":2,"until":3}`, "", 400},
		{`{"topic":"widgets","from":0}`, "/from", 400},
		{`{"topic":"widgets","from":1,"to":0}`, "/to", 400},
		{`{"topic":"widgets","since":-1}`, "/since", 400},
		{`{"topic":"widgets","from":1,"until":-1}`, "/until", 400},
		{`{"topic":"widgets","from":1.5}`, "/from", 400},
		{`{"topic":"widgets","from":1,"filtered":true}`, "/filtered", 400},
		{`{"topic":"none","from":1}`, "", 404},
		{`{"topic":"NO","from":1}`, "", 404},
		{`{"topic":"others","from":1}`, "/topic", 409},
		{`{"topic":"things","from":1}`, "", 409},
		{`{"topic":"widgets"}`, "", 409},
	} {
		got := a.Problem(alice, "POST", "/subscriber/replays", c.body)
		assert.Equal(t, c.status, got.Status, c.body)
		assert.Equal(t, c.pointer, got.Pointer, c.body)
	}
	a.RequireDone(bob, "POST", "/topics/things", webtest.EventText(1))
	assert.Equal(t, "/topic", a.Problem(alice, "POST", "/subscriber/replays", `{"topic":"things","from":1}`).Pointer, "she is not subscribed")
}
