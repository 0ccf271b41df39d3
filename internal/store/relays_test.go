package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestEventsReachSubscribersInAllPartitions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		home := w.HomeOf(topic)
		var tokens []bus.Token
		for i := range rdb.Number(storetest.PartitionCount) {
			tokens = append(tokens, w.AddSubscriber(i, 5, topic))
		}
		w.PublishEvents(topic, 1, 3)
		assert.Equal(t, 2, w.Relay(home), "an idle outbox is relayed at once")
		w.PublishEvents(topic, 4, 12)
		assert.Zero(t, w.Relay(home), "one that was not gathers events")
		w.PublishEvents(topic, 13, 13)
		w.MS += 20
		assert.Equal(t, 2, w.Relay(home))
		for i, token := range tokens {
			assert.Equal(t, storetest.UpTo(1, 13), w.Received(rdb.Number(i), token, topic))
		}
		w.MS += 20
		assert.Zero(t, w.Relay(home), "an empty one has no job any more")
		w.RequireNothingLeft()
		counter, err := w.All[home].HGet(t.Context(), w.All[home].Namespace()+"topic:"+string(topic), "counter").Result()
		require.NoError(t, err)
		assert.Equal(t, "13", counter)
	})
}

func TestARunOfEachTopic(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, b, to := w.TopicIn(0, 0), w.TopicIn(0, 1), rdb.Number(1)
		token := w.AddSubscriber(to, 4, a, b)
		for i := 1; i <= 9; i++ {
			w.PublishEvents(a, i, i)
			w.PublishEvents(b, i, i)
		}
		assert.Equal(t, 1, w.Relay(0), "one relay for all")
		assert.Equal(t, int64(5), w.All[to].ZCard(t.Context(), w.All[to].Namespace()+"batches:index").Val(), "18 events, 4 in a batch")
		w.RequireSound() // the bytes of each run, too
		assert.Equal(t, storetest.UpTo(1, 9), w.Received(to, token, a))
		assert.Equal(t, storetest.UpTo(1, 9), w.Received(to, token, b))
		w.MS += 20
		w.Relay(0)
		w.RequireNothingLeft()
	})
}

// TestWhatIsUnfinishedIsRepeated breaks off a relay after each of its steps.
func TestWhatIsUnfinishedIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := rdb.Number(1), t.Context()
		name := w.TopicIn(0, 0)
		token := w.AddSubscriber(to, 100, name)
		w.PublishEvents(name, 1, 3)
		first := w.TakeRelay(0, "dead-worker")
		head := first.Payload.(*store.Head)
		require.Len(t, head.Events, 3)
		w.PublishEvents(name, 4, 6)
		arrival, err := w.Relays[to].Put(ctx, 0, head, w.Now())
		require.NoError(t, err)
		assert.Equal(t, store.Arrival{Received: map[bus.Token]int{token: 3}}, arrival)
		require.Equal(t, storetest.UpTo(1, 3), w.Received(to, token, name))

		_, err = w.Queues[0].Scrub(ctx, w.Now().Add(time.Hour), bus.QueueRelay)
		require.NoError(t, err)
		second := w.TakeRelay(0, "worker")
		require.NotNil(t, second)
		assert.Equal(t, head, second.Payload, "it takes the same, not what came since")
		result := w.Relayer.Relay(ctx, second)
		assert.Equal(t, storetest.UpTo(1, 3), w.Received(to, token, name), "the partition has it already")
		owned, err := w.Queues[0].Complete(ctx, first, w.Relayer.Relay(ctx, first), w.Now())
		require.NoError(t, err)
		assert.False(t, owned, "the dead worker comes too late")
		for _, want := range []bool{true, false} { // the second call is the first, whose answer was lost
			owned, err = w.Queues[0].Complete(ctx, second, result, w.Now())
			require.NoError(t, err)
			assert.Equal(t, want, owned)
		}
		w.MS += 20
		w.Relay(0)
		assert.Equal(t, storetest.UpTo(1, 6), w.Received(to, token, name))
		w.MS += 20
		w.Relay(0)
		w.RequireNothingLeft()
	})
}

