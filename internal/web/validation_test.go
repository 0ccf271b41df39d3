package web_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

func TestARefusedRequestChangesNothing(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		before := rdbtest.Dump(t, redis.Raw)
		event := func(members string) string { return `{"type":"noop","url":"https://x.example/",` + members + `}` }
		sub := func(members string) string { return `{"topics":["a"],"callback":"https://x.example/",` + members + `}` }
		for _, c := range []struct{ path, body, pointer, detail string }{
			{"/topics/Widgets", event(`"data":1`), "", "a topic name is"},
			{"/topics/a%0Ab", event(`"data":1`), "", "a topic name is"},
			{"/topics/a", ``, "", "empty"},
			{"/topics/a", "  \n", "", "empty"},
			{"/topics/a", `{`, "", "line 1, column 2: it ends too early"},
			{"/topics/a", "{\n  \"type\": noop}", "", "line 2, column 12"},
			{"/topics/a", `null`, "", "must be an object"},
			{"/topics/a", `7`, "", "must be an object"},
			{"/topics/a", event(`"data":1`) + `{}`, "", "something after the JSON value"},
			{"/topics/a", event(`"data":1`) + `x`, "", "line 1, column 52"},
			{"/topics/a", event(`"type":"noop"`), "/type", "duplicate"},
			{"/topics/a", "{\"type\":\"\xff\"}", "", "UTF-8"},
			{"/topics/a", event(`"extra":1`), "/extra", "known are type, url, timestamp, data"},
			{"/topics/a", `{"url":"https://x.example/"}`, "/type", "one of create"},
			{"/topics/a", `{"type":"created","url":"https://x.example/"}`, "/type", "one of create"},
			{"/topics/a", `{"type":1,"url":"https://x.example/"}`, "/type", "must be a string"},
			{"/topics/a", `{"type":"noop"}`, "/url", "https"},
			{"/topics/a", `{"type":"noop","url":null}`, "/url", "must be a string"},
			{"/topics/a", `{"type":"noop","url":"http://x.example/"}`, "/url", "https"},
			{"/topics/a", `{"type":null,"url":"https://x.example/"}`, "/type", "must be a string"},
			{"/topics/a", `{"type":"","url":"https://x.example/"}`, "/type", "one of create"},
			{"/topics/a", `{"type":"noop","url":""}`, "/url", "https"},
			{"/topics/a", `{"type":"noop","url":7}`, "/url", "must be a string"},
			{"/topics/a", `{"type":"noop","url":["https://x.example/"]}`, "/url", "must be a string"},
			{"/topics/a", `{"type":"noop","url":"https://"}`, "/url", "host"},
			{"/topics/a", `{"type":"noop","url":"//x.example/"}`, "/url", "https"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/a b"}`, "/url", "percent-encode"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/é"}`, "/url", "percent-encode"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/%"}`, "/url", "does not parse"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/` + strings.Repeat("a", 1024) + `"}`, "/url", "at most 1024"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/","Type":"noop"}`, "/Type", "known are"},
			{"/topics/a", `{"type":"noop","url":"https://x.example/","a~b/c":1}`, "/a~0b~1c", "known are"},
			{"/topics/a", `{'type':'noop'}`, "", "line 1, column 2"},
			{"/topics/a", `{"type":"noop",}`, "", "line 1, column"},
			{"/topics/a", `{"type":"noop" "url":1}`, "", "line 1, column"},
			{"/topics/a", `"noop"`, "", "must be an object"},
			{"/topics/a", `true`, "", "must be an object"},
			{"/topics/a", event(`"data":NaN`), "", "line 1, column"},
			{"/topics/a", event(`"data":01`), "", "line 1, column"},
			{"/topics/a", event(`"data":{"a":1,"a":2}`), "/data/a", "duplicate"},
			{"/topics/a", event(`"data":"\ud800"`), "", "line 1, column"},
			{"/topics/a", event(`"data":` + strings.Repeat("[", 102) + strings.Repeat("]", 102)), "/data", "nested"},
			{"/topics/a", event(`"data":` + strings.Repeat("[", 20_000)), "", "depth"},
			{"/topics/a", event(`"data":1e-999`), "/data", "double"},
			{"/topics/a", event(`"data":-9223372036854775809`), "/data", "64 bits"},
			{"/topics/a", event(`"timestamp":true`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1e19`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1.5`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1795302000000.5`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":15e-1`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":1e999999999999999999999`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":9223372036854775808.0`), "/timestamp", "64 bits"},
			{"/topics/a", event(`"timestamp":"1"`), "/timestamp", "integer"},
			{"/topics/a", event(`"timestamp":9223372036854775808`), "/timestamp", "64 bits"},
			{"/topics/a", event(`"data":"` + strings.Repeat("x", 64) + `"`), "/data", "at most 64"},
			{"/topics/a", event(`"data":18446744073709551616`), "/data", "64 bits"},
			{"/topics/a", event(`"data":1e999`), "/data", "double"},
			{"/subscription", sub(`"extra":1`), "/extra", "known are topics"},
			{"/subscription", `{"callback":"https://x.example/"}`, "/topics", "array"},
			{"/subscription", `{"topics":"a","callback":"https://x.example/"}`, "/topics", "array"},
			{"/subscription", `{"topics":["a",1],"callback":"https://x.example/"}`, "/topics/1", "string"},
			{"/subscription", `{"topics":["a","B"],"callback":"https://x.example/"}`, "/topics/1", "topic name"},
			{"/subscription", `{"topics":["a"]}`, "/callback", "is required"},
			{"/subscription", `{}`, "/topics", "is required"},
			{"/topics/a", `{}`, "/type", "is required"},
			{"/topics/a", `{"type":"noop"}`, "/url", "is required"},
			{"/subscription", `{"topics":["a"],"callback":"https://x.example/?a=b"}`, "/callback", "query"},
			{"/subscriber", `[]`, "", "must be an object"},
			{"/subscriber", `{"topics":null,"callback":"https://x.example/"}`, "/topics", "array"},
			{"/subscriber", `{"topics":[["a"]],"callback":"https://x.example/"}`, "/topics/0", "string"},
			{"/subscriber", `{"topics":["a","a\n"],"callback":"https://x.example/"}`, "/topics/1", "topic name"},
			{"/subscriber", `{"topics":["a"],"callback":"http://x.example/"}`, "/callback", "https"},
			{"/subscriber", `{"topics":["a"],"callback":"https://x.example/#a"}`, "/callback", "fragment"},
			{"/subscriber", `{"topics":["a"],"callback":null}`, "/callback", "string"},
			{"/subscriber", sub(`"uuid":"a:b"`), "/uuid", "colon"},
			{"/subscriber", sub(`"uuid":"a\u0000"`), "/uuid", "control"},
			{"/subscriber", sub(`"max":10001`), "/max", "1 to 10000"},
			{"/subscriber", sub(`"max":-9223372036854775808`), "/max", "1 to 10000"},
			{"/subscriber", sub(`"timeout":"500"`), "/timeout", "integer"},
			{"/subscription", sub(`"uuid":7`), "/uuid", "string"},
			{"/subscription", sub(`"timeout":-1`), "/timeout", "0 to 3600000"},
			{"/subscription", sub(`"timeout":3600001`), "/timeout", "0 to 3600000"},
			{"/subscription", sub(`"timeout":9223372036854775807`), "/timeout", "0 to 3600000"},
			{"/subscription", sub(`"max":0`), "/max", "1 to 10000"},
			{"/subscription", sub(`"max":1.0`), "/max", "integer"},
			{"/subscription", sub(`"max":true`), "/max", "integer"},
		} {
			got := a.Problem(alice, "POST", c.path, c.body)
			assert.Equal(t, 400, got.Status, c.body)
			assert.Equal(t, c.pointer, got.Pointer, "%s: %s", c.body, got.Detail)
			assert.Contains(t, got.Detail, c.detail, c.body)
		}
		for _, c := range []struct{ body, pointer string }{
			{`{}`, "/name"}, {`{"name":"A"}`, "/name"}, {`{"name":"root"}`, "/name"}, {`{"name":1}`, "/name"},
			{`{"name":"` + strings.Repeat("a", 31) + `"}`, "/name"},
			{`{"name":"a","token":""}`, "/token"}, {`{"name":"a","token":"A"}`, "/token"}, {`{"name":"a","x":1}`, "/x"},
		} {
			got := a.Problem(rootKey, "POST", "/api_tokens", c.body)
			assert.Equal(t, 400, got.Status, c.body)
			assert.Equal(t, c.pointer, got.Pointer, c.body)
		}
		big := event(`"data":"` + strings.Repeat("x", 70_000) + `"`)
		assert.Equal(t, 413, a.Problem(alice, "POST", "/topics/a", big).Status)

		assert.Equal(t, before, rdbtest.Dump(t, redis.Raw))
	})
}

