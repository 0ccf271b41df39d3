package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
)

var accountsKey = layout.Keys{Namespace: machinestest.Namespace}.Accounts()

// kept returns the bytes charged to a client's account.
func kept(f *machinestest.Fixture, client bus.ClientName) int64 {
	f.T.Helper()
	accounts, err := account.Read(f.T.Context(), f.Partitions[0])
	require.NoError(f.T, err)
	return accounts.Kept[client]
}

// TestAnAccountIsAboutWhatRedisUses compares the account of a client with the memory of Redis.
func TestAnAccountIsAboutWhatRedisUses(t *testing.T) {
	rdbtest.OneGoroutine(t)
	t.Parallel()
	f := machinestest.New(t, rdbtest.Real(t))
	f.Apply(ring)
	used := func() int64 {
		memory, err := f.Partitions[0].Memory(t.Context())
		require.NoError(t, err)
		return memory.Used
	}
	add := func(name string, size int) {
		_, err := f.For("alice").Add(t.Context(), "m", machines.LabelName(name), machines.Object{"x": strings.Repeat("x", size)}, f.Now)
		require.NoError(t, err)
	}
	add("first", 1) // so that all scripts and keys are there
	for _, size := range []int{10, 5000} {
		usedBefore, keptBefore := used(), kept(f, "alice")
		for i := range 2000 {
			add(fmt.Sprintf("user:%d:%d", size, i), size)
		}
		assert.InEpsilon(t, used()-usedBefore, kept(f, "alice")-keptBefore, 0.25)
	}
	usedBefore, keptBefore := used(), kept(f, "alice")
	for i := range 2000 {
		name := fmt.Sprint("deleted:", i)
		add(name, 10)
		require.NoError(t, f.Delete(t.Context(), f.Machine("m"), machines.LabelName(name), f.Now))
	}
	assert.InEpsilon(t, used()-usedBefore, kept(f, "alice")-keptBefore, 0.25)
}

// TestAFullAccount fills the account of one client. Other clients are not affected.
func TestAFullAccount(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		f, ctx := machinestest.New(t, server), t.Context()
		f.Apply(ring)
		require.NoError(t, account.Limits{High: 100_000}.Write(ctx, f.Partitions[0]))
		add := func(by bus.ClientName, name string, size int) error {
			_, err := f.For(by).Add(ctx, "m", machines.LabelName(name), machines.Object{"x": strings.Repeat("x", size)}, f.Now)
			return err
		}
		merge := func(size int) error {
			_, err := f.Merge(ctx, "m", "0", machines.Object{"x": strings.Repeat("x", size)}, false)
			return err
		}
		requireFull := func(err error) {
			t.Helper()
			var full *account.FullError
			require.ErrorAs(t, err, &full)
			require.EqualValues(t, "alice", full.Client)
			require.Equal(t, kept(f, "alice"), full.Kept)
			require.EqualValues(t, 50_000, full.Limit, "a half of all")
		}
		for i := range 4 {
			require.NoError(t, add("alice", fmt.Sprint(i), 10_000))
		}
		requireFull(add("alice", "more", 10_000))
		requireFull(merge(20_000))
		requireFull(func() error {
			_, err := f.Store.Change(ctx, "m", "made", machines.Change{
				Patch: machines.Object{"x": strings.Repeat("x", 10_000)}, Create: true, By: "alice",
			}, f.Now)
			return err
		}())
		require.NoError(t, merge(9_000), "it shrinks")
		require.NoError(t, add("bob", "bob", 10_000), "others have what is left")
		f.RequireSound(t)

		for i := range 4 {
			require.NoError(t, f.Delete(ctx, f.Machine("m"), machines.LabelName(fmt.Sprint(i)), f.Now))
		}
		assert.EqualValues(t, 4*engine.LabelBytes, kept(f, "alice"), "what is left of them")
		assert.EqualValues(t, engine.SizeOf(10_000+int64(len(`{"x":""}`)), 0), kept(f, "bob"))
		f.RequireSound(t)
	})
}

