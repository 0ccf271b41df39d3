package store_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

func TestABusIsCreatedOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, redis := t.Context(), server.Open(t)
		_, err := store.OpenBus(ctx, redis, "ns:", store.Options{})
		require.ErrorIs(t, err, store.ErrNoBus)
		require.NoError(t, store.CreateBus(ctx, redis, "ns:", 12))
		_, err = redis.Partitions("ns:", 12)[3].Hold(ctx, 0)
		require.NoError(t, err)
		for _, count := range []int{12, 3} {
			require.ErrorIs(t, store.CreateBus(ctx, redis, "ns:", count), store.ErrBusExists)
		}
		all, err := store.OpenBus(ctx, redis, "ns:", store.Options{})
		require.NoError(t, err)
		assert.Len(t, all.All(), 12)
		require.ErrorIs(t, all.PutToken(ctx, "reader--1", "reader"), bus.ErrUnavailable, "what is held stays so")
		require.NoError(t, redis.Partitions("ns:", 12)[3].Release(ctx))
		require.NoError(t, all.PutToken(ctx, "reader--1", "reader"))

		for _, wrong := range []string{"", "0", "101", "twelve"} {
			require.NoError(t, server.Raw.Set(ctx, "ns:partitions", wrong, 0).Err())
			_, err = store.OpenBus(ctx, redis, "ns:", store.Options{})
			require.ErrorContains(t, err, "ns:partitions must be a number from 1 to 100")
		}
	})
}

// TestACreationThatWasBrokenOff is ended by another one of the same number, and by no other.
func TestACreationThatWasBrokenOff(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, redis := t.Context(), server.Open(t)
		require.NoError(t, server.Raw.Set(ctx, "ns:partitions", "creating 6", 0).Err())
		_, err := store.OpenBus(ctx, redis, "ns:", store.Options{})
		require.ErrorIs(t, err, store.ErrNoBus)
		require.NoError(t, redis.Partitions("ns:", 6)[0].Release(ctx))
		_, err = store.FindPartitionCount(ctx, redis, "ns:")
		require.ErrorIs(t, err, store.ErrNoBus, "not all may be there")
		require.ErrorContains(t, store.CreateBus(ctx, redis, "ns:", 12), "somebody has begun to create a bus with 6 partitions")
		require.NoError(t, store.CreateBus(ctx, redis, "ns:", 6))
		all, err := store.OpenBus(ctx, redis, "ns:", store.Options{})
		require.NoError(t, err)
		assert.Len(t, all.All(), 6)
		require.NoError(t, all.PutToken(ctx, "reader--1", "reader"))
	})
}

// TestTheNumberOfPartitionsIsFound ends with no record of the number left. The test of rtm cluster
// shows that partitions provide it when the node with the record is away.
func TestTheNumberOfPartitionsIsFound(t *testing.T) {
	server := rdbtest.Real(t)
	ctx, redis := t.Context(), server.Open(t)
	_, err := store.FindPartitionCount(ctx, redis, "ns:")
	require.ErrorIs(t, err, store.ErrNoBus)
	require.NoError(t, store.CreateBus(ctx, redis, "ns:", 12))
	count, err := store.FindPartitionCount(ctx, redis, "ns:")
	require.NoError(t, err)
	assert.Equal(t, 12, count)
	server.Kill(t)
	_, err = store.FindPartitionCount(ctx, redis, "ns:")
	require.ErrorIs(t, err, bus.ErrUnavailable)
}