func TestNullIsAsIfLeftOut(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["a"],"callback":"https://b.example/","uuid":"demo","timeout":0,"max":8}`)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["a"],"callback":"https://b.example/","uuid":null,"timeout":null,"max":null}`)
		assert.Contains(t, a.Do(bob, "GET", "/subscriptions", "").Body,
			`"uuid":"","callback":"https://b.example/","max_events":8,"timeout":0`, "but for the uuid, each keeps what it was")

		before := time.Now().UnixMilli()
		for _, timestamp := range []string{"null", "1795302000000.0", "1.795302e12", "-7.000", "0.0e5", "9223372036854775807.0", "-9223372036854775808.0", "700e-2"} {
			a.RequireDone(alice, "POST", "/topics/a", `{"type":"noop","url":"https://x.example/","timestamp":`+timestamp+`,"data":null}`)
		}
		taken, err := a.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, time.Now())
		require.NoError(t, err)
		var times []int64
		for _, packed := range taken.Task.Payload.(*store.Delivery).Events {
			text, err := wire.AppendEventJSON(nil, packed)
			require.NoError(t, err)
			assert.NotContains(t, string(text), "data")
			var event struct{ T int64 }
			require.NoError(t, json.Unmarshal(text, &event))
			times = append(times, event.T)
		}
		require.Len(t, times, 8, "a full batch")
		assert.WithinRange(t, time.UnixMilli(times[0]), time.UnixMilli(before), time.Now())
		assert.Equal(t, []int64{1795302000000, 1795302000000, -7, 0, 9223372036854775807, -9223372036854775808, 7}, times[1:])
	})
}
