package relays_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/relays"
	"routemaster/internal/store/storetest"
)

func each(t *testing.T, test func(t *testing.T, w *world)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, newWorld(t, server)) })
}

func TestKeysInLua(t *testing.T) {
	p := rdbtest.Embedded(t).Open(t).Partition("ns:")
	k := relays.Keys{Namespace: "ns:"}
	for expression, want := range map[string]string{
		"outboxes_key('x')": k.Outboxes("x"), "outbox_key('07')": k.Outbox(7), "relay_taken_key()": k.Taken(),
		"relayed_key('11')": k.Relayed(11),
	} {
		script := rdb.NewScript(rdb.Library{"local ns = ARGV[1]\n", relays.Kind().Library()[0]}, "return "+expression)
		got, err := p.Run(t.Context(), script).Value()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

func TestEventsReachSubscribersInAllPartitions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		home := w.home(topic)
		var tokens []bus.Token
		for i := range relays.Number(partitions) {
			tokens = append(tokens, w.subscribe(i, 5, topic))
		}
		w.publish(topic, 1, 3)
		assert.Equal(t, 2, w.relay(home), "an idle outbox is relayed at once")
		w.publish(topic, 4, 12)
		assert.Zero(t, w.relay(home), "one that was not gathers events")
		w.publish(topic, 13, 13)
		w.ms += 20
		assert.Equal(t, 2, w.relay(home))
		for i, token := range tokens {
			assert.Equal(t, upTo(1, 13), w.received(relays.Number(i), token, topic))
		}
		w.ms += 20
		assert.Zero(t, w.relay(home), "an empty one has no job any more")
		w.requireNothingLeft()
		counter, err := w.all[home].HGet(t.Context(), w.all[home].Namespace()+"topic:"+string(topic), "counter").Result()
		require.NoError(t, err)
		assert.Equal(t, "13", counter)
	})
}

func TestARunOfEachTopic(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, b, to := w.topicIn(0, 0), w.topicIn(0, 1), relays.Number(1)
		token := w.subscribe(to, 4, a, b)
		for i := 1; i <= 9; i++ {
			w.publish(a, i, i)
			w.publish(b, i, i)
		}
		assert.Equal(t, 1, w.relay(0), "one relay for all")
		assert.Equal(t, int64(5), w.all[to].ZCard(t.Context(), w.all[to].Namespace()+"batches:index").Val(), "18 events, 4 in a batch")
		assert.Equal(t, upTo(1, 9), w.received(to, token, a))
		assert.Equal(t, upTo(1, 9), w.received(to, token, b))
		w.ms += 20
		w.relay(0)
		w.requireNothingLeft()
	})
}

// TestWhatIsUnfinishedIsRepeated breaks off a relay after each of its steps.
func TestWhatIsUnfinishedIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := relays.Number(1), t.Context()
		name := w.topicIn(0, 0)
		token := w.subscribe(to, 100, name)
		w.publish(name, 1, 3)
		first := w.take(0, "dead-worker")
		head := first.Payload.(*relays.Head)
		require.Len(t, head.Events, 3)
		w.publish(name, 4, 6)
		_, err := w.relays[to].Put(ctx, 0, head, w.now())
		require.NoError(t, err)
		require.Equal(t, upTo(1, 3), w.received(to, token, name))

		_, err = w.queues[0].Scrub(ctx, w.now().Add(time.Hour), bus.QueueRelay)
		require.NoError(t, err)
		second := w.take(0, "worker")
		require.NotNil(t, second)
		assert.Equal(t, head, second.Payload, "it takes the same, not what came since")
		result := w.relayers[0].Relay(ctx, second)
		assert.Equal(t, upTo(1, 3), w.received(to, token, name), "the partition has it already")
		owned, err := w.queues[0].Complete(ctx, first, w.relayers[0].Relay(ctx, first), w.now())
		require.NoError(t, err)
		assert.False(t, owned, "the dead worker comes too late")
		for _, want := range []bool{true, false} { // the second call is the first, whose answer was lost
			owned, err = w.queues[0].Complete(ctx, second, result, w.now())
			require.NoError(t, err)
			assert.Equal(t, want, owned)
		}
		w.ms += 20
		w.relay(0)
		assert.Equal(t, upTo(1, 6), w.received(to, token, name))
		w.ms += 20
		w.relay(0)
		w.requireNothingLeft()
	})
}

