package rdb_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// watched is a partition that processes watch.
type watched struct {
	*rdb.Partition
	t   *testing.T
	log rdbtest.Buffer
	// read is how much of the log was looked at.
	read int
}

// process is one that has just started.
func (w *watched) process() *rdb.Identity {
	var o rdb.Options
	w.log.LogTo(&o)
	i := rdb.NewIdentity(w.Partition, o.Log, func() time.Time { return time.UnixMilli(1_795_000_000_000) })
	w.notice(i)
	return i
}

func (w *watched) notice(some ...*rdb.Identity) {
	w.t.Helper()
	for _, i := range some {
		require.NoError(w.t, i.Notice(w.t.Context()))
	}
}

// logged returns the log since the last call.
func (w *watched) logged() string {
	all := w.log.String()
	defer func() { w.read = len(all) }()
	return all[w.read:]
}

// requireLoss requires that a loss of one of the kinds is noted, and acknowledges it.
func (w *watched) requireLoss(kinds ...bus.DataLossKind) {
	w.t.Helper()
	loss, err := w.AcceptLoss(w.t.Context())
	require.NoError(w.t, err)
	require.NotNil(w.t, loss)
	assert.Contains(w.t, kinds, loss.Kind)
	assert.Equal(w.t, time.UnixMilli(1_795_000_000_000), loss.FoundAt)
	loss, err = w.Loss(w.t.Context())
	assert.NoError(w.t, err)
	assert.Nil(w.t, loss)
}

func eachWatched(t *testing.T, test func(w *watched, server *rdbtest.Server)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		test(&watched{Partition: server.Open(t).Partition("rm:"), t: t}, server)
	})
}

func TestProcessesNoticeThatRedisHasLostData(t *testing.T) {
	eachWatched(t, func(w *watched, server *rdbtest.Server) {
		deleted := bus.DataDeleted
		if server.IsEmbedded() { // it has no run id
			deleted = bus.DataEmpty
		}
		one, other := w.process(), w.process()
		w.notice(one, other, one)
		for kind, lose := range map[bus.DataLossKind]func() error{
			deleted:       func() error { return w.Del(t.Context(), "rm:bus").Err() },
			bus.DataOther: func() error { return w.HSet(t.Context(), "rm:bus", "id", "another").Err() },
			bus.DataOlder: func() error { return w.HIncrBy(t.Context(), "rm:bus", "ticks", -20).Err() },
		} {
			require.NoError(t, lose())
			w.notice(one, other)
			assert.True(t, one.IsLost())
			assert.True(t, other.IsLost())
			late := w.process()
			assert.True(t, late.IsLost(), "one that starts later knows from Redis")
			w.notice(one, other, late)
			assert.Regexp(t, `^(.*level=ERROR.*loss=`+string(kind)+`.*\n){3}$`, w.logged(), "each says so once")
			w.requireLoss(kind)
			w.notice(one, other, late, one, other)
			assert.False(t, one.IsLost())
			assert.Regexp(t, `^(.*level=INFO.*acknowledged.*\n){3}$`, w.logged())
		}
	})
}

// TestOneThatLooksLateFindsNoSecondLoss has a process look after the loss was acknowledged.
func TestOneThatLooksLateFindsNoSecondLoss(t *testing.T) {
	eachWatched(t, func(w *watched, _ *rdbtest.Server) {
		one, late := w.process(), w.process()
		require.NoError(t, w.Del(t.Context(), "rm:bus").Err())
		w.notice(one)
		_, err := w.AcceptLoss(t.Context())
		require.NoError(t, err)
		w.notice(late, one, late)
		assert.False(t, late.IsLost())
	})
}

func TestANewBusHasLostNothing(t *testing.T) {
	eachWatched(t, func(w *watched, _ *rdbtest.Server) {
		one := w.process()
		w.notice(one, w.process())
		assert.False(t, one.IsLost())
		assert.Empty(t, w.logged())
		require.NoError(t, w.Del(t.Context(), "rm:bus").Err())
		assert.False(t, w.process().IsLost(), "none remembers")
		w.notice(one)
		assert.True(t, one.IsLost(), "one does, though another has begun anew")
		w.requireLoss(bus.DataOther)
	})
}

