package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
)

// TestWhatIsBrokenOffIsSettled has a process die at each step of a replacement.
func TestWhatIsBrokenOffIsSettled(t *testing.T) {
	for _, c := range []struct {
		prepared, followed int
		version            int64
	}{{1, 0, 1}, {2, 0, 1}, {3, 0, 1}, {3, 1, 2}, {3, 2, 2}, {3, 3, 2}} {
		for _, byApply := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d prepared, %d followed, %v", c.prepared, c.followed, byApply), func(t *testing.T) {
				eachPartitioned(t, func(t *testing.T, f *partitioned) {
					ctx := t.Context()
					f.apply(machineOf("a", "b"))
					r := f.replacement(machineOf("a", "c"))
					f.prepare(r, c.prepared)
					for _, st := range f.Stores.All()[:c.followed] {
						require.NoError(t, st.Replace(ctx, r, r.Preparation(prepared)))
					}
					f.Now = f.Now.Add(5 * time.Second)
					require.NoError(t, f.Stores.Settle(ctx, f.Now))
					if c.version == 1 {
						edition, err := f.Stores.All()[0].Edition(ctx)
						require.NoError(t, err)
						assert.NotEmpty(t, edition.Preparation, "somebody may be at it")
						f.Now = f.Now.Add(10 * time.Second)
					}
					if byApply {
						f.apply(machineOf("d"))
						f.requireAgreed(t)
						return
					}
					for range 2 {
						require.NoError(t, f.Tender.Tick(ctx))
					}
					f.requireAgreed(t)
					d, err := f.Stores.Definitions(ctx)
					require.NoError(t, err)
					assert.Equal(t, c.version, d.Version)
					if c.version == 1 {
						err := f.Stores.All()[0].Replace(ctx, r, r.Preparation(prepared))
						require.ErrorIs(t, err, machines.ErrChanged, "it cannot be decided any more")
					}
				})
			})
		}
	}
}

// TestAFirstPartitionThatHasLostDefinitionsFollows the others: a replica has taken its place that
// did not have them yet.
func TestAFirstPartitionThatHasLostDefinitionsFollows(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(machineOf("a"))
		key := f.Partitions[0].Namespace() + "machines:definitions"
		lost := f.Server.Raw.HGetAll(t.Context(), key).Val()
		f.apply(machineOf("b"))
		require.NoError(t, f.Server.Raw.HSet(t.Context(), key, lost).Err())
		require.NoError(t, f.Stores.Settle(t.Context(), f.Now))
		f.requireAgreed(t)
		assert.NotNil(t, f.Machine("m").State("b"))
	})
}

// TestWhoSettlesLateTakesNoPartitionBack has a partition get later definitions meanwhile.
func TestWhoSettlesLateTakesNoPartitionBack(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(machineOf("a"))
		last := f.Stores.All()[count-1]
		seen, err := last.Edition(t.Context())
		require.NoError(t, err)
		f.apply(machineOf("b"))
		second, err := f.Stores.Definitions(t.Context())
		require.NoError(t, err)
		f.apply(machineOf("c"))
		require.ErrorIs(t, last.Follow(t.Context(), seen, second), machines.ErrChanged)
	})
}

// TestAFirstPartitionThatHasLostItsDecisionFollows at once: while it does not, a label may come to
// a state that others have no more.
func TestAFirstPartitionThatHasLostItsDecisionFollows(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx := t.Context()
		f.apply(machineOf("a", "b", "c"))
		name := f.names(1)[0]
		for f.Partitions.OfLabel("m/"+string(name)).Number() != 0 {
			name += "+"
		}
		f.Create("m", name, `{}`)
		r := f.replacement(machineOf("a", "c"))
		f.prepare(r, count)
		key := f.Partitions[0].Namespace() + "machines:definitions"
		confirmed := f.Server.Raw.HGetAll(ctx, key).Val()
		for _, st := range f.Stores.All() {
			require.NoError(t, st.Replace(ctx, r, r.Preparation(prepared)))
		}
		require.NoError(t, f.Server.Raw.HSet(ctx, key, confirmed).Err()) // by a failover
		f.Now = f.Now.Add(time.Minute)
		require.NoError(t, f.Stores.Settle(ctx, f.Now))
		f.Change("m", name, `{"a":true}`)
		assert.Equal(t, []machines.StateName{"a", "c"}, f.Route("m", name))
	})
}

// TestPartitionsFollowWhileOthersPrepare breaks off the next replacement.
func TestPartitionsFollowWhileOthersPrepare(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx, all := t.Context(), f.Stores.All()
		f.apply(machineOf("a"))
		r := f.replacement(machineOf("a", "b"))
		f.prepare(r, count)
		require.NoError(t, all[0].Replace(ctx, r, r.Preparation(prepared)))
		r = f.replacement(machineOf("a", "b", "c"))
		f.prepare(r, 1)
		require.NoError(t, f.Stores.Settle(ctx, f.Now))
		for _, st := range all {
			edition, err := st.Edition(ctx)
			require.NoError(t, err)
			assert.EqualValues(t, 2, edition.Version)
			assert.Equal(t, st == all[0], edition.Preparation != "")
		}
		require.NoError(t, all[0].Abandon(ctx, r.Preparation(prepared)))
	})
}

// TestDefinitionsThatNobodyHereCanReadAreFollowed and replaced: they are of a newer program.
func TestDefinitionsThatNobodyHereCanReadAreFollowed(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(machineOf("a"))
		for _, p := range f.Partitions[:2] {
			key := p.Namespace() + "machines:definitions"
			require.NoError(t, f.Server.Raw.HSet(t.Context(), key, "yaml", "newer: 1", "version", 7).Err())
		}
		version, err := f.Stores.Apply(t.Context(), machineOf("a", "b"), nil, f.Now)
		require.NoError(t, err)
		assert.EqualValues(t, 8, version)
	})
}

// TestAPartitionThatHangsHoldsUpNoOther that is to follow.
func TestAPartitionThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f, servers := newApart(t)
	f.apply(machineOf("a"))
	r := f.replacement(machineOf("a", "b"))
	f.prepare(r, count)
	require.NoError(t, f.Stores.All()[0].Replace(t.Context(), r, r.Preparation(prepared)))
	servers[2].Freeze(t)
	require.Error(t, f.Stores.Settle(t.Context(), f.Now))
	edition, err := f.Stores.All()[1].Edition(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, edition.Version)
	servers[2].Thaw(t)
	require.Eventually(t, func() bool { return f.Stores.Settle(t.Context(), f.Now) == nil }, time.Minute, 10*time.Millisecond)
	f.requireAgreed(t)
}
