package web_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
)

// defaults are the settings of a subscriber of widgets that has set nothing else, without status.
const defaults = `{"topics":["widgets"],"callback":"https://a.example/","uuid":null,"timeout":500,"max":100,
	"max_bytes":null,"max_requests_per_minute":null,"max_events_per_minute":null,
	"lanes":1,"order_key":"/url","strict_order":false,"partial":false,"keep_age":null,"keep_events":null,"gap_notices":false,
	"dead_letters":null,"log_attempts":"failures"}`

// settings returns the response of GET /subscriber, and its status apart.
func (a subscriberAPI) settings(who, path string) (settings string, status map[string]any) {
	a.T.Helper()
	got := a.Do(who, "GET", path, "")
	require.Equal(a.T, 200, got.Status, got.Body)
	var shown map[string]any
	require.NoError(a.T, json.Unmarshal([]byte(got.Body), &shown))
	status = shown["status"].(map[string]any)
	delete(shown, "status")
	text, err := json.Marshal(shown)
	require.NoError(a.T, err)
	return string(text), status
}

// TestWhatIsStoredIsAcceptedAgain has clients whose subscriptions another bus has stored, which
// subscribe again when they start.
func TestWhatIsStoredIsAcceptedAgain(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","uuid":"u"}`)
		p := a.Of(alice).Partition()
		long := "https://a.example/" + strings.Repeat("x", 1100)
		for _, stored := range []struct {
			fields   []any
			sent     string // a part of a subscription
			pointer  string
			callback string
		}{
			{[]any{"uuid", "a:b"}, `"uuid":"a:b"`, "/uuid", ""},
			{[]any{"uuid", strings.Repeat("u", 300)}, `"uuid":"` + strings.Repeat("u", 300) + `"`, "/uuid", ""},
			{[]any{"callback", long}, "", "/callback", long},
			{[]any{"callback", "https://u@a.example/#x", "uuid", "a:b"}, `"uuid":"a:b"`, "/callback", "https://u@a.example/#x"},
			{[]any{"max_events", "20000"}, `"max":20000`, "/max", ""},
		} {
			callback := cmp.Or(stored.callback, "https://a.example/")
			body := strings.Replace(`{"topics":["widgets"],"callback":"`+callback+`",`+stored.sent+`}`, ",}", "}", 1)
			change := strings.Replace(`{"callback":"`+callback+`",`+stored.sent+`}`, ",}", "}", 1)
			assert.Equal(t, stored.pointer, a.Problem(alice, "POST", "/subscription", body).Pointer, "it is not stored yet")
			require.NoError(t, p.HSet(t.Context(), p.Namespace()+"subscriber:"+alice, stored.fields...).Err())
			before := rdbtest.Dump(t, redis.Raw)[p.Namespace()+"subscriber:"+alice]
			a.RequireDone(alice, "POST", "/subscription", body)
			a.RequireDone(alice, "PATCH", "/subscriber", change)
			assert.Equal(t, before, rdbtest.Dump(t, redis.Raw)[p.Namespace()+"subscriber:"+alice])
			assert.Equal(t, stored.pointer, a.Problem(bob, "POST", "/subscription", body).Pointer, "another client has nothing stored")
			a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","max":100}`)
		}
		own, _ := a.settings(alice, "/subscriber")
		assert.JSONEq(t, defaults, own, "without a uuid there is none")
	})
}