func TestAPartitionThatIsAway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := relays.Number(1), t.Context()
		name := w.topicIn(0, 0)
		token := w.subscribe(to, 100, name)
		_, err := w.all[to].Hold(ctx, 0)
		require.NoError(t, err)
		w.publish(name, 1, 3)
		for _, wait := range []int{50, 100, 200, 400, 800, 1000, 1000} {
			assert.Equal(t, 1, w.relay(0))
			w.ms += wait - 1
			assert.Zero(t, w.relay(0))
			w.ms++
		}
		waiting, err := w.relays[0].Waiting(ctx, to)
		require.NoError(t, err)
		assert.Equal(t, int64(3), waiting)
		require.NoError(t, w.all[to].Release(ctx))
		w.relay(0)
		assert.Equal(t, upTo(1, 3), w.received(to, token, name))
	})
}

func TestLargeOutboxesGoInParts(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to := relays.Number(1)
		name := w.topicIn(0, 0)
		token := w.subscribe(to, 1000, name)
		w.publish(name, 1, 2500)
		for range 3 {
			assert.Equal(t, 1, w.relay(0))
			w.ms += 20
		}
		assert.Equal(t, upTo(1, 2500), w.received(to, token, name))
	})
}

// TestARelayThatWouldOpenTooManyBatches has more subscribers with a batch for each event than one
// step may open batches for 40 events.
func TestARelayThatWouldOpenTooManyBatches(t *testing.T) {
	w := newWorld(t, rdbtest.Real(t))
	to, ctx := relays.Number(1), t.Context()
	name := w.topicIn(0, 0)
	w.subscribe(to, 1, name)
	p := w.all[to]
	const subscribers, events = 2000, 40
	for i := range subscribers {
		token := fmt.Sprintf("other--%d", i)
		require.NoError(t, p.Pipelined(ctx, "subscribe", func(pipe rdb.Commands) {
			pipe.HSet(ctx, p.Namespace()+"subscriber:"+token, "callback", "https://x.example/", "max_events", 1, "timeout", 0)
			pipe.SAdd(ctx, p.Namespace()+"subscribers:"+string(name), token)
		}))
	}
	w.publish(name, 1, events)
	assert.Equal(t, 2, w.relay(0), "the first is refused, the second carries the half")
	assert.Equal(t, int64((subscribers+1)*events/2), p.ZCard(ctx, p.Namespace()+"batches:index").Val())
	w.ms += 20
	assert.Equal(t, 1, w.relay(0))
	assert.Equal(t, int64((subscribers+1)*events), p.ZCard(ctx, p.Namespace()+"batches:index").Val())
}

func TestLanesOfASubscriberElsewhere(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := relays.Number(1), t.Context()
		a, b := w.topicIn(0, 0), w.topicIn(0, 1)
		token := w.subscribe(to, 100, a, b)
		for i, lanes := range []string{"2", "3"} { // the relay learns them, and that they have changed
			require.NoError(t, w.stores[to].PatchSubscriber(ctx, token, bus.Subscription{Options: map[string]string{"lanes": lanes}}, w.now()))
			for n := i*10 + 1; n <= i*10+10; n++ {
				w.publish(a, n, n)
				w.publish(b, n, n)
			}
			require.Equal(t, 1, w.relay(0))
			w.ms += 20
		}
		bids, err := w.all[to].ZRange(ctx, w.all[to].Namespace()+"batches:index", 0, -1).Result()
		require.NoError(t, err)
		assert.Greater(t, len(bids), 3, "each lane has batches of its own")
		assert.ElementsMatch(t, upTo(1, 20), w.received(to, token, a))
		assert.ElementsMatch(t, upTo(1, 20), w.received(to, token, b))
		w.relay(0)
		w.requireNothingLeft()
	})
}

func TestOpeningAndClosing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := relays.Number(1), t.Context()
		name := w.topicIn(0, 0)
		w.subscribe(to, 100, name)
		before, err := w.relays[0].Generation(ctx, name, to)
		require.NoError(t, err)
		assert.Equal(t, "1", before)
		w.subscribe(to, 100, name)
		closed, err := w.relays[0].Close(ctx, name, to, before)
		require.NoError(t, err)
		assert.False(t, closed, "somebody has subscribed since")
		w.publish(name, 1, 1)
		for range 2 { // it can be repeated
			closed, err = w.relays[0].Close(ctx, name, to, "2")
			require.NoError(t, err)
			assert.True(t, closed)
		}
		w.publish(name, 2, 2)
		w.relay(0)
		assert.Equal(t, upTo(1, 1), w.received(to, w.tokenIn(to), name), "what was published before is relayed")
		generation, err := w.relays[0].Generation(ctx, name, to)
		require.NoError(t, err)
		assert.Empty(t, generation)

		full := relays.New(store.New(w.all[0], store.Options{MaxTopics: 1}))
		limit := &bus.TopicLimitError{}
		require.ErrorAs(t, full.Open(ctx, "another", to, client), &limit)
		assert.Equal(t, &bus.TopicLimitError{Limit: 1, OfBus: true}, limit)
	})
}

