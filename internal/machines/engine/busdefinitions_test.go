package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
)

func TestDefinitionsAreRefusedWhileLabelsRestInAnyPartition(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(machineOf("a", "b"))
		names := f.names(2)
		for _, name := range names {
			f.Create("m", name, `{}`)
		}
		for _, name := range names[:3] {
			f.Change("m", name, `{"a":true}`)
		}
		_, err := f.Stores.Apply(t.Context(), machineOf("x"), nil, f.Now)
		var resting *machines.LabelsRestError
		require.ErrorAs(t, err, &resting)
		assert.ElementsMatch(t, []machines.StateCount{
			{Machine: "m", State: "a", Labels: 3}, {Machine: "m", State: "b", Labels: 3},
		}, resting.States)
		f.requireAgreed(t)
		f.apply(machineOf("x"), machines.StateMove{Machine: "m", From: "a", To: "x"}, machines.StateMove{Machine: "m", From: "b", To: "x"})
		f.Work()
		for _, name := range names {
			assert.Equal(t, machines.StateName("x"), f.Show("m", name).State)
		}
	})
}

// TestTheSameDefinitionsChangeNothing of a bus that has them.
func TestTheSameDefinitionsChangeNothing(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		for range 2 {
			version, err := f.Stores.Apply(t.Context(), machineOf("a"), nil, f.Now)
			require.NoError(t, err)
			assert.EqualValues(t, 1, version)
		}
	})
}

const prepared = "1700000000000 x"

// replacement is one of the bus's definitions.
func (f *partitioned) replacement(next *machines.Definitions) *engine.Replacement {
	f.T.Helper()
	current, err := f.Stores.Definitions(f.T.Context())
	require.NoError(f.T, err)
	r, err := engine.NewReplacement(current, next, nil, nil, f.Now)
	require.NoError(f.T, err)
	return r
}

// prepare prepares a replacement in the first partitions, so many of them.
func (f *partitioned) prepare(r *engine.Replacement, partitions int) {
	f.T.Helper()
	for _, st := range f.Stores.All()[:partitions] {
		require.NoError(f.T, st.Prepare(f.T.Context(), r, r.Preparation(prepared)))
	}
}

// TestNoLabelComesToAStateThatIsAboutToVanish by a move, or as it is made.
func TestNoLabelComesToAStateThatIsAboutToVanish(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx := t.Context()
		f.apply(machineOf("a", "b", "c"))
		name := f.names(1)[2]
		f.Create("m", name, `{}`)
		r := f.replacement(machineOf("a", "c"))
		f.prepare(r, count)
		f.Change("m", name, `{"a":true}`)
		assert.Equal(t, machines.StateName("a"), f.Show("m", name).State)
		assert.False(t, f.Show("m", name).Resting, "it goes on")
		for _, st := range f.Stores.All() {
			require.NoError(t, st.Abandon(ctx, r.Preparation(prepared)))
		}
		assert.Zero(t, f.Pass(999*time.Millisecond))
		f.Pass(time.Millisecond)
		assert.Equal(t, machines.StateName("b"), f.Show("m", name).State)

		f.apply(machineOf("x", "b"), machines.StateMove{Machine: "m", From: "a", To: "b"})
		r = f.replacement(machineOf("b"))
		f.prepare(r, count)
		made := make(chan error, 1)
		go func() {
			_, err := f.Stores.Of("m", "new").Add(ctx, "m", "new", machines.Object{}, f.Now)
			made <- err
		}()
		for _, st := range f.Stores.All() {
			require.NoError(t, st.Replace(ctx, r, r.Preparation(prepared)))
		}
		require.NoError(t, <-made)
		assert.Equal(t, []machines.StateName{"b"}, f.Route("m", "new"))
	})
}

// TestAWebhookWaitsWhileWhatFollowsVanishes rather than be called again and again.
func TestAWebhookWaitsWhileWhatFollowsVanishes(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx, service := t.Context(), machinestest.NewService(t)
		action := func(next string) *machines.Definitions {
			return load(`
state_machines:
  m:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {action: b, webhook: "` + service.URL + `", next: ` + next + `}
      - {gate: ` + next + `, exit_condition: false}
`)
		}
		f.apply(action("c"))
		name := f.names(1)[0]
		f.Create("m", name, `{}`)
		r := f.replacement(action("d"))
		f.prepare(r, count)
		f.Change("m", name, `{"go":true}`)
		for range 5 {
			f.Pass(time.Second)
		}
		assert.Empty(t, service.Calls())
		abandon := func() {
			for _, st := range f.Stores.All() {
				require.NoError(t, st.Abandon(ctx, r.Preparation(prepared)))
			}
		}
		abandon()
		f.Now = f.Now.Add(time.Second)
		task := f.Take("ben")
		result := f.Runner.Run(ctx, task)
		f.prepare(r, count) // while the webhook is called
		_, err := f.Stores.Queues()[task.Partition].Complete(ctx, task, result, f.Now)
		require.NoError(t, err)
		f.Pass(time.Second)
		assert.Equal(t, machines.StateName("b"), f.Show("m", name).State)
		abandon()
		f.Pass(time.Second)
		assert.Len(t, service.Calls(), 1)
		assert.Equal(t, machines.StateName("c"), f.Show("m", name).State)
	})
}