func TestAPartitionThatIsAway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := rdb.Number(1), t.Context()
		name := w.TopicIn(0, 0)
		token := w.AddSubscriber(to, 100, name)
		_, err := w.All[to].Hold(ctx, 0)
		require.NoError(t, err)
		w.PublishEvents(name, 1, 3)
		for _, wait := range []int{50, 100, 200, 400, 800, 1000, 1000} {
			assert.Equal(t, 1, w.Relay(0))
			w.MS += wait - 1
			assert.Zero(t, w.Relay(0))
			w.MS++
		}
		outboxes, err := w.Relays[0].Outboxes(ctx, storetest.PartitionCount)
		require.NoError(t, err)
		assert.Equal(t, []store.Outbox{{}, {Events: 3, Since: storetest.Start}, {}}, outboxes)
		require.NoError(t, w.All[to].Release(ctx))
		w.Relay(0)
		assert.Equal(t, storetest.UpTo(1, 3), w.Received(to, token, name))
		outboxes, err = w.Relays[0].Outboxes(ctx, storetest.PartitionCount)
		require.NoError(t, err)
		assert.Equal(t, make([]store.Outbox, storetest.PartitionCount), outboxes)
	})
}

func TestLargeOutboxesGoInParts(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to := rdb.Number(1)
		name := w.TopicIn(0, 0)
		token := w.AddSubscriber(to, 1000, name)
		w.PublishEvents(name, 1, 2500)
		for range 3 {
			assert.Equal(t, 1, w.Relay(0))
			w.MS += 20
		}
		assert.Equal(t, storetest.UpTo(1, 2500), w.Received(to, token, name))
	})
}

// TestARelayThatWouldOpenTooManyBatches has more subscribers with a batch for each event than one
// step may open batches for 40 events.
func TestARelayThatWouldOpenTooManyBatches(t *testing.T) {
	server := rdbtest.Real(t)
	w := storetest.NewPartitions(t, server.Open(t))
	to, ctx := rdb.Number(1), t.Context()
	// A step of 40,000 batches may take longer on a busy host than Redis lets others wait.
	require.NoError(t, server.Raw.ConfigSet(ctx, "lua-time-limit", "0").Err())
	name := w.TopicIn(0, 0)
	w.AddSubscriber(to, 1, name)
	p := w.All[to]
	const subscribers, events = 2000, 40
	for i := range subscribers {
		token := fmt.Sprintf("other--%d", i)
		require.NoError(t, p.Pipelined(ctx, "subscribe", func(pipe rdb.Commands) {
			pipe.HSet(ctx, p.Namespace()+"subscriber:"+token, "callback", "https://x.example/", "max_events", 1, "timeout", 0)
			pipe.SAdd(ctx, p.Namespace()+"subscribers:"+string(name), token)
		}))
	}
	w.PublishEvents(name, 1, events)
	relayUntil := func(batches int64) {
		t.Helper()
		// On a busy machine a step may take longer than it has, and is found done by the next.
		for tries := 0; p.ZCard(ctx, p.Namespace()+"batches:index").Val() != batches; tries++ {
			require.Less(t, tries, 50)
			w.Relay(0)
			w.MS += 50
		}
	}
	relayUntil((subscribers + 1) * events / 2) // the first is refused, the second carries the half
	relayUntil((subscribers + 1) * events)
}

func TestLanesOfASubscriberElsewhere(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := rdb.Number(1), t.Context()
		a, b := w.TopicIn(0, 0), w.TopicIn(0, 1)
		token := w.AddSubscriber(to, 100, a, b)
		for i, lanes := range []string{"2", "3"} { // the relay learns them, and that they have changed
			require.NoError(t, w.Data[to].PatchSubscriber(ctx, token, bus.Subscription{Options: map[string]string{"lanes": lanes}}, w.Now()))
			for n := i*10 + 1; n <= i*10+10; n++ {
				w.PublishEvents(a, n, n)
				w.PublishEvents(b, n, n)
			}
			require.Equal(t, 1, w.Relay(0))
			w.MS += 20
		}
		bids, err := w.All[to].ZRange(ctx, w.All[to].Namespace()+"batches:index", 0, -1).Result()
		require.NoError(t, err)
		assert.Len(t, bids, 3, "each lane has a batch of its own")
		assert.ElementsMatch(t, storetest.UpTo(1, 20), w.Received(to, token, a))
		assert.ElementsMatch(t, storetest.UpTo(1, 20), w.Received(to, token, b))
		w.Relay(0)
		w.RequireNothingLeft()
	})
}

func TestOpeningAndClosing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := rdb.Number(1), t.Context()
		name := w.TopicIn(0, 0)
		w.AddSubscriber(to, 100, name)
		generation := func() string {
			return w.All[0].HGet(ctx, layout.Keys{Namespace: w.All[0].Namespace()}.Outboxes(name), to.String()).Val()
		}
		before := generation()
		assert.Equal(t, "1", before)
		w.AddSubscriber(to, 100, name)
		closed, err := w.Relays[0].Close(ctx, name, to, before)
		require.NoError(t, err)
		assert.False(t, closed, "somebody has subscribed since")
		w.PublishEvents(name, 1, 1)
		for range 2 { // it can be repeated
			closed, err = w.Relays[0].Close(ctx, name, to, "2")
			require.NoError(t, err)
			assert.True(t, closed)
		}
		w.PublishEvents(name, 2, 2)
		w.Relay(0)
		assert.Equal(t, storetest.UpTo(1, 1), w.Received(to, w.TokenIn(to), name), "what was published before is relayed")
		assert.Empty(t, generation())
	})
}

