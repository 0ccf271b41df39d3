package web_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
	"routemaster/internal/wire"
)

// note writes a record of an attempt for alice, the newest.
func (a subscriberAPI) note(r wire.AttemptRecord) {
	a.T.Helper()
	p := a.Of(alice).Partition()
	require.NoError(a.T, p.LPush(a.T.Context(), p.Namespace()+"attempts:"+alice, wire.PackAttempt(r)).Err())
}

func TestAttemptsAreListed(t *testing.T) {
	const first, second = bus.BatchID("AAAABBBBCCCCDDDDEEEE"), bus.BatchID("BBBBBBBBBBBBBBBBBBBB")
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		assert.Equal(t, "[]", a.Do(alice, "GET", "/subscriber/attempts", "").Body)
		ms := storetest.Start.UnixMilli()
		a.note(wire.AttemptRecord{
			At: storetest.After(0), Batch: first, Attempt: 1, Events: 3, Outcome: bus.OutcomeFailed, Error: bus.ErrorRefused,
			Detail: "dial tcp 10.0.0.1:443: connection refused", Duration: 7 * time.Millisecond, RetryAt: storetest.After(200),
		})
		a.note(wire.AttemptRecord{
			At: storetest.After(200), Batch: first, Attempt: 2, Events: 3, Outcome: bus.OutcomePartial, Status: 207, Excerpt: `{"retry":[1]}`,
			Duration: 5 * time.Millisecond, Public: true, WebhookID: "id-1", Acknowledged: 2, Retried: 1,
		})
		a.note(wire.AttemptRecord{At: storetest.After(300), Batch: second, Attempt: 1, Events: 1, Outcome: bus.OutcomeAcknowledged, Status: 204, Test: true})

		refused := func(class, duration, detail string) string {
			return fmt.Sprintf(`{"at":%d,"batch":"%s","attempt":1,"events":3,"outcome":"failed","status":null,"error":"%s","duration":%s,
				"retry_at":%d,"excerpt":null,"webhook_id":null,"replay":null,"test":false%s}`, ms, first, class, duration, ms+200, detail)
		}
		others := fmt.Sprintf(`{"at":%d,"batch":"%s","attempt":1,"events":1,"outcome":"acknowledged","status":204,"error":null,"duration":0,
				"retry_at":null,"excerpt":null,"webhook_id":null,"replay":null,"test":true},
			{"at":%d,"batch":"%s","attempt":2,"events":3,"outcome":"partial","status":207,"error":null,"duration":5,"retry_at":null,
				"excerpt":"{\"retry\":[1]}","webhook_id":"id-1","replay":null,"test":false,"acknowledged":2,"retried":1}`, ms+300, second, ms+200, first)
		assert.JSONEq(t, "["+others+","+refused("unreachable", "0", "")+"]", a.Do(alice, "GET", "/subscriber/attempts", "").Body)
		assert.JSONEq(t, "["+others+","+refused("refused", "7", `,"detail":"dial tcp 10.0.0.1:443: connection refused"`)+"]",
			a.Do(rootKey, "GET", "/subscribers/alice--1/attempts", "").Body)

		count := func(query string) int {
			var found []any
			require.NoError(t, json.Unmarshal([]byte(a.Do(alice, "GET", "/subscriber/attempts"+query, "").Body), &found))
			return len(found)
		}
		assert.Equal(t, 2, count("?batch="+string(first)))
		assert.Equal(t, 1, count("?outcome=acknowledged&batch="+string(second)))
		assert.Equal(t, 0, count("?outcome=dead"))
		assert.Len(t, a.list(alice, "/subscriber/attempts?limit=1"), 3)
		for _, query := range []string{"?outcome=expired", "?outcome=", "?limit=0", "?after=x", "?from=1"} {
			assert.Equal(t, 400, a.Problem(alice, "GET", "/subscriber/attempts"+query, "").Status, query)
		}
	})
}

