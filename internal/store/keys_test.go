package store

import (
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// TestKeysInLua holds the scripts' key layout to the one in Go.
func TestKeysInLua(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer client.Close()
	k := keys{"ns:"}
	want := map[string]string{
		"topics_key()":                   k.topics(),
		"topic_key('x')":                 k.topic("x"),
		"owners_key()":                   k.owners(),
		"owned_key()":                    k.owned(),
		"unused_key()":                   k.unused(),
		"topic_subscribers_key('x')":     k.topicSubscribers("x"),
		"subscribers_key()":              k.subscribers(),
		"subscriber_key('x')":            k.subscriber("x"),
		"subscriber_topics_key('x')":     k.subscriberTopics("x"),
		"tokens_key()":                   k.tokens(),
		"rotations_key()":                k.rotations(),
		"batch_key('x')":                 k.batch("x"),
		"original_key('x')":              k.original("x"),
		"current_key('x')":               k.current("x"),
		"origins_key('x')":               k.origins("x"),
		"line_key('x')":                  k.line("x"),
		"failed_key('x')":                k.failed("x"),
		"delivery_key('x')":              k.delivery("x"),
		"batches_index_key()":            k.batchesIndex(),
		"event_gauge_key()":              k.eventGauge(),
		"batch_gauge_key()":              k.batchGauge(),
		"jobs_index_key('main')":         k.jobsIndex(bus.QueueMain),
		"scheduled_key('main')":          k.scheduled(bus.QueueMain),
		"instant_key('main')":            k.instant(bus.QueueMain),
		"pending_key('main', 'x')":       k.pending(bus.QueueMain, "x"),
		"pending_index_key('main')":      k.pendingIndex(bus.QueueMain),
		"idempotency_key('x', 8)":        k.idempotency("x", 8),
		"workers_key()":                  k.workers(),
		"counters_key()":                 k.counters(),
		"job_of('AAAABBBBCCCCDDDD-_-_')": wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{"AAAABBBBCCCCDDDD-_-_"}}),
	}
	library := readLua("lib/keys") + readLua("lib/batches")
	for expression, key := range want {
		got, err := client.Eval(t.Context(), library+"\nreturn "+expression, nil, "ns:").Text()
		require.NoError(t, err, expression)
		assert.Equal(t, key, got, expression)
	}
	assert.Equal(t, strings.Count(readLua("lib/keys"), "function"), len(want)-1, "a key of the scripts is not compared")
}

// TestTheLayoutKnowsEveryKey holds what the checks know of keys to the keys.
func TestTheLayoutKnowsEveryKey(t *testing.T) {
	const uid = "AAAABBBBCCCCDDDD-_-_"
	k := keys{"ns:"}
	want := map[string]string{
		k.topics(): "set", k.owners(): "hash", k.owned(): "hash", k.unused(): "hash", k.topic("x"): "hash", k.topicSubscribers("x"): "set",
		k.subscribers(): "set", k.subscriber("x"): "hash", k.subscriberTopics("x"): "set",
		k.tokens(): "hash", k.rotations(): "hash", k.batch(uid): "list", k.original(uid): "list", k.current("x"): "set", k.line("x"): "zset", k.failed("x"): "zset", k.delivery("x"): "hash",
		k.origins(uid):   "list",
		k.batchesIndex(): "zset", k.eventGauge(): "hash", k.batchGauge(): "hash",
		k.jobsIndex(bus.QueueMain): "set", k.scheduled(bus.QueueMain): "zset", k.instant(bus.QueueMain): "list",
		k.pending(bus.QueueMain, "x"): "list", k.pendingIndex(bus.QueueMain): "set",
		k.workers(): "hash", k.idempotency("x", 8): "hash", k.counters(): "hash", k.monitored(): "hash",
	}
	for key, kind := range want {
		family, _ := k.layout().family(k, key)
		assert.Equal(t, kind, family.kind, key)
	}
	text, err := os.ReadFile("keys.go")
	require.NoError(t, err)
	assert.Equal(t, strings.Count(string(text), "func (k keys)"), len(want), "a key is not looked up")
}
