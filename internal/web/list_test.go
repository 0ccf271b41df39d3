package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestListsShowCredentialsOnlyToTheirOwners(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets","gadgets"],"callback":"https://b.example/","uuid":"bobs-uuid","timeout":0,"max":5}`)
		a.RequireDone(alice, "POST", "/topics/widgets", `{"type":"noop","url":"https://x.example/"}`)

		found, _, err := storetest.Subscribers(t.Context(), inspect.OfBus(a.Bus))
		require.NoError(t, err)
		oldest := strconv.FormatInt(found[0].OldestAt.UnixMilli(), 10)
		topics := func(publisher string) string {
			return `[{"name":"gadgets","publisher":null,"events":0},{"name":"widgets","publisher":"` + publisher + `","events":2}]`
		}
		subscribers := func(subscriber, uuid string) string {
			return `[{"subscriber":"` + subscriber + `","name":"bob","uuid":` + uuid + `,"callback":"https://b.example/","max_events":5,"timeout":0,` +
				`"topics":["gadgets","widgets"],"health_points":100,"last_attempted_at":null,"events":{"sent":0,"queued":1,"oldest":` + oldest + `}}]`
		}
		for who, want := range map[string][2]string{
			rootKey: {topics("alice--1"), subscribers("bob--2", `"bobs-uuid"`)},
			alice:   {topics("alice--1"), subscribers("bob", `null`)},
			bob:     {topics("alice"), subscribers("bob--2", `"bobs-uuid"`)},
		} {
			assert.JSONEq(t, want[0], a.Do(who, "GET", "/topics", "").Body, who)
			assert.JSONEq(t, want[1], a.Do(who, "GET", "/subscriptions", "").Body, who)
		}
		require.NoError(t, a.DeleteToken(t.Context(), alice))
		for range 2 {
			assert.NotContains(t, a.Do(bob, "GET", "/topics", "").Body, alice, "a token that is no longer one is not shown either")
			a.Ahead += withinASecond
		}
	})
}

// TestListsAreWrittenAsOtherResponses compares the text: no character is escaped for HTML alone.
func TestListsAreWrittenAsOtherResponses(t *testing.T) {
	a := newAPI(t, rdbtest.Embedded(t))
	const callback = `"callback":"https://b.example/shop&bar"`
	a.RequireDone(bob, "POST", "/subscription", `{"topics":["widgets"],`+callback+`}`)
	assert.Contains(t, a.Do(bob, "GET", "/subscriber", "").Body, callback)
	assert.Contains(t, a.Do(bob, "GET", "/subscriptions", "").Body, callback)
}

func TestListsTakeALimit(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["a","b","c","d"],"callback":"https://x.example/"}`)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["b"],"callback":"https://x.example/"}`)
		topic := func(name string) string { return `{"name":"` + name + `","publisher":null,"events":0}` }
		for query, want := range map[string][]string{
			"?limit=2":         {"a", "b"},
			"?limit=2&after=b": {"c", "d"},
			"?after=c":         {"d"},
			"?after=d&limit=1": {},
			"?limit=10000":     {"a", "b", "c", "d"},
		} {
			var topics []string
			for _, name := range want {
				topics = append(topics, topic(name))
			}
			assert.JSONEq(t, "["+strings.Join(topics, ",")+"]", a.Do(alice, "GET", "/topics"+query, "").Body, query)
		}
		for query, want := range map[string][]string{
			"?limit=1": {"alice"}, "?limit=1&after=alice": {"bob"}, "?after=bob": {}, "": {"alice", "bob"},
		} {
			var found []struct{ Subscriber string }
			require.NoError(t, json.Unmarshal([]byte(a.Do(rootKey, "GET", "/subscribers"+query, "").Body), &found))
			names := []string{}
			for _, one := range found {
				name, _, _ := strings.Cut(one.Subscriber, "--")
				names = append(names, name)
			}
			assert.Equal(t, want, names, query)
		}
		for _, query := range []string{"?limit=0", "?limit=-1", "?limit=10001", "?limit=x", "?limit=1.5"} {
			assert.Contains(t, a.Problem(alice, "GET", "/topics"+query, "").Detail, "1 to 10000", query)
			assert.Equal(t, 400, a.Problem(alice, "GET", "/subscriptions"+query, "").Status, query)
		}
	})
}