// TestOutboxesThatAreDamaged uses keys of another type: a publish is refused whole.
func TestOutboxesThatAreDamaged(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		to, ctx := rdb.Number(1), t.Context()
		name := w.TopicIn(0, 0)
		local := w.AddSubscriber(0, 100, name)
		w.AddSubscriber(to, 100, name)
		p := w.All[0]
		for _, key := range []string{"relay:01", "jobs:index:relay", "jobs:instant:relay", "relays:" + string(name)} {
			aside := p.Rename(ctx, p.Namespace()+key, p.Namespace()+"aside").Err() == nil
			require.NoError(t, p.Set(ctx, p.Namespace()+key, "text", 0).Err())
			err := storetest.Publish(ctx, w.Data[0], storetest.Publication(t, name, 1, 1, 0))
			assert.ErrorContains(t, err, "WRONGTYPE", key)
			assert.Empty(t, w.Received(0, local, name), key)
			require.NoError(t, p.Del(ctx, p.Namespace()+key).Err())
			if aside {
				require.NoError(t, p.Rename(ctx, p.Namespace()+"aside", p.Namespace()+key).Err())
			}
		}
		w.PublishEvents(name, 1, 1)
		w.Relay(0)
		assert.Equal(t, storetest.UpTo(1, 1), w.Received(to, w.TokenIn(to), name))
	})
}

// TestRandomCrashes publishes to topics of two homes, and breaks off relays after any of their
// steps: every subscriber gets every event once, and the events of a topic in order.
func TestRandomCrashes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		seed, _ := seedsOf(t, 1)
		random := rand.New(rand.NewPCG(seed, 0))
		topics := []bus.TopicName{w.TopicIn(0, 0), w.TopicIn(0, 1), w.TopicIn(1, 0)}
		published := map[bus.TopicName]int{}
		tokens := []bus.Token{w.AddSubscriber(0, 3, topics...), w.AddSubscriber(1, 7, topics...), w.AddSubscriber(2, 1, topics...)}
		type open struct {
			from rdb.Number
			task *queue.Task
		}
		var abandoned []open // tasks of workers that are taken for dead, and may live
		for range rdbtest.Fewer(400) {
			w.MS += random.IntN(30)
			from := rdb.Number(random.IntN(2))
			switch random.IntN(4) {
			case 0, 1:
				name, n := topics[random.IntN(len(topics))], 1+random.IntN(4)
				w.PublishEvents(name, published[name]+1, published[name]+n)
				published[name] += n
			case 2:
				task := w.TakeRelay(from, bus.NewWorkerID())
				if task == nil {
					break
				}
				var result queue.Result
				if random.IntN(3) > 0 {
					result = w.Relayer.Relay(t.Context(), task)
				}
				if result.RetryAt.IsZero() || random.IntN(3) == 0 { // it dies before it has told
					abandoned = append(abandoned, open{from, task})
					_, err := w.Queues[from].Scrub(t.Context(), w.Now().Add(time.Hour), bus.QueueRelay)
					require.NoError(t, err)
					break
				}
				for range 1 + random.IntN(2) {
					_, err := w.Queues[from].Complete(t.Context(), task, result, w.Now())
					require.NoError(t, err)
				}
			case 3:
				if len(abandoned) > 0 { // it was alive
					o := abandoned[random.IntN(len(abandoned))]
					result := w.Relayer.Relay(t.Context(), o.task)
					_, err := w.Queues[o.from].Complete(t.Context(), o.task, result, w.Now())
					require.NoError(t, err)
				}
			}
		}
		for range 10 {
			w.MS += 1000
			w.Relay(0)
			w.Relay(1)
		}
		for i, token := range tokens {
			for _, name := range topics {
				require.Equal(t, storetest.UpTo(1, published[name]), w.Received(rdb.Number(i), token, name), "seed %d: %s in %d", seed, name, i)
			}
		}
		w.RequireNothingLeft()
	})
}

// TestTheKeyThatNeverExists is about the only key that scripts declare, the namespace.
func TestTheKeyThatNeverExists(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.AddSubscriber(1, 1, topic)
		w.PublishEvents(topic, 1, 1)
		for _, p := range w.All {
			assert.True(t, strings.HasSuffix(p.Namespace(), "}:"))
			assert.Zero(t, p.Exists(t.Context(), p.Namespace()).Val())
		}
	})
}