func TestSettingsAreShownAndChanged(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		listed := a.Do(alice, "GET", "/subscriptions", "").Body
		namespace := a.Of(alice).Partition().Namespace()
		founding := rdbtest.Dump(t, redis.Raw)[namespace+"subscriber:"+alice]
		require.NotEmpty(t, founding)
		shown := func() string {
			own, _ := a.settings(alice, "/subscriber")
			roots, _ := a.settings(rootKey, "/subscribers/alice--1")
			assert.Equal(t, own, roots)
			return own
		}
		// with returns the defaults with other values in their place.
		with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(defaults) }
		assert.JSONEq(t, defaults, shown())

		const letters = `{"attempts":3,"keep_events":10000,"keep_bytes":10000000,"keep_age":604800000}`
		all := with(`"max_bytes":null`, `"max_bytes":2048`, `"max_requests_per_minute":null`, `"max_requests_per_minute":60`,
			`"max_events_per_minute":null`, `"max_events_per_minute":600`, `"strict_order":false`, `"strict_order":true`,
			`"lanes":1`, `"lanes":8`, `"order_key":"/url"`, `"order_key":"/data/account"`, `"partial":false`, `"partial":true`, `"dead_letters":null`, `"dead_letters":`+letters, `"failures"`, `"all"`)
		a.RequireDone(alice, "PATCH", "/subscriber", `{"max_bytes":2048,"max_requests_per_minute":60,"max_events_per_minute":600,
			"lanes":8,"order_key":"/data/account","strict_order":true,"partial":true,"dead_letters":{"attempts":3},"log_attempts":"all"}`)
		assert.JSONEq(t, all, shown())
		a.RequireDone(alice, "PATCH", "/subscriber", `{}`)
		assert.JSONEq(t, all, shown(), "what is left out stays")
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","partial":null,"max_bytes":null}`)
		assert.JSONEq(t, all, shown(), "null is as if left out, when all is set")
		a.RequireDone(rootKey, "PATCH", "/subscribers/alice--1", `{"dead_letters":{"age":60000},"partial":null}`)
		assert.JSONEq(t, strings.NewReplacer(`"attempts":3`, `"age":60000`, `"partial":true`, `"partial":false`).Replace(all), shown(),
			"an object is replaced, null is the default")
		a.RequireDone(alice, "PATCH", "/subscriber", `{"max_bytes":null,"max_requests_per_minute":null,"max_events_per_minute":null,
			"lanes":null,"order_key":null,"strict_order":null,"dead_letters":null,"log_attempts":null}`)
		assert.JSONEq(t, defaults, shown())
		assert.Equal(t, founding, rdbtest.Dump(t, redis.Raw)[namespace+"subscriber:"+alice])
		assert.NotContains(t, rdbtest.Dump(t, redis.Raw), namespace+"options:"+alice)
		assert.JSONEq(t, listed, a.Do(alice, "GET", "/subscriptions", "").Body)

		a.RequireDone(alice, "PATCH", "/subscriber", `{"topics":["gadgets","widgets"],"callback":"https://c.example/","uuid":"u","timeout":0,"max":7}`)
		assert.JSONEq(t, with(`["widgets"]`, `["gadgets","widgets"]`, "a.example", "c.example", `"uuid":null`, `"uuid":"u"`,
			`"timeout":500`, `"timeout":0`, `"max":100`, `"max":7`), shown())
		a.RequireDone(alice, "PATCH", "/subscriber", `{"topics":["widgets"],"callback":"https://a.example/","uuid":null,"timeout":null,"max":null}`)
		assert.JSONEq(t, defaults, shown())
		assert.Regexp(t, `msg="changed a subscriber" request_id=\w+ client=root fields="\[dead_letters partial\]" subscriber=alice`, a.Log.String())
		assert.NotContains(t, a.Log.String(), alice)

		a.RequireDone(bob, "POST", "/subscriber", `{"topics":["widgets"],"callback":"https://b.example/","log_attempts":"none"}`)
		settings, _ := a.settings(bob, "/subscriber")
		assert.JSONEq(t, with("a.example", "b.example", "failures", "none"), settings)
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestSettingsAreRefused(t *testing.T) {
	deny, err := bus.ParseDenyList("loopback")
	require.NoError(t, err)
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis, func(c *web.Config) { c.Subscriber.Deny, c.Subscriber.MaxTopics = deny, 2 })
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		before := rdbtest.Dump(t, redis.Raw)
		for _, c := range []struct{ member, pointer string }{
			{`"lane":4`, "/lane"}, {`"lanes":0`, "/lanes"}, {`"lanes":65`, "/lanes"}, {`"lanes":1.5`, "/lanes"}, {`"lanes":"4"`, "/lanes"},
			{`"order_key":"data/account"`, "/order_key"}, {`"order_key":"/data/~2"`, "/order_key"}, {`"order_key":7`, "/order_key"},
			{`"order_key":"/` + strings.Repeat("k", 128) + `"`, "/order_key"},
			{`"Max_bytes":2048`, "/Max_bytes"}, {`"plan":"abcdefgh"`, "/plan"}, {`"status":{}`, "/status"},
			{`"max_bytes":1023`, "/max_bytes"}, {`"max_bytes":2048.0`, "/max_bytes"}, {`"max_bytes":"2048"`, "/max_bytes"},
			{`"max_requests_per_minute":0`, "/max_requests_per_minute"}, {`"max_events_per_minute":600000001`, "/max_events_per_minute"},
			{`"partial":1`, "/partial"}, {`"strict_order":"true"`, "/strict_order"}, {`"log_attempts":"some"`, "/log_attempts"},
			{`"dead_letters":true`, "/dead_letters"}, {`"dead_letters":{"attempts":0}`, "/dead_letters/attempts"},
			{`"dead_letters":{"keep":1}`, "/dead_letters/keep"}, {`"partial":true,"partial":true`, "/partial"},
			{`"dead_letters":{"age":60000,"age":60000}`, "/dead_letters/age"},
		} {
			for _, request := range [][2]string{
				{"PATCH /subscriber", `{` + c.member + `}`},
				{"POST /subscription", `{"topics":["widgets"],"callback":"https://b.example/",` + c.member + `}`},
			} {
				method, path, _ := strings.Cut(request[0], " ")
				got := a.Problem(alice, method, path, request[1])
				assert.Equal(t, 400, got.Status, request)
				assert.Equal(t, c.pointer, got.Pointer, "%s: %s", request, got.Detail)
			}
		}
		for body, pointer := range map[string]string{
			`{"topics":null}`: "/topics", `{"topics":["a","b","c"]}`: "/topics", `{"topics":["A"]}`: "/topics/0",
			`{"callback":null}`: "/callback", `{"callback":""}`: "/callback", `{"callback":"http://b.example/"}`: "/callback",
			`{"callback":"https://127.0.0.1/"}`: "/callback", `{"uuid":"a:b"}`: "/uuid", `{"timeout":-1}`: "/timeout",
			`{"max":0}`: "/max", `{"max":10001}`: "/max", `{"max":"1"}`: "/max", `[]`: "", ``: "",
		} {
			got := a.Problem(alice, "PATCH", "/subscriber", body)
			assert.Equal(t, 400, got.Status, body)
			assert.Equal(t, pointer, got.Pointer, "%s: %s", body, got.Detail)
		}
		assert.Contains(t, a.Problem(alice, "PATCH", "/subscriber", `{"lane":4}`).Detail, "known are topics, callback, uuid, timeout, max, max_bytes")
		assert.Equal(t, 413, a.Problem(alice, "PATCH", "/subscriber", `{"uuid":"`+strings.Repeat("u", 4<<20)+`"}`).Status)
		assert.Equal(t, before, rdbtest.Dump(t, redis.Raw), "nothing was changed")
	})
}

