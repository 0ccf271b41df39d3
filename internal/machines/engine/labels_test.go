package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

const gates = `
state_machines:
  m:
    states:
      - {gate: first, triggers: [{metadata: go}], exit_condition: metadata.go, next: second}
      - {gate: second, triggers: [{metadata: open}], exit_condition: metadata.open, next: third}
      - {gate: third, exit_condition: false}
`

func each(t *testing.T, test func(t *testing.T, f *machinestest.Fixture)) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := machinestest.New(t, server)
		f.Apply(gates)
		test(t, f)
		f.RequireSound(t)
	})
}

// merge changes a label's metadata, and leaves the rest to workers.
func merge(f *machinestest.Fixture, name machines.LabelName, patch string) machines.Label {
	f.T.Helper()
	object, err := machines.ParseObject([]byte(patch))
	require.NoError(f.T, err)
	label, err := f.Merge(f.T.Context(), "m", name, object, false)
	require.NoError(f.T, err)
	return label
}

func TestAMoveIsVoidIfTheMetadataHaveChanged(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":true}`)
		task := f.Take("ben")
		require.NotNil(t, task)
		label := merge(f, "ann", `{"go":false}`)
		assert.False(t, label.Resting)
		assert.True(t, f.Finish(task))
		assert.Equal(t, machines.StateName("first"), f.Show("m", "ann").State, "it was evaluated before the change")
		assert.Equal(t, 1, f.Work())
		assert.Equal(t, machines.StateName("first"), f.Show("m", "ann").State)
	})
}

func TestAChangeDuringAnEvaluationIsEvaluated(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":false}`)
		task := f.Take("ben")
		result := f.Runner.Run(t.Context(), task)
		assert.False(t, merge(f, "ann", `{"go":true}`).Resting)
		owned, err := f.Queue().Complete(t.Context(), task, result, f.Now)
		require.NoError(t, err)
		assert.True(t, owned)
		f.RequireSound(t)
		f.Work()
		assert.Equal(t, machines.StateName("second"), f.Show("m", "ann").State)
	})
}

func TestAWorkerMayDie(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":true}`)
		dead := f.Take("dead")
		first := dead.Payload.(*engine.Visit).Label
		dead = f.Take("dead")
		assert.Equal(t, first, dead.Payload.(*engine.Visit).Label, "the reply was lost")
		_, err := f.Queue().Scrub(t.Context(), f.Now.Add(time.Minute), bus.QueueMachines)
		require.NoError(t, err)
		assert.Equal(t, 1, f.Work())
		assert.False(t, f.Finish(dead))
		assert.Equal(t, []machines.StateName{"first", "second"}, f.Route("m", "ann"))
	})
}

// TestALostReplyLosesNothing has a worker repeat the call that gave a label up and took it again.
func TestALostReplyLosesNothing(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":false}`)
		task := f.Take("ben")
		result := f.Runner.Run(t.Context(), task)
		merge(f, "ann", `{"go":true}`)
		owned, lost, err := f.Queue().CompleteAndAcquire(t.Context(), task, result, bus.Failing, f.Now)
		require.NoError(t, err)
		require.True(t, owned)
		require.NotNil(t, lost.Task)
		owned, next, err := f.Queue().CompleteAndAcquire(t.Context(), task, result, bus.Failing, f.Now)
		require.NoError(t, err)
		assert.False(t, owned, "it has been taken again since")
		require.NotNil(t, next.Task)
		assert.True(t, f.Finish(next.Task))
		assert.Equal(t, []machines.StateName{"first", "second"}, f.Route("m", "ann"))
	})
}

func TestALabelDoesNotRestUntilItIsLookedAt(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":true}`)
		_, err := f.Queue().Complete(t.Context(), f.Take("ben"), queue.Result{RetryAt: f.Now.Add(time.Second)}, f.Now)
		require.NoError(t, err)
		assert.False(t, f.Show("m", "ann").Resting)
		f.Pass(time.Second)
		label := f.Show("m", "ann")
		assert.Equal(t, machines.StateName("second"), label.State)
		assert.True(t, label.Resting)
	})
}

func TestAKeyOfAnotherTypeLosesNothing(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":true}`)
		task := f.Take("ben")
		key := f.Keys.LabelHistory("m", "ann")
		require.NoError(t, f.Server.Raw.Set(t.Context(), key, "not a list", 0).Err())
		_, err := f.Queue().Complete(t.Context(), task, f.Runner.Run(t.Context(), task), f.Now)
		require.ErrorContains(t, err, "WRONGTYPE")
		require.NoError(t, f.Server.Raw.Del(t.Context(), key).Err())
		f.RequireSound(t)
		f.Pass(time.Minute)
		assert.Equal(t, []machines.StateName{"first", "second"}, f.Route("m", "ann"))
	})
}

