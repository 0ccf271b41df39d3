package web_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// bury makes dead letters of alice, and subscribes her: letter i has the events 1..i.
func (a subscriberAPI) bury(redis *rdbtest.Server, letters int) {
	a.T.Helper()
	a.RequireDone(alice, "POST", "/subscription", `{"topics":["widgets"],"callback":"https://a.example/"}`)
	require.NoError(a.T, a.PutToken(a.T.Context(), storetest.Publisher, "publisher"))
	b := storetest.NewBusOn(a.T, redis, a.Of(alice).Partition())
	var events []int
	for i := 1; i <= letters; i++ {
		reason := bus.DiedOfAge
		if i%2 == 0 {
			reason = bus.DiedRefused
		}
		events = append(events, i)
		b.Bury(storetest.DeadLetter{Number: i, Token: alice, Reason: reason, DiedAt: i * 1000, Events: events})
	}
}

// list requests all pages of a list, and returns the IDs of its elements.
func (a subscriberAPI) list(who, path string) (ids []string) {
	a.T.Helper()
	next := regexp.MustCompile(`^<([^>]+)>; rel="next"$`)
	for range 100 {
		got := a.Do(who, "GET", path, "")
		require.Equal(a.T, 200, got.Status, got.Body)
		var page []struct{ ID string }
		require.NoError(a.T, json.Unmarshal([]byte(got.Body), &page))
		for _, element := range page {
			ids = append(ids, element.ID)
		}
		link := got.Header.Get("Link")
		if link == "" {
			return ids
		}
		require.Regexp(a.T, next, link)
		path = next.FindStringSubmatch(link)[1]
	}
	require.Fail(a.T, "the list does not end")
	return nil
}

func letterIDs(numbers ...int) (ids []string) {
	for _, n := range numbers {
		ids = append(ids, string(storetest.LetterID(n)))
	}
	return ids
}

func TestDeadLettersAreListed(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.bury(redis, 5)
		at := func(ms int) string { return strconv.FormatInt(storetest.After(ms).UnixMilli(), 10) }
		for query, want := range map[string][]string{
			"":                    letterIDs(5, 4, 3, 2, 1),
			"?limit=2":            letterIDs(5, 4, 3, 2, 1),
			"?reason=age":         letterIDs(5, 3, 1),
			"?reason=removed":     nil,
			"?status=400&limit=1": letterIDs(5, 4, 3, 2, 1),
			"?status=503":         nil,
			"?status=0":           nil,
			"?limit=1&reason=refused&since=" + at(2000):  letterIDs(4, 2),
			"?since=" + at(2000) + "&before=" + at(5000): letterIDs(4, 3, 2),
		} {
			assert.Equal(t, want, a.list(alice, "/subscriber/dead_letters"+query), query)
			assert.Equal(t, want, a.list(rootKey, "/subscribers/alice--1/dead_letters"+query), query)
		}
		shown := a.Do(alice, "GET", "/subscriber/dead_letters?limit=1&reason=refused", "").Body
		assert.JSONEq(t, fmt.Sprintf(`[{"id":"%s","died_at":%s,"created_at":%s,"reason":"refused","status":400,"error":null,"note":null,
			"attempts":3,"events":4,"bytes":%d,"webhook_id":null}]`, storetest.LetterID(4), at(4000), at(0), 4*len(storetest.Packed(t, "widgets", 1))), shown)
		for query, want := range map[string]string{"": `{"letters":5,"more":false}`, "?status=400&reason=age": `{"letters":3,"more":false}`, "?status=0": `{"letters":0,"more":false}`} {
			assert.JSONEq(t, want, a.Do(alice, "GET", "/subscriber/dead_letters/count"+query, "").Body, query)
		}
		for query, detail := range map[string]string{
			"?limit=101": "1 to 100", "?limit=0": "1 to 100", "?reason=old": "attempts", "?reason=": "attempts",
			"?since=1.5": "since", "?before=-1": "before", "?after=x": "after", "?state=x": "reason, status, since, before, limit, after",
			"?status=-1": "status", "?status=1000": "status", "?status=": "status",
		} {
			got := a.Problem(alice, "GET", "/subscriber/dead_letters"+query, "")
			assert.Equal(t, 400, got.Status, query)
			assert.Contains(t, got.Detail, detail, query)
		}
	})
}