func TestStatusOfASubscriber(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.bury(redis, 2)
		status := func() map[string]any {
			_, status := a.settings(alice, "/subscriber")
			return status
		}
		died := storetest.After(1000).UnixMilli()
		bytes := 3 * len(storetest.Packed(t, "widgets", 1))
		idle := fmt.Sprintf(`{"queued":0,"dead_letters":{"letters":2,"events":3,"bytes":%d,"oldest_at":%d},"health_points":100,
			"last_attempted_at":null,"paused_until":null,"throttled_until":null,"paced_until":null,"next_delivery_at":null,"gap":null,"blocked":0,"replays":0,"signed":false}`, bytes, died)
		text, err := json.Marshal(status())
		require.NoError(t, err)
		assert.JSONEq(t, idle, string(text))
		before := time.Now()
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventsText(1, 3))
		assert.EqualValues(t, 3, status()["queued"])
		next := time.UnixMilli(int64(status()["next_delivery_at"].(float64)))
		assert.WithinRange(t, next, before, time.Now().Add(bus.DefaultTimeout))

		future := float64(time.Now().Add(time.Hour).UnixMilli())
		p := a.Of(alice).Partition()
		p.HSet(t.Context(), p.Namespace()+"delivery:"+alice, "throttled_until", future, "paced_until", before.UnixMilli())
		held := status()
		assert.Equal(t, []any{future, nil, future}, []any{held["throttled_until"], held["paced_until"], held["next_delivery_at"]})
	})
}

// TestLanes changes the lanes again and again while events are queued.
func TestLanes(t *testing.T) {
	a := newSubscriberAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/subscription",
		`{"topics":["widgets"],"callback":"https://a.example/","lanes":2,"order_key":"/topic"}`)
	for lanes := 2; lanes <= 20; lanes++ {
		a.RequireDone(alice, "PATCH", "/subscriber", fmt.Sprintf(`{"lanes":%d}`, lanes))
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(lanes))
		var batches []struct{ Lane, Events *int }
		require.NoError(t, json.Unmarshal([]byte(a.Do(alice, "GET", "/subscriber/batches", "").Body), &batches))
		events := 0
		for _, batch := range batches {
			events += *batch.Events
			assert.Less(t, *batch.Lane, lanes)
		}
		require.Equal(t, lanes-1, events)
	}
	a.RequireDone(alice, "PATCH", "/subscriber", `{"lanes":1}`)
	settings, _ := a.settings(alice, "/subscriber")
	assert.Contains(t, settings, `"lanes":1,`)
	storetest.RequireAllSound(t, a.Bus)
}

