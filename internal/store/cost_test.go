package store_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// notInScripts are commands that no script runs here: calls of scripts, commands of this test, and
// the look-up for a migration, once in some seconds.
var notInScripts = map[string]bool{"evalsha": true, "config|resetstat": true, "info": true, "exists": true}

// commands counts the commands that scripts run during a step: the step's cost in Redis.
func commands(t *testing.T, f *fixture, step func()) int {
	t.Helper()
	require.NoError(t, f.Redis.ConfigResetStat(t.Context()).Err())
	step()
	stats, err := f.Redis.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	total := 0
	for _, found := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		if calls, err := strconv.Atoi(found[2]); err == nil && !notInScripts[found[1]] {
			total += calls
		}
	}
	return total
}

// TestCommandsOfTheHotPath counts the commands of publishes and deliveries, and compares them with
// the scripts' headers.
func TestCommandsOfTheHotPath(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.AddSubscriber(storetest.Bob, time.Hour, 100, "gadgets")
	publish := func(topic bus.TopicName) func() { return func() { f.PublishEvents(topic, 1, 1, 0) } }
	var task *storetest.Task
	takeNext := func() {
		owned, next, err := f.CompleteAndAcquire(
			t.Context(), task, storetest.Result{Health: 1, Delivered: 1}, bus.Failing, storetest.Start)
		require.NoError(t, err)
		require.NoError(t, next.Err)
		require.True(t, owned)
		task = next.Task
	}
	publish("widgets")() // so that the topics are claimed, and the scripts loaded
	publish("gadgets")()
	task = f.Take("w1", 0)
	takeNext()
	require.Nil(t, task)

	publish("widgets")()
	acquire := commands(t, f, func() { task = f.Take("w1", 0) })
	publish("widgets")()
	same := commands(t, f, takeNext)
	require.NotNil(t, task, "the next batch of the same subscriber")
	f.AddSubscriber(storetest.Bob, 0, 1, "parcels")
	publish("parcels")()
	publish("parcels")()
	other := commands(t, f, takeNext)
	require.Equal(t, storetest.Bob, task.Delivery.Subscriber)

	f.AddSubscriber(storetest.Bob, time.Hour, 100, "gadgets")
	publish("gadgets")()
	idle, together := commandsAhead(t)
	for header, counts := range map[string]map[string]int{
		"lua/topic_publish.lua": {
			"if it joins a current batch":   commands(t, f, publish("gadgets")),
			"if it opens and fills a batch": commands(t, f, publish("widgets")),
		},
		"../queue/lua/acquire.lua": {"for a batch of one event": acquire, "more where batches may be taken ahead": idle - acquire},
		"../queue/lua/complete_acquire.lua": {
			"if it is the same subscriber's": same, "if it is another's": other,
			"for eight that are taken together, after eight": together,
		},
	} {
		text, err := os.ReadFile(header)
		require.NoError(t, err)
		text = []byte(strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n--", " ")), " "))
		for what, n := range counts {
			assert.Contains(t, string(text), fmt.Sprintf("%d %s", n, what), "%s: Cost", header)
		}
	}
	assert.LessOrEqual(t, max(same, other), 21, "complete and acquire")
}

// commandsAhead counts the commands that take a batch where others may be taken ahead, and that
// complete eight and take the next eight.
func commandsAhead(t *testing.T) (idle, together int) {
	f := newAheadFixture(t, rdbtest.Real(t), 1)
	f.next(f.take(30), acknowledged, 0) // so that the scripts are loaded, and the spares known
	task := f.Take(worker, 0)
	task = f.next(task, acknowledged, 0)
	together = commands(t, f.fixture, func() { task = f.next(task, allDone(queue.MaxAhead), 0) })
	require.Len(t, task.Ahead, queue.MaxAhead)
	for task != nil {
		task = f.next(task, allDone(len(task.Ahead)), 0)
	}
	f.PublishEvents("widgets", 31, 31, 0)
	return commands(t, f.fixture, func() { f.Take(worker, 0) }), together
}

// TestCommandsOfAHistory counts the extra commands of a publish if another topic keeps a history,
// if its own topic keeps one, of two events at most, and if it is also watched. It compares them
// with the script's header.
func TestCommandsOfAHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Bob, time.Hour, 100, "gadgets")
	f.PublishEvents("widgets", 1, 1, 0)
	keep := func(topic string, first int) {
		require.NoError(t, f.Redis.HSet(t.Context(), "plans", "/"+topic, 1).Err())
		require.NoError(t, f.Redis.HSet(t.Context(), "history:limits:"+topic, "events", 2, "first", first, "size", 0).Err())
	}
	publish := func() { f.PublishEvents("gadgets", 1, 1, 0) }
	publish()
	without := commands(t, f, publish)
	keep("widgets", 2)
	planned := commands(t, f, publish)
	keep("gadgets", 4)
	growing := commands(t, f, publish)
	publish()
	full := commands(t, f, publish)
	assert.EqualValues(t, 2, f.Redis.LLen(t.Context(), "history:gadgets").Val())
	f.RequireSound()
	require.NoError(t, f.Redis.HSet(t.Context(), "plans", "?gadgets", "uid").Err())
	listener, err := f.Store.Partition().NewListener(t.Context(), "tail:uid")
	require.NoError(t, err)
	defer listener.Close()
	watched := commands(t, f, publish)
	text, err := os.ReadFile("lua/topic_publish.lua")
	require.NoError(t, err)
	_, cost, _ := strings.Cut(string(text), "-- Cost")
	cost, _, _ = strings.Cut(cost, "\nlocal")
	cost = strings.Join(strings.Fields(strings.ReplaceAll(cost, "\n--", " ")), " ")
	assert.Contains(t, cost, fmt.Sprintf("%d more if the key plans exists; %d more if the topic keeps a history, %d once",
		planned-without, growing-planned, full-planned))
	assert.Contains(t, cost, fmt.Sprintf("%d more while the topic has a live tail", watched-full))
}
