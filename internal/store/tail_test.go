package store_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

const (
	tailWidgets = bus.TopicName("widgets")
	soon        = 2 * time.Minute
	plans       = "plans"
	field       = "?widgets"
)

func newHub(t *testing.T, b *storetest.Bus) *store.TailHub {
	hub := store.NewTailHub(store.NewBus(b.Store), slog.New(slog.DiscardHandler))
	t.Cleanup(hub.Close)
	return hub
}

func next(t *testing.T, s *store.TailStream) store.TailPart {
	t.Helper()
	select {
	case part := <-s.Parts():
		return part
	case <-time.After(soon):
		require.Fail(t, "nothing was published")
		return store.TailPart{}
	}
}

func tailNumbers(t *testing.T, p store.TailPart) (numbers []int) {
	for _, event := range p.Events {
		numbers = append(numbers, storetest.Number(t, wire.PackedEvent(event)))
	}
	return numbers
}

func TestEventsAreSeenWhileTheyArePublished(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		here, elsewhere := newHub(t, b), newHub(t, b)
		_, err := here.Open(t.Context(), tailWidgets, "alice")
		require.ErrorIs(t, err, bus.ErrTopicUnknown)
		b.PublishEvents(tailWidgets, 1, 1, 0)
		first, err := here.Open(t.Context(), tailWidgets, "alice")
		require.NoError(t, err)
		second, err := here.Open(t.Context(), tailWidgets, "alice")
		require.NoError(t, err)
		other, err := elsewhere.Open(t.Context(), tailWidgets, "alice")
		require.NoError(t, err)

		b.PublishEvents(tailWidgets, 2, 3, 0)
		b.PublishEvents("gadgets", 1, 1, 0)
		b.PublishEvents(tailWidgets, 100, 124, 0)
		for i, s := range []*store.TailStream{first, second, other} {
			part := next(t, s)
			assert.Equal(t, []int{2, 3}, tailNumbers(t, part), "stream %d", i)
			assert.EqualValues(t, 2, part.Total)
			part = next(t, s)
			assert.Len(t, part.Events, 20, "stream %d", i)
			assert.EqualValues(t, 25, part.Total)
		}
		b.RequireSound()

		first.Close()
		first.Close()
		b.PublishEvents(tailWidgets, 4, 4, 0)
		assert.Equal(t, []int{4}, tailNumbers(t, next(t, second)))
		second.Close()
		b.PublishEvents(tailWidgets, 5, 5, 0)
		next(t, other)
		assert.Equal(t, []int{5}, tailNumbers(t, next(t, other)), "closing one's own leaves others'")
		other.Close()
		for begun := time.Now(); b.Redis.HExists(t.Context(), plans, field).Val(); {
			require.Less(t, time.Since(begun), soon)
			b.PublishEvents(tailWidgets, 6, 6, 0) // Redis may hear late that a connection was closed: then a publish ends the watch
		}
	})
}

func TestAWatchNobodyListensToEndsWithAPublish(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		require.NoError(t, b.Redis.HSet(t.Context(), plans, field, "of-a-process-that-died").Err())
		b.PublishEvents(tailWidgets, 1, 1, 0)
		assert.False(t, b.Redis.HExists(t.Context(), plans, field).Val())
	})
}

// TestAWatchIsRenewed takes a topic's channel away, as a publish does that comes while the
// connection is lost.
func TestAWatchIsRenewed(t *testing.T) {
	t.Parallel()
	b := storetest.NewBus(t, rdbtest.Embedded(t))
	b.PublishEvents(tailWidgets, 1, 1, 0)
	s, err := newHub(t, b).Open(t.Context(), tailWidgets, "alice")
	require.NoError(t, err)
	require.NoError(t, b.Redis.HDel(t.Context(), plans, field).Err())
	require.Eventually(t, func() bool {
		b.PublishEvents(tailWidgets, 7, 7, 0)
		return len(s.Parts()) > 0
	}, soon, 10*time.Millisecond)
	assert.Equal(t, []int{7}, tailNumbers(t, next(t, s)))
}

func TestSlowReadersAreToldWhatTheyMissed(t *testing.T) {
	b := storetest.NewBus(t, rdbtest.Embedded(t))
	b.PublishEvents(tailWidgets, 1, 1, 0)
	hub := newHub(t, b)
	s, err := hub.Open(t.Context(), tailWidgets, "alice")
	require.NoError(t, err)
	const publishes = 300
	for range publishes {
		b.PublishEvents(tailWidgets, 1, 2, 0)
	}
	missed := int64(0)
	require.Eventually(t, func() bool {
		missed += s.Missed()
		return missed+2*int64(len(s.Parts())) == 2*publishes
	}, soon, time.Millisecond)
	assert.Positive(t, missed)
	hub.Close()
	for range s.Parts() {
		missed++
	}
	_, err = hub.Open(t.Context(), tailWidgets, "alice")
	require.ErrorIs(t, err, bus.ErrOverloaded, "it is closed")
}

func TestStreamsAreLimited(t *testing.T) {
	b := storetest.NewBus(t, rdbtest.Embedded(t))
	b.PublishEvents(tailWidgets, 1, 1, 0)
	hub := newHub(t, b)
	open := func(client bus.ClientName) (opened []*store.TailStream) {
		for {
			s, err := hub.Open(t.Context(), tailWidgets, client)
			if err != nil {
				require.ErrorIs(t, err, bus.ErrOverloaded)
				return opened
			}
			opened = append(opened, s)
		}
	}
	streams := open("alice")
	assert.Len(t, streams, 20, "of one client")
	for _, client := range []bus.ClientName{"bob", "carol", "dave"} {
		assert.Len(t, open(client), 20)
	}
	assert.Len(t, open("erin"), 20)
	assert.Empty(t, open("frank"), "of all")
	streams[0].Close()
	assert.Len(t, open("frank"), 1)
}

// TestAHangingRedisHoldsUpNoOtherTopic opens a stream of a topic that Redis does not answer about.
func TestAHangingRedisHoldsUpNoOtherTopic(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	b := storetest.NewBus(t, server)
	b.PublishEvents(tailWidgets, 1, 1, 0)
	hub := newHub(t, b)
	server.Freeze(t)
	failed := make(chan error)
	const topics = 20
	began := time.Now()
	for i := range topics {
		go func() {
			_, err := hub.Open(t.Context(), bus.TopicName('a'+rune(i)), "alice")
			failed <- err
		}()
	}
	for range topics {
		require.ErrorIs(t, <-failed, bus.ErrUnavailable)
	}
	assert.Less(t, time.Since(began), topics*2*time.Second/2, "each waits for Redis for 2 s, and none for another")
	server.Thaw(t)
}