// TestADeletedLabelStaysInItsAccount: a deleted label is charged until Redis removes its rest, so
// that labels that are made and deleted do not fill Redis.
func TestADeletedLabelStaysInItsAccount(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		f, ctx := machinestest.New(t, server), t.Context()
		f.Apply(ring)
		const most = 3*engine.LabelBytes + 500
		require.NoError(t, account.Limits{Clients: account.Clients{Each: most}}.Write(ctx, f.Partitions[0]))
		pass := func(by bus.ClientName, name machines.LabelName) error {
			if _, err := f.For(by).Add(ctx, "m", name, machines.Object{}, f.Now); err != nil {
				return err
			}
			return f.Delete(ctx, f.Machine("m"), name, f.Now)
		}
		for i := range 3 {
			require.NoError(t, pass("alice", machines.LabelName(fmt.Sprint("a", i))))
			f.Now = f.Now.Add(5 * time.Hour)
		}
		var full *account.FullError
		require.ErrorAs(t, pass("alice", "more"), &full)
		assert.EqualValues(t, 3*engine.LabelBytes, full.Kept)
		require.NoError(t, pass("bob", "b"))
		f.RequireSound(t)

		for _, field := range server.Raw.HKeys(ctx, accountsKey).Val() {
			if strings.HasPrefix(field, account.FieldExpiring) && strings.HasSuffix(field, "/bob") {
				require.NoError(t, server.Raw.HSet(ctx, accountsKey, field, "damaged").Err())
			}
		}
		require.NoError(t, pass("bob", "b2"))
		assert.EqualValues(t, 2*engine.LabelBytes, kept(f, "bob"))

		release := func(after time.Duration) {
			f.Now = f.Now.Add(after)
			require.NoError(t, account.Release(ctx, f.Partitions[0], f.Now))
		}
		release(9 * time.Hour) // 24 hours after the first
		assert.EqualValues(t, 3*engine.LabelBytes, kept(f, "alice"))
		release(4 * time.Hour)
		assert.EqualValues(t, 2*engine.LabelBytes, kept(f, "alice"))
		require.NoError(t, pass("alice", "more"))
		release(28 * time.Hour)
		assert.Zero(t, kept(f, "alice"))
		assert.EqualValues(t, engine.LabelBytes, kept(f, "bob"), "which doctor corrects")
		fields, err := server.Raw.HKeys(ctx, accountsKey).Result()
		require.NoError(t, err)
		for _, field := range fields {
			assert.False(t, strings.HasPrefix(field, account.FieldExpiring), field)
		}
	})
}

// TestALabelOfDamagedMetadata: a label can be deleted although another program has overwritten its
// metadata and the bytes charged for it are unknown.
func TestALabelOfDamagedMetadata(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		f, ctx := machinestest.New(t, server), t.Context()
		f.Apply(ring)
		metadata := layout.Keys{Namespace: machinestest.Namespace}.LabelMetadata("m", "ann")
		_, err := f.For("alice").Add(ctx, "m", "ann", machines.Object{"x": 1}, f.Now)
		require.NoError(t, err)
		require.NoError(t, server.Raw.Del(ctx, metadata).Err())
		require.NoError(t, server.Raw.LPush(ctx, metadata, "x").Err())
		require.NoError(t, f.Delete(ctx, f.Machine("m"), "ann", f.Now))
		_, _, err = f.Label(ctx, "m", "ann")
		require.ErrorIs(t, err, machines.ErrLabelDeleted)
		assert.EqualValues(t, engine.LabelBytes+len(`{"x":1}`), kept(f, "alice"), "which doctor corrects")
	})
}

// TestWhatAnAccountCosts has a change of a label that makes it larger take a command more to read
// the account, and one to change it, than a change that does not.
func TestWhatAnAccountCosts(t *testing.T) {
	server := rdbtest.Real(t)
	f := machinestest.New(t, server)
	f.Apply(ring)
	f.Create("m", "ann", `{"x": 1}`)
	merge := func(value int) func() {
		return func() {
			_, err := f.Merge(t.Context(), "m", "ann", machines.Object{"x": value}, false)
			require.NoError(t, err)
		}
	}
	merge(2)()
	same, _ := calls(t, server, merge(3), "hmget", "hset", "hincrby", "hgetall")
	larger, _ := calls(t, server, merge(10), "hmget", "hset", "hincrby", "hgetall")
	same["hmget"]++
	same["hset"]++
	assert.Equal(t, same, larger)
}
