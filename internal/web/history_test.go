package web_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// historyEvents is the response of GET /topics/{name}/events.
type historyEvents struct {
	First, Last, Next int64
	Events            []map[string]any
}

func (a *api) events(query string) (got historyEvents) {
	a.T.Helper()
	answer := a.Do(bob, "GET", "/topics/widgets/events"+query, "")
	require.Equal(a.T, 200, answer.Status, answer.Body)
	require.NoError(a.T, json.Unmarshal([]byte(answer.Body), &got))
	return got
}

func TestATopicKeepsAHistory(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		ctx := t.Context()
		publish := func(n int, event string) {
			require.NoError(t, storetest.Publish(ctx, a.Home("widgets"), store.Publication{
				Topic: "widgets", Publisher: alice, ReceivedAt: int64(n * 1000), Events: []wire.PackedEvent{wiretest.Pack(t, "widgets", event)},
			}))
		}
		const second = `{"type":"noop","url":"https://x.example/2","timestamp":7,"data":{"a":1.0}}`
		const another = `{"type":"noop","url":"https://x.example/3","timestamp":8}`
		a.RequireDone(alice, "POST", "/topics/widgets", another)
		assert.Equal(t, 404, a.Problem(bob, "GET", "/topics/widgets/history", "").Status)
		assert.Equal(t, 404, a.Problem(bob, "GET", "/topics/widgets/events", "").Status)
		got := a.Problem(bob, "PUT", "/topics/widgets/history", `{"events":3}`)
		assert.Equal(t, 403, got.Status, "it is alice's topic")
		a.RequireDone(alice, "PUT", "/topics/widgets/history", `{"events":2,"bytes":null}`)
		a.RequireDone(rootKey, "PUT", "/topics/widgets/history", `{"events":3,"bytes":60000}`)
		assert.Contains(t, a.Log.String(), `msg="history set" request_id=`)
		assert.Contains(t, a.Log.String(), `client=root topic=widgets events=3 age=0s bytes=60000`)
		assert.JSONEq(t, `{"events":3,"age":null,"bytes":60000,"first":2,"last":1,"oldest_at":null,"stored_events":0,"stored_bytes":0}`,
			a.Do(bob, "GET", "/topics/widgets/history", "").Body)
		assert.Equal(t, historyEvents{First: 2, Last: 1, Next: 2, Events: []map[string]any{}}, a.events("?from=7"))

		publish(2, second)
		publish(3, another)
		publish(4, another)
		p := a.Home("widgets").Partition()
		kept := p.Namespace() + "history:widgets"
		require.NoError(t, p.LSet(ctx, kept, 2, p.LIndex(ctx, kept, 2).Val()[:8]+"\xc1").Err())
		all := []map[string]any{
			{"position": 2., "received_at": 2000., "topic": "widgets", "type": "noop", "url": "https://x.example/2", "t": 7., "data": map[string]any{"a": 1.}},
			{"position": 3., "received_at": 3000., "topic": "widgets", "type": "noop", "url": "https://x.example/3", "t": 8.},
			{"position": 4., "received_at": 4000., "unreadable": true},
		}
		assert.Equal(t, historyEvents{2, 4, 5, all}, a.events(""))
		assert.Equal(t, historyEvents{2, 4, 4, all[:2]}, a.events("?from=1&limit=2"))
		assert.Equal(t, historyEvents{2, 4, 5, all[2:]}, a.events("?from=4"))
		assert.Equal(t, historyEvents{2, 4, 5, all[1:]}, a.events("?since=2001"))
		assert.Equal(t, historyEvents{2, 4, 5, []map[string]any{}}, a.events("?since=4001"))
		shown := a.Do(rootKey, "GET", "/topics/widgets/events?limit=1", "").Body
		assert.Contains(t, shown, `[{"position":2,"received_at":2000,"topic":"widgets","type":"noop",`)
		assert.Contains(t, shown, `"data":{"a":1.0}}`, "as delivered")

		assert.Equal(t, 403, a.Problem(bob, "DELETE", "/topics/widgets/history", "").Status)
		a.RequireDone(alice, "DELETE", "/topics/widgets/history", "")
		assert.Contains(t, a.Log.String(), `msg="history removed" request_id=`)
		assert.Equal(t, 404, a.Problem(alice, "DELETE", "/topics/widgets/history", "").Status)
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestWhatIsWrongWithAHistory(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
	for body, pointer := range map[string]string{
		`{}`: "", `{"events":null}`: "", `{"events":0}`: "/events", `{"events":10000001}`: "/events", `{"events":1.5}`: "/events", `{"events":"1"}`: "/events",
		`{"age":999}`: "/age", `{"age":9223372036854775807}`: "/age", `{"events":1,"bytes":999}`: "/bytes", `{"size":1}`: "/size", `[]`: "",
	} {
		got := a.Problem(alice, "PUT", "/topics/widgets/history", body)
		assert.Equal(t, 400, got.Status, body)
		assert.Equal(t, pointer, got.Pointer, body)
	}
	assert.Equal(t, 404, a.Problem(alice, "GET", "/topics/widgets/history", "").Status, "nothing was set")
	a.RequireDone(alice, "PUT", "/topics/widgets/history", `{"bytes":1000}`)
	for _, query := range []string{
		"?from=-1", "?from=x", "?from=9007199254740992", "?since=-1", "?limit=0", "?limit=1001", "?from=1&since=1", "?to=1", "?from=1&from=2",
	} {
		assert.Equal(t, 400, a.Problem(bob, "GET", "/topics/widgets/events"+query, "").Status, query)
	}
	for _, path := range []string{"/topics/none/history", "/topics/none/events", "/topics/none/events?since=1", "/topics/limits%3Awidgets/history"} {
		assert.Contains(t, a.Problem(rootKey, "GET", path, "").Detail, "no such topic", path)
	}
	assert.Contains(t, a.Problem(rootKey, "PUT", "/topics/limits%3Awidgets/history", `{"events":1}`).Detail, "no such topic")
	assert.Equal(t, 400, a.Problem(rootKey, "PUT", "/topics/widgets/history?x=1", `{"events":1}`).Status)
	assert.Equal(t, "GET, HEAD, PUT, DELETE", a.Do(alice, "POST", "/topics/widgets/history", "").Header.Get("Allow"))
}
