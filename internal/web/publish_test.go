package web_test

import (
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/web"
	"routemaster/internal/web/webtest"
	"routemaster/internal/wire"
)

func TestPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/","timeout":0}`)
		before := time.Now().UnixMilli()
		for _, body := range []string{
			`{"type":"create","url":"https://x.example/1","timestamp":-7,"data":{"z":1.0,"a":18446744073709551615}}`,
			`{"\u0075rl":"https://x.example/2","type":"no\u006fp","data":null}`,
		} {
			a.RequireDone(alice, "POST", "/topics/widgets", body)
		}
		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.Len(t, taken.Task.Payload.(*store.Delivery).Events, 2)
		one, err := wire.AppendEventJSON(nil, taken.Task.Payload.(*store.Delivery).Events[0])
		require.NoError(t, err)
		assert.Equal(t, `{"topic":"widgets","type":"create","url":"https://x.example/1","t":-7,"data":{"z":1.0,"a":18446744073709551615}}`, string(one))
		two, err := wire.AppendEventJSON(nil, taken.Task.Payload.(*store.Delivery).Events[1])
		require.NoError(t, err)
		var got struct {
			T    int64
			Data any
		}
		require.NoError(t, json.Unmarshal(two, &got))
		assert.GreaterOrEqual(t, got.T, before)
		assert.LessOrEqual(t, got.T, time.Now().UnixMilli())
		assert.NotContains(t, string(two), "data")

		assert.Equal(t, 403, a.Problem(bob, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`).Status)
	})
}

func TestBulkPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://b.example/","timeout":0,"max":10000}`)
		a.RequireDone(alice, "POST", "/topics/widgets", webtest.EventsText(1, 1000))
		a.RequireDone(alice, "POST", "/topics/widgets", " \n"+webtest.EventsText(1001, 1001))
		assert.Equal(t, 400, a.Problem(alice, "POST", "/topics/widgets", `[]`).Status)

		event := func(bad string) string {
			return "[" + webtest.EventText(1) + "," + webtest.EventText(2) + "," + bad + "," + webtest.EventText(4) + "]"
		}
		for bad, pointer := range map[string]string{
			`{"type":"changed","url":"https://x.example/"}`:              "/2/type",
			`{"type":"noop","url":"http://x.example/"}`:                  "/2/url",
			`{"type":"noop","url":"https://x.example/","data":1e999}`:    "/2/data",
			`{"type":"noop","url":"https://x.example/","timestamp":1.5}`: "/2/timestamp",
			`{"type":"noop","url":"https://x.example/","extra":1}`:       "/2/extra",
			`7`: "/2", `[]`: "/2", `null`: "/2",
		} {
			got := a.Problem(alice, "POST", "/topics/widgets", event(bad))
			assert.Equal(t, 400, got.Status, bad)
			assert.Equal(t, pointer, got.Pointer, bad)
		}
		got := a.Problem(alice, "POST", "/topics/widgets", webtest.EventsText(1, 1001))
		assert.Equal(t, 400, got.Status)
		assert.Contains(t, got.Detail, "more than 1000 events")
		assert.Equal(t, 400, a.Problem(alice, "POST", "/topics/widgets", webtest.EventsText(1, 2)+"x").Status)
		assert.Equal(t, 400, a.Problem(alice, "POST", "/topics/widgets", strings.TrimSuffix(webtest.EventsText(1, 2), "]")).Status)

		// As large as an array may be, and larger.
		room := 4<<20 - len(webtest.EventsText(1, 2)) - 1
		a.RequireDone(alice, "POST", "/topics/widgets", webtest.EventsText(1, 2)+strings.Repeat(" ", room))
		assert.Equal(t, 413, a.Problem(alice, "POST", "/topics/widgets", webtest.EventsText(1, 2)+strings.Repeat(" ", room+2)).Status)
		assert.Equal(t, 413, a.Problem(alice, "POST", "/topics/widgets", webtest.EventText(1)+strings.Repeat(" ", 64<<10+6*64)).Status)
		assert.Equal(t, 413, a.Problem(rootKey, "POST", "/api_tokens", "["+strings.Repeat(" ", 64<<10+6*64)).Status, "arrays are for events only")

		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		require.Len(t, taken.Task.Payload.(*store.Delivery).Events, 1003, "what was refused added nothing")
		for i, packed := range taken.Task.Payload.(*store.Delivery).Events[:1001] {
			json, err := wire.AppendEventJSON(nil, packed)
			require.NoError(t, err)
			require.Contains(t, string(json), "/"+strconv.Itoa(i+1)+`"`, "in order")
		}
		storetest.RequireAllSound(t, a.Bus)
	})
}