// TestOutboxesThatAreDamaged has keys of another type: a publish is refused whole.
func TestOutboxesThatAreDamaged(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := relays.Number(1), t.Context()
		name := w.topicIn(0, 0)
		local := w.subscribe(0, 100, name)
		w.subscribe(to, 100, name)
		p := w.all[0]
		for _, key := range []string{"relay:01", "jobs:index:relay", "jobs:instant:relay", "relays:" + string(name)} {
			aside := p.Rename(ctx, p.Namespace()+key, p.Namespace()+"aside").Err() == nil
			require.NoError(t, p.Set(ctx, p.Namespace()+key, "text", 0).Err())
			err := storetest.Publish(ctx, w.stores[0], storetest.Publication(t, name, 1, 1, 0))
			assert.ErrorContains(t, err, "WRONGTYPE", key)
			assert.Empty(t, w.received(0, local, name), key)
			require.NoError(t, p.Del(ctx, p.Namespace()+key).Err())
			if aside {
				require.NoError(t, p.Rename(ctx, p.Namespace()+"aside", p.Namespace()+key).Err())
			}
		}
		w.publish(name, 1, 1)
		w.relay(0)
		assert.Equal(t, upTo(1, 1), w.received(to, w.tokenIn(to), name))
	})
}

// TestRandomCrashes publishes to topics of two homes, and breaks off relays after any of their
// steps: every subscriber gets every event once, those of a topic in order.
func TestRandomCrashes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		topics := []bus.TopicName{w.topicIn(0, 0), w.topicIn(0, 1), w.topicIn(1, 0)}
		published := map[bus.TopicName]int{}
		tokens := []bus.Token{w.subscribe(0, 3, topics...), w.subscribe(1, 7, topics...), w.subscribe(2, 1, topics...)}
		type open struct {
			from relays.Number
			task *queue.Task
		}
		var abandoned []open // tasks of workers that are taken for dead, and may live
		for range rdbtest.Fewer(400) {
			w.ms += random.IntN(30)
			from := relays.Number(random.IntN(2))
			switch random.IntN(4) {
			case 0, 1:
				name, n := topics[random.IntN(len(topics))], 1+random.IntN(4)
				w.publish(name, published[name]+1, published[name]+n)
				published[name] += n
			case 2:
				task := w.take(from, bus.NewWorkerID())
				if task == nil {
					break
				}
				var result queue.Result
				if random.IntN(3) > 0 {
					result = w.relayers[from].Relay(t.Context(), task)
				}
				if result.RetryAt.IsZero() || random.IntN(3) == 0 { // it dies before it has told
					abandoned = append(abandoned, open{from, task})
					_, err := w.queues[from].Scrub(t.Context(), w.now().Add(time.Hour), bus.QueueRelay)
					require.NoError(t, err)
					break
				}
				for range 1 + random.IntN(2) {
					_, err := w.queues[from].Complete(t.Context(), task, result, w.now())
					require.NoError(t, err)
				}
			case 3:
				if len(abandoned) > 0 { // it was alive
					o := abandoned[random.IntN(len(abandoned))]
					result := w.relayers[o.from].Relay(t.Context(), o.task)
					_, err := w.queues[o.from].Complete(t.Context(), o.task, result, w.now())
					require.NoError(t, err)
				}
			}
		}
		for range 10 {
			w.ms += 1000
			w.relay(0)
			w.relay(1)
		}
		for i, token := range tokens {
			for _, name := range topics {
				require.Equal(t, upTo(1, published[name]), w.received(relays.Number(i), token, name), "seed %d: %s in %d", seed, name, i)
			}
		}
		w.requireNothingLeft()
	})
}

// TestTheKeyThatNeverExists is about the only key that scripts declare, the namespace.
func TestTheKeyThatNeverExists(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.subscribe(1, 1, topic)
		w.publish(topic, 1, 1)
		for _, p := range w.all {
			assert.True(t, strings.HasSuffix(p.Namespace(), "}:"))
			assert.Zero(t, p.Exists(t.Context(), p.Namespace()).Val())
		}
	})
}