func TestADeadLetterIsShown(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.bury(redis, 3)
		path := "/subscriber/dead_letters/" + string(storetest.LetterID(3))
		p := a.Of(alice).Partition()
		p.LSet(t.Context(), p.Namespace()+"deadletter:"+string(storetest.LetterID(3)), 4, "\xc1")
		events := func(query string) []map[string]any {
			var shown struct{ Events []map[string]any }
			require.NoError(t, json.Unmarshal([]byte(a.Do(alice, "GET", path+query, "").Body), &shown))
			require.NotNil(t, shown.Events)
			return shown.Events
		}
		all := events("")
		require.Len(t, all, 3)
		assert.Equal(t, "https://x.example/1", all[0]["url"])
		assert.Equal(t, map[string]any{"unreadable": true}, all[1])
		assert.Equal(t, all[2:], events("?from=2"))
		assert.Empty(t, events("?from=3"))
		assert.Equal(t, 400, a.Problem(alice, "GET", path+"?from=-1", "").Status)
		assert.Equal(t, 404, a.Problem(alice, "GET", path+"x", "").Status)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":[],"callback":"https://b.example/"}`)
		assert.Equal(t, 404, a.Problem(bob, "GET", path, "").Status, "it is not bob's")
	})
}

func TestDeadLettersAreRedeliveredAndDiscarded(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newSubscriberAPI(t, redis)
		a.bury(redis, 8)
		path := "/subscriber/dead_letters"
		one := func(n int) string { return path + "/" + string(storetest.LetterID(n)) }
		a.RequireDone(alice, "POST", one(1)+"/redeliver", "")
		assert.Equal(t, 404, a.Problem(alice, "POST", one(1)+"/redeliver", "").Status, "it is queued")
		a.RequireDone(alice, "DELETE", one(2), "")
		assert.Equal(t, 404, a.Problem(alice, "DELETE", one(2), "").Status, "it is gone")
		assert.Contains(t, a.Log.String(), `msg="redelivered dead letters" request_id=`)
		assert.Contains(t, a.Log.String(), `client=alice letters=1 events=1`)

		ids := `["` + strings.Join(letterIDs(3, 4, 1), `","`) + `"]`
		assert.JSONEq(t, `{"letters":2,"events":7,"remaining":0}`, a.Do(alice, "POST", path+"/redeliver", `{"ids":`+ids+`}`).Body)
		assert.JSONEq(t, `{"letters":2,"events":14,"remaining":0}`,
			a.Do(rootKey, "POST", "/subscribers/alice--1/dead_letters/discard", `{"all":true,"reason":"refused","status":400}`).Body)
		assert.Contains(t, a.Log.String(), `client=root letters=2 events=14 subscriber=alice`)
		assert.JSONEq(t, `{"letters":1,"events":5,"remaining":0}`, a.Do(alice, "POST", path+"/redeliver",
			fmt.Sprintf(`{"all":true,"since":%d,"before":%d}`, storetest.After(5000).UnixMilli(), storetest.After(7000).UnixMilli())).Body)
		assert.Equal(t, letterIDs(7), a.list(alice, path))
		assert.Contains(t, a.Do(alice, "GET", "/subscriptions", "").Body, `"queued":13`, "1, 3, 4 and 5 are queued")
		assert.NotContains(t, a.Log.String(), alice)
		storetest.RequireAllSound(t, a.Bus)

		for _, c := range []struct{ body, pointer string }{
			{`{}`, ""}, {`{"ids":null,"all":false}`, ""}, {`{"ids":["a"],"all":true}`, ""}, {`{"ids":[]}`, "/ids"},
			{`{"ids":[` + strings.Repeat(`"a",`, 100) + `"a"]}`, "/ids"}, {`{"ids":["a"],"reason":"age"}`, "/ids"},
			{`{"ids":"a"}`, "/ids"}, {`{"ids":[1]}`, "/ids/0"}, {`{"all":1}`, "/all"}, {`{"all":true,"reason":"old"}`, "/reason"},
			{`{"all":true,"status":-1}`, "/status"}, {`{"all":true,"status":1000}`, "/status"}, {`{"all":true,"status":"503"}`, "/status"},
			{`{"ids":["a"],"status":503}`, "/ids"}, {`{"all":true,"since":-1}`, "/since"}, {`{"all":true,"before":253402300800000}`, "/before"}, {`{"all":true,"x":1}`, "/x"},
		} {
			for _, what := range []string{"/redeliver", "/discard"} {
				got := a.Problem(alice, "POST", path+what, c.body)
				assert.Equal(t, 400, got.Status, c.body)
				assert.Equal(t, c.pointer, got.Pointer, c.body)
			}
		}
		assert.Equal(t, letterIDs(7), a.list(alice, path), "nothing was changed")
	})
}