func TestQueuedBatches(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","max":2,"timeout":3600000}`)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/"}`)
		a.RequireDone(alice, "POST", "/topics/widgets", webtest.EventsText(1, 7))
		ids := a.list(alice, "/subscriber/batches?limit=3")
		require.Len(t, ids, 4)
		var batches []struct {
			ID, State        string
			Attempts, Events int
		}
		require.NoError(t, json.Unmarshal([]byte(a.Do(rootKey, "GET", "/subscribers/alice--1/batches", "").Body), &batches))
		for i, batch := range batches {
			assert.Equal(t, ids[i], batch.ID)
			assert.Zero(t, batch.Attempts)
		}
		assert.Equal(t, "waiting", batches[0].State)
		assert.Equal(t, "current", batches[3].State)
		assert.Equal(t, 2, batches[0].Events)
		assert.Equal(t, 1, batches[3].Events)

		path := "/subscriber/batches/" + ids[0]
		var shown struct{ Events []struct{ URL string } }
		require.NoError(t, json.Unmarshal([]byte(a.Do(alice, "GET", path+"?from=1", "").Body), &shown))
		require.Len(t, shown.Events, 1)
		assert.Equal(t, "https://x.example/2", shown.Events[0].URL)
		assert.Contains(t, a.Do(alice, "GET", path+"?from=2", "").Body, `"events":[]`)
		assert.Equal(t, 404, a.Problem(bob, "GET", path, "").Status, "it is not bob's")
		assert.Equal(t, 404, a.Problem(bob, "DELETE", path, "").Status)

		a.RequireDone(alice, "DELETE", path, "")
		assert.Equal(t, 404, a.Problem(alice, "DELETE", path, "").Status)
		assert.Regexp(t, `msg="removed a batch" request_id=\w+ client=alice batch=`+ids[0]+` events=2 dead_letter=false`, a.Log.String())
		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.NotNil(t, taken.Task)
		inFlight := "/subscriber/batches/" + ids[1]
		assert.Equal(t, 409, a.Problem(alice, "DELETE", inFlight, "").Status)
		assert.Contains(t, a.Do(alice, "GET", inFlight, "").Body, `"state":"delivering","next_at":null`)
		assert.Equal(t, ids[1:], a.list(alice, "/subscriber/batches"))
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestARemovedBatchBecomesADeadLetter also redelivers the dead letter, and checks the counters.
func TestARemovedBatchBecomesADeadLetter(t *testing.T) {
	redis := rdbtest.Embedded(t)
	recorder := telemetry.NewRecorder(telemetry.NewRegistry(), storetest.OpenAll(t, redis).First(), slog.New(slog.DiscardHandler))
	a := newSubscriberAPI(t, redis, func(c *web.Config) { c.Subscriber.Recorder = recorder })
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","max":2,"dead_letters":{}}`)
	a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventsText(1, 2))
	batch := a.list(alice, "/subscriber/batches")
	require.Len(t, batch, 1)
	a.RequireDone(rootKey, "DELETE", "/subscribers/alice--1/batches/"+batch[0], "")
	assert.Regexp(t, `msg="removed a batch" request_id=\w+ client=root batch=\S+ events=2 dead_letter=true subscriber=alice`, a.Log.String())
	assert.Empty(t, a.list(alice, "/subscriber/batches"))
	letters := a.list(alice, "/subscriber/dead_letters?reason=removed")
	require.Len(t, letters, 1)
	counted := func() (removed, added int64) {
		recorder.Flush(t.Context())
		counters, err := inspect.Of(a.First()).Counters(t.Context())
		require.NoError(t, err)
		queue := bus.Tag{Name: "queue", Value: "alice"}
		return counters[bus.NewCounter("events.removed", queue)], counters[bus.NewCounter("events.added", queue)]
	}
	removed, added := counted()
	assert.Equal(t, []int64{2, 0}, []int64{removed, added})
	a.RequireDone(alice, "POST", "/subscriber/dead_letters/"+letters[0]+"/redeliver", "")
	removed, added = counted()
	assert.Equal(t, []int64{2, 2}, []int64{removed, added})
	assert.Len(t, a.list(alice, "/subscriber/batches"), 1)
	storetest.RequireAllSound(t, a.Bus)
}