func TestLabelsAreMadeOnce(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		var made atomic.Int32
		var adding sync.WaitGroup
		for range 20 {
			adding.Go(func() {
				_, err := f.Add(t.Context(), "m", "ann", machines.Object{}, f.Now)
				if err == nil {
					made.Add(1)
				} else {
					assert.ErrorIs(t, err, machines.ErrLabelExists)
				}
			})
		}
		adding.Wait()
		assert.Equal(t, int32(1), made.Load())
		_, err := f.Add(t.Context(), "other", "ann", machines.Object{}, f.Now)
		require.ErrorIs(t, err, machines.ErrUnknownMachine)
		_, err = f.Merge(t.Context(), "m", "ben", machines.Object{}, false)
		require.ErrorIs(t, err, machines.ErrUnknownLabel)
	})
}

func TestNoChangeIsLost(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{"a":{"b":1},"gone":1}`)
		var merging sync.WaitGroup
		for i := range 20 {
			merging.Go(func() {
				patch := machines.Object{"a": map[string]any{fmt.Sprint(i): true}, "gone": nil}
				_, err := f.Merge(t.Context(), "m", "ann", patch, false)
				assert.NoError(t, err)
			})
		}
		merging.Wait()
		metadata, err := machines.ParseObject(f.Show("m", "ann").Metadata)
		require.NoError(t, err)
		assert.Len(t, metadata, 1)
		assert.Len(t, metadata["a"], 21)
		kept, err := f.Merge(t.Context(), "m", "ann", machines.Object{"a": nil}, true)
		require.NoError(t, err)
		assert.JSONEq(t, `{"a":null}`, string(kept.Metadata))
		_, err = f.Merge(t.Context(), "m", "ann", machines.Object{"a": strings.Repeat("x", machines.MaxMetadata)}, false)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid)
	})
}

func TestADeletedNameComesFree(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		old := f.Show("m", "ann")
		merge(f, "ann", `{"go":true}`)
		task := f.Take("ben")
		require.NoError(t, f.Delete(t.Context(), f.Machine("m"), "ann", f.Now))
		assert.True(t, f.Finish(task))
		f.RequireSound(t)
		label, _, err := f.Label(t.Context(), "m", "ann")
		require.ErrorIs(t, err, machines.ErrLabelDeleted)
		assert.Equal(t, f.Now, label.DeletedAt)
		assert.Equal(t, []machines.StateName{"first", ""}, f.Route("m", "ann"))
		for _, key := range []string{f.Keys.Label("m", "ann"), f.Keys.LabelHistory("m", "ann")} {
			assert.InDelta(t, machines.TombstoneTTL, f.Server.Raw.PTTL(t.Context(), key).Val(), float64(time.Minute))
			require.NoError(t, f.Server.Raw.Del(t.Context(), key).Err())
		}
		f.Now = f.Now.Add(machines.TombstoneTTL)
		f.Create("m", "ann", `{}`)
		assert.Equal(t, []machines.StateName{"first"}, f.Route("m", "ann"))
		label = f.Show("m", "ann")
		assert.NotEqual(t, old.IdempotencyToken(), label.IdempotencyToken())
	})
}

func TestLists(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		ctx := t.Context()
		definitions, err := f.Definitions(ctx)
		require.NoError(t, err)
		names := []machines.LabelName{"B", "a", "a:b", "aa", "é", "z"}
		for _, i := range []int{3, 0, 5, 2, 4, 1} {
			f.Create("m", names[i], `{}`)
		}
		f.Change("m", "aa", `{"go":1}`)
		f.Change("m", "B", `{"go":1}`)
		pages := func(filter engine.Filter) (all []machines.LabelName) {
			for range 20 {
				page, next, err := f.List(ctx, "m", filter)
				require.NoError(t, err)
				for _, l := range page {
					assert.Equal(t, f.Show("m", l.Name).State, l.State)
					all = append(all, l.Name)
				}
				if filter.After = next; next == "" {
					return all
				}
			}
			t.Fatal("the list has no end")
			return nil
		}
		for limit := range 7 {
			assert.ElementsMatch(t, names, pages(engine.Filter{Limit: limit + 1}))
			assert.IsNonDecreasing(t, texts(pages(engine.Filter{Limit: limit + 1})))
			assert.Equal(t, []machines.LabelName{"B", "aa"}, pages(engine.Filter{State: "second", Limit: limit + 1}))
			assert.Empty(t, pages(engine.Filter{Errored: true, Limit: limit + 1}))
		}
		counts, errored, err := f.Counts(ctx, definitions, "m")
		require.NoError(t, err)
		assert.Zero(t, errored)
		assert.Equal(t, []machines.StateCount{{Machine: "m", State: "first", Labels: 4}, {Machine: "m", State: "second", Labels: 2}, {Machine: "m", State: "third"}}, counts)
	})
}

func texts(names []machines.LabelName) (list []string) {
	for _, name := range names {
		list = append(list, string(name))
	}
	return list
}

func TestWaitingForRest(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Create("m", "ann", `{}`)
		merge(f, "ann", `{"go":true}`)
		label, _, err := f.Rest(t.Context(), "m", "ann", time.Millisecond)
		require.NoError(t, err)
		assert.False(t, label.Resting)
		rested := make(chan machines.StateName)
		go func() {
			label, _, err := f.Rest(t.Context(), "m", "ann", time.Minute)
			assert.NoError(t, err)
			rested <- label.State
		}()
		f.Work()
		assert.Equal(t, machines.StateName("second"), <-rested)
	})
}

// TestBytesOfALabel measures the memory of many labels with 100 bytes of metadata.
func TestBytesOfALabel(t *testing.T) {
	t.Parallel()
	const labels, most = 5000, 700
	server := rdbtest.Real(t)
	f := machinestest.New(t, server)
	f.Apply(gates)
	used := func() int64 {
		var bytes int64
		_, err := fmt.Sscanf(server.Raw.Info(t.Context(), "memory").Val(), "# Memory\r\nused_memory:%d", &bytes)
		require.NoError(t, err)
		return bytes
	}
	before := used()
	metadata := machines.Object{"name": strings.Repeat("x", 89)}
	for i := range labels {
		_, err := f.Add(t.Context(), "m", machines.LabelName(fmt.Sprintf("user:%d", i)), metadata, f.Now)
		require.NoError(t, err)
	}
	each := (used() - before) / labels
	t.Logf("%d bytes a label", each)
	assert.LessOrEqual(t, each, int64(most))
}

// TestSlicesOfLongMetadataAreShort has labels of 64 kB each read in several slices.
func TestSlicesOfLongMetadataAreShort(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Apply(gates)
		definitions, err := f.Definitions(t.Context())
		require.NoError(t, err)
		m := definitions.Machines[0]
		for i := range 7 {
			_, err := f.Add(t.Context(), m.Name, machines.LabelName(fmt.Sprint(i)), machines.Object{"x": strings.Repeat("y", 65_000)}, f.Now)
			require.NoError(t, err)
		}
		walk := machines.Walk{Machine: m.Name, State: m.First().Name}
		slice, err := f.Slice(t.Context(), walk, "", 100)
		require.NoError(t, err)
		assert.Len(t, slice, 5)
		slice, err = f.Slice(t.Context(), walk, slice[4].Name, 100)
		require.NoError(t, err)
		assert.Len(t, slice, 2)
	})
}

// TestAListOfManyStates reads as much as it lists, however many states there are.
func TestAListOfManyStates(t *testing.T) {
	t.Parallel()
	const states, limit = machines.MaxStates, 100
	server := rdbtest.Real(t)
	f := machinestest.New(t, server)
	var text strings.Builder
	text.WriteString("state_machines:\n  m:\n    states:\n")
	for i := range states {
		fmt.Fprintf(&text, "      - {gate: s%d, triggers: [{metadata: go}], exit_condition: metadata.go, next: s%d}\n", i, (i+1)%states)
	}
	f.Apply(text.String())
	definitions, err := f.Definitions(t.Context())
	require.NoError(t, err)
	var names []machines.LabelName
	for i := range states { // as if they had moved there
		name := machines.LabelName(fmt.Sprintf("user:%05d", i))
		names = append(names, name)
		_, err := f.Add(t.Context(), "m", name, machines.Object{}, f.Now)
		require.NoError(t, err)
		state := definitions.Machine("m").States[i%states].Name
		server.Raw.ZRem(t.Context(), f.Keys.LabelsIn("m", "s0"), string(name))
		server.Raw.ZAdd(t.Context(), f.Keys.LabelsIn("m", state), redis.Z{Member: string(name)})
		server.Raw.HSet(t.Context(), f.Keys.Label("m", name), "state", string(state))
	}
	var list []engine.Listed
	var next machines.LabelName
	counts, sent := calls(t, server, func() {
		list, next, err = f.List(t.Context(), "m", engine.Filter{Limit: limit})
		require.NoError(t, err)
	}, "zrangebylex", "hget")
	t.Logf("a list of %d labels of %d states: %v, %d bytes read", limit, states, counts, sent)
	require.Len(t, list, limit)
	for i, l := range list {
		assert.Equal(t, engine.Listed{Name: names[i], State: definitions.Machine("m").States[i].Name}, l)
	}
	assert.Equal(t, names[limit-1], next)
	assert.Equal(t, map[string]int{"zrangebylex": 1, "hget": limit}, counts)
}