// TestABackupIsRestoredUnderProcesses that have noticed that Redis was empty.
func TestABackupIsRestoredUnderProcesses(t *testing.T) {
	eachWatched(t, func(w *watched, server *rdbtest.Server) {
		one, other := w.process(), w.process()
		w.notice(one, other)
		backup := w.HGetAll(t.Context(), "rm:bus").Val()
		w.notice(one, other)
		require.NoError(t, w.Del(t.Context(), "rm:bus").Err())
		w.notice(one, other, one)
		assert.Regexp(t, `^(.*level=ERROR.*loss=(empty|deleted).*\n){2}$`, w.logged())
		began := w.process()
		w.logged()

		require.NoError(t, w.Del(t.Context(), "rm:bus").Err())
		require.NoError(t, w.HSet(t.Context(), "rm:bus", backup).Err())
		w.notice(one, other, began)
		assert.Regexp(t, `^(.*level=ERROR.*loss=older.*\n){3}$`, w.logged(), "it is another loss")
		w.requireLoss(bus.DataOlder)
		w.notice(other, began, one)
		assert.Regexp(t, `^(.*level=INFO.*acknowledged.*\n){3}$`, w.logged())
		w.notice(one, other, began)
		assert.Empty(t, w.logged())
	})
}

func TestAMarkThatCannotBeReadIsLogged(t *testing.T) {
	eachWatched(t, func(w *watched, server *rdbtest.Server) {
		one := w.process()
		for _, set := range []func() error{
			func() error { return w.Set(t.Context(), "rm:bus", "of another", 0).Err() },
			func() error { return w.HSet(t.Context(), "rm:bus", "ticks", "many").Err() },
		} {
			require.NoError(t, w.Del(t.Context(), "rm:bus").Err())
			require.NoError(t, set())
			for range 3 {
				assert.Error(t, one.Notice(t.Context()))
			}
			assert.Regexp(t, "^.*level=ERROR.*a loss of data goes unnoticed.*key=bus.*\n$", w.logged(), "once")
			require.NoError(t, w.Del(t.Context(), "rm:bus").Err())
			w.notice(one)
			w.requireLoss(bus.DataDeleted, bus.DataEmpty)
			w.notice(one)
			w.logged()
		}
	})
}

// TestARestartedRedis restarts one that keeps its data, and one that does not.
func TestARestartedRedis(t *testing.T) {
	for _, keeps := range []string{"yes", "no"} {
		server := rdbtest.Real(t, "--appendonly", keeps, "--appendfsync", "always")
		w := &watched{Partition: server.Open(t).Partition("rm:"), t: t}
		one := w.process()
		server.Kill(t)
		server.Restart(t)
		require.Eventually(t, func() bool { return one.Notice(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
		require.Equal(t, keeps == "no", one.IsLost())
		if keeps == "no" {
			w.requireLoss(bus.DataEmpty)
		}
	}
}

// TestAPartitionThatIsEmpty has lost its data also for a process that has just started; one that is
// held has not, and one that is used for the first time has not either.
func TestAPartitionThatIsEmpty(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		all := server.Open(t).Partitions("rm:", 3)
		w := &watched{Partition: all[1], t: t}
		require.NoError(t, w.Release(t.Context()))
		assert.False(t, w.process().IsLost())
		_, err := w.Hold(t.Context(), 0)
		require.NoError(t, err)
		assert.False(t, w.process().IsLost(), "it is held")
		require.NoError(t, w.Release(t.Context()))

		require.NoError(t, w.Del(t.Context(), w.Namespace()+rdb.PartitionKey, w.Namespace()+rdb.IdentityKey).Err())
		one := w.process()
		assert.True(t, one.IsLost())
		assert.True(t, w.process().IsLost(), "it is noted")
		require.NoError(t, w.Release(t.Context()))
		w.notice(one)
		assert.True(t, one.IsLost(), "until it is acknowledged")
		w.requireLoss(bus.DataEmpty)
		w.notice(one)
		assert.False(t, one.IsLost())
	})
}

// TestALookThatNoReplicaHasConfirmedIsForgotten: a failover undoes it, and no event with it that
// was acknowledged.
func TestALookThatNoReplicaHasConfirmedIsForgotten(t *testing.T) {
	master, replica := rdbtest.Real(t, "--repl-diskless-sync-delay", "0"), rdbtest.Real(t)
	replica.Follow(t, master)
	w := &watched{Partition: master.Open(t, func(o *rdb.Options) { o.MinReplicas = 1 }).Partition("rm:"), t: t}
	require.Eventually(t, func() bool { return w.Change(t.Context(), done).Changed }, time.Minute, time.Millisecond)
	i := w.process()
	w.notice(i)
	confirmed, err := w.HGet(t.Context(), "rm:bus", "ticks").Result()
	require.NoError(t, err)
	replica.Freeze(t)
	w.notice(i)
	require.NoError(t, w.HSet(t.Context(), "rm:bus", "ticks", confirmed).Err())
	replica.Thaw(t)
	require.Eventually(t, func() bool { return w.Change(t.Context(), done).Changed }, time.Minute, time.Millisecond)
	w.notice(i)
	assert.Empty(t, w.logged())
	require.NoError(t, w.HSet(t.Context(), "rm:bus", "ticks", confirmed).Err())
	w.notice(i)
	w.requireLoss(bus.DataOlder)
}
