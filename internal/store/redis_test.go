package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func TestScriptsSurviveAFlush(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, 0)
		task := f.Take("w1", 0)
		require.NoError(t, f.Redis.ScriptFlush(t.Context()).Err())
		owned, next, err := f.CompleteAndAcquire(t.Context(), task, storetest.Done, bus.Failing, storetest.Start)
		require.NoError(t, err)
		assert.True(t, owned)
		assert.Equal(t, []int{2}, storetest.Numbers(t, next.Task))
		assert.Equal(t, 1, next.Task.Delivery.Attempts, "it was taken once")
		f.RequireSound()
	})
}

// TestAChangeThatNoReplicaConfirmsFails checks which of the store's steps need the replicas'
// confirmation, and which errors their callers get without it.
func TestAChangeThatNoReplicaConfirmsFails(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	st := store.New(server.Open(t, log.LogTo, func(o *rdb.Options) { o.MinReplicas = 1 }).Partition(""), store.Options{})
	ctx := t.Context()
	unconfirmed := storetest.Open(t, server)
	require.NoError(t, unconfirmed.PutToken(ctx, storetest.Publisher, "publisher"))
	require.NoError(t, unconfirmed.PutToken(ctx, storetest.Bob, "bob"))
	require.NoError(t, unconfirmed.Subscribe(ctx, storetest.Bob, bus.Subscription{Topics: []bus.TopicName{"gadgets"}, Callback: "https://s.example/"}, time.Now()))
	receipt := st.PublishAll(ctx, store.Publication{Topic: "gadgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{storetest.Packed(t, "gadgets", 1)}})[0]
	assert.ErrorIs(t, receipt.Err, bus.ErrUnavailable, "though the script returned the receivers")
	assert.False(t, receipt.Stored)
	for range 2 { // the first finds the script missing, the second finds the request stored
		err := storetest.Publish(ctx, st, store.Publication{
			Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{storetest.Packed(t, "widgets", 1)},
			IdempotencyKey: &bus.IdempotencyKey{Key: "key", Digest: "digest"},
		})
		assert.ErrorIs(t, err, bus.ErrUnavailable)
		assert.ErrorContains(t, err, "too few replicas")
	}
	assert.ErrorIs(t, st.PutToken(ctx, storetest.Alice, "alice"), bus.ErrUnavailable)
	assert.Equal(t, "1", server.Raw.HGet(ctx, "topic:widgets", "counter").Val(), "once, though nobody can be sure of it")
	assert.Regexp(t, `^.*redis refuses calls.*too few replicas.*\n$`, log.String(), "it is logged once")
}

func TestARedisThatIsAwayIsAnErrorAndIsLoggedOnce(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	f := newFixtureOn(t, server, server.Open(t, log.LogTo).Partition(""))
	ctx := t.Context()
	require.NoError(t, f.Store.Partition().Client().Ping(ctx))
	server.Kill(t)
	for range 3 {
		require.ErrorIs(t, f.Store.Partition().Client().Ping(ctx), bus.ErrUnavailable)
		_, err := f.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, storetest.Start)
		require.ErrorIs(t, err, bus.ErrUnavailable)
	}
	server.Restart(t)
	require.NoError(t, f.Store.Partition().Client().Ping(ctx), "the first call finds it back")
	task, err := f.Acquire(ctx, bus.QueueMain, "w1", bus.Failing, storetest.Start)
	require.NoError(t, err)
	assert.Nil(t, task)
	assert.Regexp(t, `^.*ERROR.*redis unavailable, retrying.*\n.*INFO.*redis available again.*\n$`, log.String())
}

func TestAFullRedisTakesNothingInAndGoesOnDelivering(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	f := newFixtureOn(t, server, server.Open(t, log.LogTo).Partition(""))
	ctx := t.Context()
	f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
	f.PublishEvents("widgets", 1, 5, 0)
	task := f.Take("w1", 0)
	require.NoError(t, f.Redis.ConfigSet(ctx, "maxmemory", "1").Err())

	before := rdbtest.Dump(t, f.Redis)
	p := store.Publication{Topic: "widgets", Publisher: storetest.Publisher, Events: []wire.PackedEvent{storetest.Packed(t, "widgets", 9)}}
	require.ErrorIs(t, f.Publish(ctx, p), bus.ErrUnavailable)
	p.Topic = "gadgets"
	require.ErrorIs(t, f.Publish(ctx, p), bus.ErrUnavailable)
	require.ErrorIs(t, f.Subscribe(ctx, storetest.Bob, bus.Subscription{Callback: "https://b.example/"}, storetest.Start), bus.ErrUnavailable)
	assert.Equal(t, before, rdbtest.Dump(t, f.Redis), "nothing is half-written")
	assert.Regexp(t, `^.*ERROR.*redis refuses calls.*\n$`, log.String(), "it is logged once, and Redis is not unavailable")

	waiter := f.NewWaiter(bus.QueueMain, time.Minute)
	defer waiter.Close()
	require.NoError(t, waiter.Wait(ctx, time.Minute))
	assert.True(t, f.Complete(task, storetest.Result{Health: -2, RetryAt: storetest.After(9)}))
	assert.Equal(t, 1, f.MakeInstant(9))
	for range 2 {
		assert.True(t, f.Complete(f.Take("w1", 9), storetest.Result{Health: 1}))
	}
	require.NoError(t, f.Heartbeat(ctx, storetest.After(10), "w1"))
	added, err := f.Enqueue(ctx, bus.QueueAux, bus.Job{Name: "autodrop"})
	require.NoError(t, err)
	assert.True(t, added)
	assert.Equal(t, 1, f.MakeInstant(1000))
	assert.Equal(t, []int{5}, storetest.Numbers(t, f.Take("w1", 1000)))
	jobs, err := f.Retire(ctx, "w1")
	require.NoError(t, err)
	assert.Equal(t, 1, jobs)
	require.NoError(t, f.DeleteToken(ctx, storetest.Alice), "revoking takes nothing in either")
	name, err := f.ClientName(ctx, storetest.Alice)
	require.NoError(t, err)
	assert.Empty(t, name)
	f.RequireSound()
}