func TestPauseAndResume(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/","max":1}`)
		a.RequireDone(bob, "POST", "/topics/widgets", webtest.EventText(1))
		take := func() bool {
			taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
			require.NoError(t, err)
			return taken.Task != nil
		}
		pausedUntil := func() any {
			_, status := a.settings(rootKey, "/subscribers/alice--1")
			return status["paused_until"]
		}
		a.RequireDone(alice, "POST", "/subscriber/resume", "")
		until := time.Now().Add(time.Hour).UnixMilli()
		a.RequireDone(alice, "POST", "/subscriber/pause", fmt.Sprintf(`{"until":%d}`, until))
		assert.EqualValues(t, until, pausedUntil())
		a.RequireDone(rootKey, "POST", "/subscribers/alice--1/pause", "")
		assert.EqualValues(t, bus.Forever.UnixMilli(), pausedUntil())
		assert.False(t, take(), "nothing is delivered")
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		assert.NotNil(t, pausedUntil(), "subscribing does not resume")
		a.RequireDone(alice, "POST", "/subscriber/resume", "")
		assert.Nil(t, pausedUntil())
		assert.True(t, take())
		for _, line := range []string{
			`msg="paused a subscriber" request_id=\w+ client=alice until=`,
			`msg="paused a subscriber" request_id=\w+ client=root until=9999-12-31T23:59:59.999Z subscriber=alice`,
			`msg="resumed a subscriber" request_id=\w+ client=alice`,
		} {
			assert.Regexp(t, line, a.Log.String())
		}
		now := time.Now()
		for _, body := range []string{
			fmt.Sprintf(`{"until":%d}`, now.Add(-time.Second).UnixMilli()), fmt.Sprintf(`{"until":%d}`, now.AddDate(1, 0, 2).UnixMilli()),
			`{"until":9223372036854775807}`, `{"until":-1}`, `{"until":"tomorrow"}`, `{"until":1.5}`, `{"from":1}`,
		} {
			got := a.Problem(alice, "POST", "/subscriber/pause", body)
			assert.Equal(t, 400, got.Status, body)
			assert.NotEmpty(t, got.Pointer, body)
		}
		assert.Nil(t, pausedUntil())
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestATestEventIsQueued(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
		a.RequireDone(alice, "POST", "/subscriber/pause", "")
		got := a.Do(alice, "POST", "/subscriber/test", "")
		require.Equal(t, 202, got.Status, got.Body)
		var sent struct{ Batch bus.BatchID }
		require.NoError(t, json.Unmarshal([]byte(got.Body), &sent))
		assert.Contains(t, a.Log.String(), `msg="queued a test event"`)
		assert.Equal(t, 409, a.Problem(alice, "POST", "/subscriber/test", "").Status, "one waits")
		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.NotNil(t, taken.Task, "the pause does not stop it")
		assert.Equal(t, sent.Batch, taken.Task.Payload.(*store.Delivery).Batch)
		storetest.RequireAllSound(t, a.Bus)
	})
}

func TestRootSubscribesAndUnsubscribesAClient(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		const subscription = `{"topics":["gadgets","widgets"],"callback":"https://a.example/"}`
		assert.Equal(t, 404, a.Problem(rootKey, "POST", "/subscribers/nobody--9", subscription).Status)
		assert.Equal(t, 403, a.Problem(alice, "POST", "/subscribers/alice--1", subscription).Status)
		assert.Equal(t, 403, a.Problem(alice, "DELETE", "/subscribers/alice--1", "").Status)
		a.RequireDone(rootKey, "POST", "/subscribers/alice--1", subscription)
		a.RequireDone(rootKey, "DELETE", "/subscribers/alice--1/topics/gadgets", "")
		settings, _ := a.settings(alice, "/subscriber")
		assert.JSONEq(t, defaults, settings)
		assert.Regexp(t, `msg="subscription set" request_id=\w+ client=root topics=2 callback_host=a.example subscriber=alice`, a.Log.String())
		a.RequireDone(rootKey, "DELETE", "/subscribers/alice--1", "")
		assert.Equal(t, 404, a.Problem(rootKey, "DELETE", "/subscribers/alice--1", "").Status)
		assert.Equal(t, 404, a.Problem(alice, "GET", "/subscriber", "").Status)
		assert.NotContains(t, a.Log.String(), alice)
	})
}

// TestEitherTokenShowsTheSubscriber rotates the token of a subscriber.
func TestEitherTokenShowsTheSubscriber(t *testing.T) {
	a := newSubscriberAPI(t, rdbtest.Embedded(t))
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
	var rotation struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(a.Do(rootKey, "POST", "/api_tokens/alice--1/rotate", "").Body), &rotation))
	a.RequireDone(alice, "PATCH", "/subscriber", `{"partial":true}`)
	for _, token := range []string{alice, rotation.Token} {
		settings, _ := a.settings(token, "/subscriber")
		assert.Contains(t, settings, `"partial":true`)
		settings, _ = a.settings(rootKey, "/subscribers/"+token)
		assert.Contains(t, settings, `"partial":true`)
		assert.Equal(t, "[]", a.Do(token, "GET", "/subscriber/attempts", "").Body)
		assert.Equal(t, "[]", a.Do(token, "GET", "/subscriber/secrets", "").Body)
	}
}