// post sends an event with an idempotency key.
func (a *api) post(who, path, body string, keys ...string) (status int) {
	a.T.Helper()
	r := httptest.NewRequestWithContext(a.T.Context(), "POST", path, strings.NewReader(body))
	r.SetBasicAuth(who, "")
	for _, key := range keys {
		r.Header.Add("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	webtest.RequireDocumented(a.T, r, body, w)
	return w.Code
}

// TestIdempotentPublish has topics of one home: it notices a key that is used for both.
func TestIdempotentPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		topics := topicsOfOneHome(a, 2)
		one, other := topics[0], topics[1]
		longest := strings.Repeat("~", 128)
		for _, c := range []struct {
			who, path, body string
			keys            []string
			status          int
		}{
			{alice, "/topics/" + one, webtest.EventText(1), []string{"k"}, 200},
			{alice, "/topics/" + one, webtest.EventText(1), []string{"k"}, 200},
			{alice, "/topics/" + one, webtest.EventText(2), []string{"k"}, 409},
			{alice, "/topics/" + other, webtest.EventText(1), []string{"k"}, 409},
			{alice, "/topics/" + one, webtest.EventsText(1, 3), []string{longest}, 200},
			{alice, "/topics/" + one, webtest.EventsText(1, 3), []string{longest}, 200},
			{bob, "/topics/" + other, webtest.EventText(1), []string{"k"}, 200},
			{alice, "/topics/" + one, webtest.EventText(1), []string{longest + "~"}, 400},
			{alice, "/topics/" + one, webtest.EventText(1), []string{""}, 400},
			{alice, "/topics/" + one, webtest.EventText(1), []string{"a b"}, 400},
			{alice, "/topics/" + one, webtest.EventText(1), []string{"é"}, 400},
			{alice, "/topics/" + one, webtest.EventText(1), []string{"x", "y"}, 400},
		} {
			assert.Equal(t, c.status, a.post(c.who, c.path, c.body, c.keys...), "%s %s %v", c.path, c.body, c.keys)
		}
		listed, _, err := storetest.Topics(t.Context(), inspect.OfBus(a.Bus))
		require.NoError(t, err)
		assert.Equal(t, []bus.Topic{{Name: bus.TopicName(one), Publisher: alice, Owner: "alice", Events: 4}, {Name: bus.TopicName(other), Publisher: bob, Owner: "bob", Events: 1}}, listed)
		storetest.RequireAllSound(t, a.Bus)
	})
}

// TestTheTTLOfAnIdempotencyKey publishes with and without a requested TTL, and checks the TTL in
// Redis.
func TestTheTTLOfAnIdempotencyKey(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis, func(c *web.Config) { c.IdempotencyTTL = 2 * time.Hour })
		p := a.Home("a").Partition()
		kept := p.Namespace() + "idempotency:alice/1"
		for _, c := range []struct {
			key    string
			ttls   []string
			status int
			want   time.Duration
		}{
			{"k", nil, 200, 2 * time.Hour},
			{"k", []string{"60"}, 200, time.Minute},
			{"k", []string{"86400"}, 200, 24 * time.Hour},
			{"k", []string{"59"}, 400, 0},
			{"k", []string{"86401"}, 400, 0},
			{"k", []string{"-600"}, 400, 0},
			{"k", []string{"10m"}, 400, 0},
			{"k", []string{""}, 400, 0},
			{"k", []string{"600", "600"}, 400, 0},
			{"", []string{"600"}, 400, 0},
			{"", nil, 200, 0},
		} {
			require.NoError(t, p.Del(t.Context(), kept).Err())
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/topics/a", strings.NewReader(webtest.EventText(1)))
			r.SetBasicAuth(alice, "")
			if c.key != "" {
				r.Header.Set("Idempotency-Key", c.key)
			}
			r.Header["Idempotency-Expires-In"] = c.ttls
			w := httptest.NewRecorder()
			a.Handler.ServeHTTP(w, r)
			assert.Equal(t, c.status/100, w.Code/100, "%+v: %s", c, w.Body)
			if c.status == 400 {
				assert.Contains(t, w.Body.String(), "Idempotency-Expires-In header")
			}
			ttl := max(p.PTTL(t.Context(), kept).Val(), 0)            // less than that if there is no key
			assert.GreaterOrEqual(t, ttl, c.want-c.want/10, "%+v", c) // some of it may have passed
			assert.LessOrEqual(t, ttl, c.want+c.want/4, "%+v", c)
		}
	})
}

// TestAPublishThatOpensTooManyBatchesIsRefused publishes to 51 subscribers whose batches have one
// event. They are on the partition of the topic: a relay to others would carry fewer events at a
// time.
func TestAPublishThatOpensTooManyBatchesIsRefused(t *testing.T) {
	redis := rdbtest.Real(t)
	a := newAPI(t, redis)
	token := func(n int) bus.Token { return bus.Token("s--" + strconv.Itoa(n)) }
	subscribe := func(token bus.Token) {
		require.NoError(t, a.PutToken(t.Context(), token, "s"))
		one, hour := 1, time.Hour
		require.NoError(t, a.Subscribe(t.Context(), token, bus.Subscription{
			Topics: []bus.TopicName{"a"}, Callback: "https://x.example/", MaxEvents: &one, Timeout: &hour,
		}, time.Now()))
	}
	for n, subscribed := 0, 0; subscribed < 51; n++ {
		if a.Of(token(n)) == a.Home("a") {
			subscribe(token(n))
			subscribed++
		}
	}
	got := a.Do(alice, "POST", "/topics/a", webtest.EventsText(1, 1000))
	assert.Equal(t, 413, got.Status)
	assert.Contains(t, got.Body, "more than 50000 batches")
	assert.Contains(t, got.Body, "nothing was stored")
	topics, _, err := storetest.Topics(t.Context(), inspect.OfBus(a.Bus))
	require.NoError(t, err)
	assert.Equal(t, []bus.Topic{{Name: "a"}}, topics, "nobody's, without an event")
	for _, st := range a.All() {
		p := st.Partition()
		assert.Zero(t, p.Exists(t.Context(), p.Namespace()+"batches:index", p.Namespace()+"idempotency:alice/1").Val())
	}
	assert.Equal(t, 2, a.Do(alice, "POST", "/topics/a", webtest.EventsText(1, 900)).Status/100)
}