// TestAPageIsFullDespiteDamagedEntries has damaged topics and subscribers. They must not make a
// page shorter, since a client takes a short page for the last one.
func TestAPageIsFullDespiteDamagedEntries(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		a := newAPI(t, redis)
		a.RequireDone(alice, "POST", "/subscription", `{"topics":["a","b","c","d","e"],"callback":"https://x.example/"}`)
		a.RequireDone(bob, "POST", "/subscription", `{"topics":["b"],"callback":"https://x.example/"}`)
		for key, st := range map[string]*store.Store{
			"topic:a": a.Home("a"), "topic:c": a.Home("c"), "topic:e": a.Home("e"), "subscriber:" + alice: a.Of(alice),
		} {
			p := st.Partition()
			p.Del(t.Context(), p.Namespace()+key)
			p.Set(t.Context(), p.Namespace()+key, "x", 0)
		}
		names := func(path string) (names []string) {
			t.Helper()
			var found []struct{ Name string }
			require.NoError(t, json.Unmarshal([]byte(a.Do(rootKey, "GET", path, "").Body), &found))
			for _, one := range found {
				names = append(names, one.Name)
			}
			return names
		}
		assert.Equal(t, []string{"b"}, names("/topics?limit=1"))
		assert.Equal(t, []string{"b", "d"}, names("/topics?limit=2"))
		assert.Equal(t, []string{"d"}, names("/topics?limit=1&after=b"))
		assert.Empty(t, names("/topics?limit=1&after=d"))
		assert.Equal(t, []string{"bob"}, names("/subscribers?limit=1"))
	})
}

// manyTopics puts 100,000 published topics into Redis. With the race detector it puts fewer,
// because a list of all could take longer than the write timeout.
func manyTopics(t *testing.T, redis *rdbtest.Server, a *api) int {
	t.Helper()
	many := 100_000
	if rdbtest.RaceDetector {
		many = 10_000
	}
	for i := 0; i < many; {
		pipe := redis.Raw.Pipeline()
		for range 10_000 {
			name := fmt.Sprintf("topic_of_a_client_with_a_name_that_is_not_short_%d", i)
			namespace := a.Home(bus.TopicName(name)).Partition().Namespace()
			pipe.SAdd(t.Context(), namespace+"topics", name)
			pipe.HSet(t.Context(), namespace+"topic:"+name, "publisher", alice, "counter", i)
			i++
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
	}
	return many
}

// TestListsTakeLittleMemory requests 100,000 topics four times concurrently. The memory they take
// is bounded by the store's windows of some 15,000 names at most, not by the number of topics.
func TestListsTakeLittleMemory(t *testing.T) {
	rdbtest.OneRedisOnly(t, "a merged list has a window of each partition")
	redis := rdbtest.Real(t)
	a := newAPI(t, redis)
	many := manyTopics(t, redis, a)
	// It has no write timeout, which four lists at once would reach on a busy host.
	server := httptest.NewServer(a.Handler)
	defer server.Close()
	inUse := func() uint64 {
		var stats runtime.MemStats
		runtime.GC() // leaves the memory in use
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, peak := inUse(), uint64(0)

	var lists sync.WaitGroup
	for range 4 {
		lists.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/topics", nil)
			if !assert.NoError(t, err) {
				return
			}
			r.SetBasicAuth(bob, "")
			resp, err := http.DefaultClient.Do(r)
			if !assert.NoError(t, err) {
				return
			}
			defer resp.Body.Close()
			lines := &countTopics{}
			_, err = io.Copy(lines, resp.Body)
			assert.NoError(t, err)
			assert.Equal(t, many, lines.n)
		})
	}
	done := make(chan struct{})
	go func() {
		lists.Wait()
		close(done)
	}()
	for samples := 0; ; samples++ {
		select {
		case <-done:
			http.DefaultClient.CloseIdleConnections()
			t.Logf("%d KB at most, in %d samples", (peak-min(peak, before))/1024, samples)
			assert.Positive(t, samples)
			assert.Less(t, peak, before+40<<20)
			return
		case <-time.After(100 * time.Millisecond):
			peak = max(peak, inUse())
		}
	}
}

// countTopics counts the topics of a list.
type countTopics struct{ n int }

// Write implements [io.Writer]. Each topic has one opening brace.
func (c *countTopics) Write(text []byte) (int, error) {
	c.n += strings.Count(string(text), "{")
	return len(text), nil
}

// TestAnInterruptedListIsNotTakenForComplete stops Redis while a list is being sent.
func TestAnInterruptedListIsNotTakenForComplete(t *testing.T) {
	redis := rdbtest.Real(t)
	a := newAPI(t, redis)
	manyTopics(t, redis, a)
	r, err := http.NewRequestWithContext(t.Context(), "GET", a.Run()+"/topics", nil)
	require.NoError(t, err)
	r.SetBasicAuth(bob, "")
	transport := &http.Transport{ReadBufferSize: 4096}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, 200, resp.StatusCode)
	redis.Kill(t) // most of the list has not been read yet
	text, err := io.ReadAll(resp.Body)
	require.Error(t, err, "%d bytes", len(text))
	assert.False(t, json.Valid(text))
}
