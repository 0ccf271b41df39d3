package store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// TestKeysInLua holds the scripts' key layout to the one in Go.
func TestKeysInLua(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer client.Close()
	k := store.Keys{"ns:"}
	want := map[string]string{
		"topics_key()":                   k.Topics(),
		"topic_key('x')":                 k.Topic("x"),
		"owners_key()":                   k.Owners(),
		"owned_key()":                    k.Owned(),
		"unused_key()":                   k.Unused(),
		"history_key('x')":               k.History("x"),
		"history_limits_key('x')":        k.HistoryLimits("x"),
		"topic_subscribers_key('x')":     k.TopicSubscribers("x"),
		"subscribers_key()":              k.Subscribers(),
		"subscriber_key('x')":            k.Subscriber("x"),
		"subscriber_topics_key('x')":     k.SubscriberTopics("x"),
		"tokens_key()":                   k.Tokens(),
		"rotations_key()":                k.Rotations(),
		"batch_key('x')":                 k.Batch("x"),
		"original_key('x')":              k.Original("x"),
		"current_key('x')":               k.Current("x"),
		"current_of_lane_key('x', 7)":    k.CurrentOfLane("x", 7),
		"plans_key()":                    k.Plans(),
		"traceparents_key('x')":          k.Traceparents("x"),
		"migration_key()":                k.Migration(),
		"failed_key('x')":                k.Failed("x"),
		"delivery_key('x')":              k.Delivery("x"),
		"batch_state_key('x')":           k.BatchState("x"),
		"options_key('x')":               k.Options("x"),
		"attempts_key('x')":              k.Attempts("x"),
		"dead_letters_key('x')":          k.DeadLetters("x"),
		"dead_letter_key('x')":           k.DeadLetter("x"),
		"dead_letter_cause_key('x')":     k.DeadLetterCause("x"),
		"dead_letter_events_key()":       k.DeadLetterEvents(),
		"dead_letter_bytes_key()":        k.DeadLetterBytes(),
		"replay_key('x')":                k.Replay("x"),
		"replay_batches_key('x')":        k.ReplayBatches("x"),
		"running_replays_key()":          k.RunningReplays(),
		"replays_key('x')":               k.Replays("x"),
		"gaps_key('x')":                  k.Gaps("x"),
		"retention_key()":                k.Retention(),
		"batches_index_key()":            k.BatchesIndex(),
		"event_gauge_key()":              k.EventGauge(),
		"bytes_gauge_key()":              k.BytesGauge(),
		"batch_gauge_key()":              k.BatchGauge(),
		"idempotency_key('x', 8)":        k.Idempotency("x", 8),
		"counters_key()":                 k.Counters(),
		"job_of('AAAABBBBCCCCDDDD-_-_')": wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{"AAAABBBBCCCCDDDD-_-_"}}),
	}
	for expression, key := range want {
		source := rdb.ComposeScript(strings.Join(store.Library, ""), "return "+expression)
		got, err := client.Eval(t.Context(), source, nil, "ns:").Text()
		require.NoError(t, err, expression)
		assert.Equal(t, key, got, expression)
	}
	const elsewhere = 1 // job_of
	lua, err := os.ReadFile("lua/lib/keys.lua")
	require.NoError(t, err)
	assert.Equal(t, strings.Count(string(lua), "function"), len(want)-elsewhere, "a key of the scripts is not compared")
}