// TestTheNumberOfPartitionsIsLost with the node that had it, which has come back empty: the
// partitions of the others say it, and no other bus is made over them.
func TestTheNumberOfPartitionsIsLost(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, redis := t.Context(), server.Open(t)
		require.NoError(t, store.CreateBus(ctx, redis, "ns:", 12))
		all, err := store.OpenBus(ctx, redis, "ns:", store.Options{})
		require.NoError(t, err)
		require.NoError(t, all.PutToken(ctx, "reader--1", "reader"))
		emptied := redis.Partitions("ns:", 12)[:4]
		lose := func() {
			require.NoError(t, server.Raw.Del(ctx, "ns:partitions").Err())
			for _, p := range emptied {
				for _, key := range server.Raw.Keys(ctx, p.Namespace()+"*").Val() {
					require.NoError(t, server.Raw.Del(ctx, key).Err())
				}
			}
		}
		lose()
		count, err := store.FindPartitionCount(ctx, redis, "ns:")
		require.NoError(t, err)
		assert.Equal(t, 12, count)
		for _, count := range []int{12, 24} {
			err := store.CreateBus(ctx, redis, "ns:", count)
			require.ErrorIs(t, err, store.ErrBusExists)
			require.ErrorContains(t, err, "web and worker write again")
		}
		assert.Empty(t, server.Raw.Keys(ctx, emptied[0].Namespace()+"*").Val(), "nothing is made")

		var logged rdbtest.Buffer
		await := func() (*store.Bus, error) {
			return store.AwaitBus(ctx, redis, redis, "ns:", store.Options{}, slog.New(slog.NewTextHandler(&logged, nil)))
		}
		all, err = await()
		require.NoError(t, err)
		assert.Len(t, all.All(), 12)
		assert.Equal(t, "12", server.Raw.Get(ctx, "ns:partitions").Val())
		assert.Regexp(t, `level=ERROR msg="a node has lost its keys.* key=ns:partitions partitions=12`, logged.String())
		assert.NotContains(t, logged.String(), "rtm cluster create")

		lose()
		require.NoError(t, redis.Partitions("ns:", 3)[1].Release(ctx))
		_, err = await()
		require.ErrorContains(t, err, "of [3 12] partitions: set the key ns:partitions")
		require.ErrorIs(t, store.CreateBus(ctx, redis, "ns:", 12), store.ErrBusExists)
	})
}

// TestAwaitSaysThatRedisIsSilent connects to a Redis that does not answer: a call that exceeds its
// own timeout logs no failure.
func TestAwaitSaysThatRedisIsSilent(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	var logged rdbtest.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	redis := server.Open(t, func(o *rdb.Options) { o.URL, o.Log = rdbtest.Hurried(o.URL), log })
	server.Freeze(t)
	ctx, cancel := context.WithCancel(t.Context())
	awaited := make(chan error, 1)
	go func() {
		_, err := store.AwaitBus(ctx, redis, redis, "ns:", store.Options{}, log)
		awaited <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "redis unavailable, retrying") }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-awaited, context.Canceled)
	server.Thaw(t)
}

// TestNothingIsOpenedBeforeRedisSaysThatItIsNoCopy starts a process while Redis is away.
func TestNothingIsOpenedBeforeRedisSaysThatItIsNoCopy(t *testing.T) {
	t.Parallel()
	server := rdbtest.Real(t)
	var logged rdbtest.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	redis := server.Open(t, func(o *rdb.Options) { o.URL, o.Log = rdbtest.Hurried(o.URL), log })
	require.NoError(t, server.Raw.Set(t.Context(), "ns:copying", 1, 0).Err())
	server.Freeze(t)
	_, err := store.OpenOne(t.Context(), redis, "ns:", store.Options{})
	require.ErrorIs(t, err, bus.ErrUnavailable)
	awaited := make(chan error, 1)
	go func() {
		_, err := store.AwaitOne(t.Context(), redis, "ns:", store.Options{})
		awaited <- err
	}()
	server.Thaw(t)
	require.ErrorIs(t, <-awaited, store.ErrCopying)
	require.NoError(t, server.Raw.Del(t.Context(), "ns:copying").Err())
	_, err = store.AwaitOne(t.Context(), redis, "ns:", store.Options{})
	require.NoError(t, err)
}

// TestAMarkOfAnyPartitionSaysThatABusIsACopy since the first may be away as a process starts.
func TestAMarkOfAnyPartitionSaysThatABusIsACopy(t *testing.T) {
	server := rdbtest.Embedded(t)
	redis := server.Open(t)
	require.NoError(t, store.CreateBus(t.Context(), redis, "", 3))
	last := redis.Partitions("", 3)[2]
	require.NoError(t, last.Set(t.Context(), layout.Keys{Namespace: last.Namespace()}.Copying(), 1, 0).Err())
	_, err := store.AwaitBus(t.Context(), redis, redis, "", store.Options{}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, store.ErrCopying)
}

// TestABusThatWasMovedAway by an earlier version is not opened: events that it accepts would be
// missing at its new place.
func TestABusThatWasMovedAway(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		redis := server.Open(t)
		plans := layout.Keys{Namespace: "ns:"}.Plans()
		require.NoError(t, server.Raw.HSet(t.Context(), plans, "?!", "open/new/abc").Err())
		_, err := store.OpenOne(t.Context(), redis, "ns:", store.Options{})
		require.NoError(t, err, "the target of a move")
		require.NoError(t, server.Raw.HSet(t.Context(), plans, "?!", "closed/old/abc/over").Err())
		_, err = store.OpenOne(t.Context(), redis, "ns:", store.Options{})
		require.ErrorIs(t, err, store.ErrMoved)
	})
}
