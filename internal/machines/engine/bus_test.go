package engine_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
)

// TestAllOfALabelIsInItsPartition takes labels through their lives, and checks where they leave
// keys.
func TestAllOfALabelIsInItsPartition(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx := t.Context()
		f.apply(machineOf("a", "b", "c"))
		names := f.names(2)
		for _, name := range names {
			f.Create("m", name, `{}`)
			f.Change("m", name, `{"a":true,"b":true}`)
			assert.Equal(t, machines.StateName("b"), f.Show("m", name).State)
			f.Change("m", name, `{"b":true}`)
			assert.Equal(t, []machines.StateName{"a", "b", "c"}, f.Route("m", name))
		}
		require.NoError(t, f.Stores.Of("m", names[0]).Delete(ctx, f.Machine("m"), names[0], f.Now))
		_, err := f.Stores.Of("m", names[0]).Add(ctx, "m", names[0], machines.Object{}, f.Now)
		require.ErrorIs(t, err, machines.ErrLabelDeleted)
		for number, p := range f.Partitions {
			seen := 0
			require.NoError(t, p.EachKey(ctx, p.Namespace()+"*", func(page []string) error {
				for _, key := range page {
					if _, id, isLabel := strings.Cut(key, "machines:label:"); isLabel {
						assert.EqualValues(t, number, f.Partitions.OfLabel(id).Number(), key)
						seen++
					}
				}
				return nil
			}))
			assert.Equal(t, 2, seen)
		}
	})
}

// pages reads a list to its end, a page at a time.
func (f *partitioned) pages(filter engine.Filter) (names []machines.LabelName) {
	f.T.Helper()
	for range 1000 {
		page, next, err := f.Stores.List(f.T.Context(), "m", filter)
		require.NoError(f.T, err)
		require.LessOrEqual(f.T, len(page), filter.Limit)
		for _, l := range page {
			names = append(names, l.Name)
		}
		if filter.After = next; next == "" {
			return names
		}
	}
	require.Fail(f.T, "the list has no end")
	return nil
}

// TestListsAndCountsAreOfAllPartitions has labels in two states, some of them errored.
func TestListsAndCountsAreOfAllPartitions(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		ctx := t.Context()
		f.apply(load(`
state_machines:
  m:
    states:
      - {gate: a, triggers: [{metadata: go}], exit_condition: metadata.go, next: b}
      - {action: b, webhook: "http://127.0.0.1:1/", attempts: 1, next: c}
      - {gate: c, exit_condition: false}
`))
		var all, errored []machines.LabelName
		random := rand.New(rand.NewPCG(1, 2))
		for _, name := range f.names(9) {
			f.Create("m", name, `{}`)
			all = append(all, name)
			if random.IntN(3) == 0 {
				f.Change("m", name, `{"go":true}`)
				require.False(t, f.Show("m", name).ErroredAt.IsZero())
				errored = append(errored, name)
			}
		}
		slices.Sort(all)
		slices.Sort(errored)
		waiting := slices.DeleteFunc(slices.Clone(all), func(n machines.LabelName) bool { return slices.Contains(errored, n) })
		for _, limit := range []int{1, 2, 3, 8, 26, 27, 28, 100} {
			assert.Equal(t, all, f.pages(engine.Filter{Limit: limit}), "%d", limit)
			assert.Equal(t, waiting, f.pages(engine.Filter{Limit: limit, State: "a"}), "%d", limit)
			assert.Equal(t, errored, f.pages(engine.Filter{Limit: limit, Errored: true}), "%d", limit)
			assert.Equal(t, errored, f.pages(engine.Filter{Limit: limit, Errored: true, State: "b"}), "%d", limit)
			assert.Empty(t, f.pages(engine.Filter{Limit: limit, Errored: true, State: "a"}), "%d", limit)
			assert.Empty(t, f.pages(engine.Filter{Limit: limit, State: "c"}))
		}
		want := []machines.StateCount{
			{Machine: "m", State: "a", Labels: int64(len(waiting))}, {Machine: "m", State: "b", Labels: int64(len(errored))},
			{Machine: "m", State: "c"},
		}
		definitions, err := f.Stores.Definitions(ctx)
		require.NoError(t, err)
		counts, n, err := f.Stores.Counts(ctx, definitions, "m")
		require.NoError(t, err)
		assert.EqualValues(t, len(errored), n)
		assert.Equal(t, want, counts)
		counted, err := f.Stores.CountAll(ctx)
		require.NoError(t, err)
		assert.Equal(t, []machines.Count{{Machine: "m", States: want, Errored: n}}, counted)

		_, err = f.Partitions[1].Hold(ctx, 0)
		require.NoError(t, err)
		_, _, err = f.Stores.List(ctx, "m", engine.Filter{Limit: 1})
		require.ErrorIs(t, err, bus.ErrUnavailable)
		_, _, err = f.Stores.Counts(ctx, definitions, "m")
		require.ErrorIs(t, err, bus.ErrUnavailable)
		require.NoError(t, f.Partitions[1].Release(ctx))
	})
}

// TestLabelsOfAllPartitionsAreWalked by triggers of time, and as the definitions change.
func TestLabelsOfAllPartitionsAreWalked(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(load(`
state_machines:
  m:
    states:
      - {gate: a, triggers: [{interval: 20m}], exit_condition: metadata.go, next: b}
      - {gate: b, exit_condition: false}
`))
		names := f.names(2)
		for _, name := range names {
			f.Create("m", name, `{"go":true}`)
		}
		f.Pass(20 * 60e9)
		for _, name := range names {
			assert.Equal(t, machines.StateName("b"), f.Show("m", name).State)
		}
		f.apply(machineOf("x", "y"), machines.StateMove{Machine: "m", From: "b", To: "y"})
		f.Work()
		for _, name := range names {
			assert.Equal(t, []machines.StateName{"a", "b", "y"}, f.Route("m", name))
		}
		f.apply(machineOf("x", "y", "z"))
		definitions, err := f.Stores.Definitions(t.Context())
		require.NoError(t, err)
		assert.Empty(t, definitions.Moves, "no label is left to move")
	})
}

// TestDefinitionsAreInMemoryOnce although each partition is read.
func TestDefinitionsAreInMemoryOnce(t *testing.T) {
	eachPartitioned(t, func(t *testing.T, f *partitioned) {
		f.apply(machineOf("a", "b"))
		f.apply(machineOf("a", "b", "c"))
		first, err := f.Stores.Definitions(t.Context())
		require.NoError(t, err)
		for _, st := range f.Stores.All() {
			d, err := st.Definitions(t.Context())
			require.NoError(t, err)
			assert.Same(t, first, d)
		}
		names, err := f.Stores.MachineNames(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[string]bool{"m": true}, names)
	})
}