// TestStandingsGoWithTheirStates in all partitions.
func TestStandingsGoWithTheirStates(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(load(`
state_machines:
  m:
    states:
      - {action: b, webhook: "http://127.0.0.1:1/", attempts: 1, next: c}
      - {gate: c, exit_condition: false}
`))
		for _, name := range f.names(1) {
			f.Create("m", name, `{}`)
			require.NoError(t, f.Stores.Of("m", name).Delete(t.Context(), f.Machine("m"), name, f.Now))
		}
		f.apply(machineOf("c"))
		for _, p := range f.Partitions {
			assert.False(t, f.Server.Raw.HExists(t.Context(), p.Namespace()+"machines:standings:m", "b").Val())
		}
	})
}

// TestDefinitionsNeedAllPartitions to be replaced. To be read, they need one.
func TestDefinitionsNeedAllPartitions(t *testing.T) {
	t.Parallel()
	f, servers := newApart(t)
	f.apply(machineOf("a"))
	servers[2].Kill(t)
	_, err := f.Stores.Apply(t.Context(), machineOf("b"), nil, f.Now)
	require.ErrorIs(t, err, bus.ErrUnavailable)
	for _, st := range f.Stores.All()[:2] {
		edition, err := st.Edition(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, edition.Version)
		assert.Empty(t, edition.Preparation)
	}
	counts, err := f.Stores.CountAll(t.Context())
	require.NoError(t, err)
	assert.Len(t, counts, 1)
	servers[2].Restart(t)
	require.NoError(t, f.Partitions[2].Release(t.Context())) // it has lost its keys
	servers[0].Kill(t)
	require.ErrorIs(t, f.Stores.Settle(t.Context(), f.Now), bus.ErrUnavailable)
	d, err := f.Stores.Definitions(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, d.Version)
	servers[0].Restart(t)
	require.NoError(t, f.Partitions[0].Release(t.Context()))
	require.NoError(t, f.Tender.Tick(t.Context()))
	f.requireAgreed(t)
	assert.NotNil(t, f.Machine("m"))
}

// TestNoLabelIsLeftInAStateThatHasVanished has processes replace the definitions all the time while
// labels are made and move.
func TestNoLabelIsLeftInAStateThatHasVanished(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx, cancel := context.WithCancel(t.Context())
		sets := []*machines.Definitions{machineOf("a", "b", "c"), machineOf("a", "c"), machineOf("b", "c"), machineOf("c"), machineOf("a", "b", "d", "c")}
		f.apply(sets[0])
		var appliers, movers sync.WaitGroup
		var replaced, refused [2]int
		for i := range replaced {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			appliers.Go(func() {
				for replaced[i]+refused[i] < rdbtest.Fewer(60) {
					_, err := f.Stores.Apply(ctx, sets[random.IntN(len(sets))], nil, f.Now)
					var resting *machines.LabelsRestError
					switch {
					case err == nil:
						replaced[i]++
					case assert.ErrorAs(t, err, &resting):
						refused[i]++
					default:
						return
					}
				}
			})
		}
		for i := range 3 {
			movers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					name := machines.LabelName(fmt.Sprintf("label-%d-%d", i, n))
					st := f.Stores.Of("m", name)
					_, err := st.Add(ctx, "m", name, machines.Object{"a": true, "b": true, "d": true}, f.Now)
					for try := 0; try < 20 && err == nil; try++ { // until it is at its end
						var label machines.Label
						var d *machines.Definitions
						for looks := 0; looks == 0 || err == nil && d.State("m", label.State) == nil; looks++ {
							label, d, err = st.Label(ctx, "m", name) // definitions may be read after the label
							if !assert.Less(t, looks, 10, "%s stays in %s", name, label.State) {
								return
							}
						}
						if err == nil && !d.State("m", label.State).MayOpen() {
							break
						}
						_ = st.Ask(ctx, "m", name, label.State, "test")
						f.step(ctx)
					}
					if err != nil && ctx.Err() == nil && !errors.Is(err, bus.ErrUnavailable) {
						assert.NoError(t, err)
						return
					}
				}
			})
		}
		appliers.Wait()
		cancel()
		movers.Wait()
		require.NoError(t, f.Stores.Settle(t.Context(), f.Now))
		f.requireAgreed(t)
		t.Log(replaced, refused)
		definitions, err := f.Stores.Definitions(t.Context())
		require.NoError(t, err)
		for _, p := range f.Partitions {
			for _, key := range f.Server.Raw.Keys(t.Context(), p.Namespace()+"machines:label:*").Val() {
				state := machines.StateName(f.Server.Raw.HGet(t.Context(), key, "state").Val())
				assert.NotNil(t, definitions.State("m", state), "%s is in %s", key, state)
			}
		}
	})
}

// step runs one task with a worker of its own, if there is one.
func (f *partitioned) step(ctx context.Context) {
	worker := bus.NewWorkerID()
	for _, q := range f.Stores.Queues() {
		taken, err := q.Acquire(ctx, bus.QueueMachines, worker, bus.Failing, f.Now)
		if err == nil && taken.Task != nil && taken.Task.Job.Name == bus.JobLabel {
			_, _ = q.Complete(context.WithoutCancel(ctx), taken.Task, f.Runner.Run(ctx, taken.Task), f.Now)
		}
	}
}
