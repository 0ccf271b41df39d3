package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
)

func TestDefinitionsAreReplacedOnce(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		current, err := f.Definitions(t.Context())
		require.NoError(t, err)
		f.Apply(gates)
		_, err = f.Put(t.Context(), current, current, nil, f.Now)
		require.ErrorIs(t, err, machines.ErrChanged)
	})
}

func TestDefinitionsThatCannotBeReadAgainAreRefused(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Apply(gates)
		current, err := f.Definitions(t.Context())
		require.NoError(t, err)
		next := *current
		next.Source = append(next.Source, "state_machines: {twice: {}}"...)
		_, err = f.Put(t.Context(), current, &next, nil, f.Now)
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid)
		assert.Contains(t, invalid.Detail, "all definitions together")
	})
}

// TestReadersShareWhatOneReads has many read definitions that are new to their process.
func TestReadersShareWhatOneReads(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Apply(gates)
		read := make([]*machines.Definitions, 8)
		var readers sync.WaitGroup
		for i := range read {
			readers.Go(func() { read[i], _ = f.Definitions(t.Context()) })
		}
		readers.Wait()
		for _, one := range read {
			assert.Same(t, read[0], one)
		}
	})
}

// TestAMoveIsOverOnceItsStateIsEmpty: definitions keep only the moves that labels need.
func TestAMoveIsOverOnceItsStateIsEmpty(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		state := func(name string) string {
			return "state_machines: {v: {states: [{gate: " + name + ", exit_condition: false}]}}"
		}
		moves := func() []machines.StateMove {
			d, err := f.Definitions(t.Context())
			require.NoError(t, err)
			return d.Moves
		}
		f.Apply(state("a"))
		f.Create("v", "ann", "{}")
		move := machines.StateMove{Machine: "v", From: "a", To: "b"}
		f.Apply(state("b"), move)
		f.Apply(state("b") + " # again")
		assert.Equal(t, []machines.StateMove{move}, moves())
		f.Work()
		f.Apply(state("b"))
		assert.Empty(t, moves())
		f.Apply(state("a"), machines.StateMove{Machine: "v", From: "b", To: "a"})
		f.Work()
		assert.Equal(t, machines.StateName("a"), f.Show("v", "ann").State)
	})
}

// TestAVersionThatIsUsedTwice has Redis lose definitions that a process knows, as one does that
// takes over from another.
func TestAVersionThatIsUsedTwice(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		f.Apply("state_machines: {v: {states: [{gate: a, exit_condition: false}]}}")
		require.NotNil(t, f.Machine("v"))
		version, err := f.Server.Raw.HGet(t.Context(), f.Keys.Definitions(), "version").Int()
		require.NoError(t, err)
		require.NoError(t, f.Server.Raw.Del(t.Context(), f.Keys.Definitions()).Err())
		other := engine.NewStore(f.Partitions[0])
		for range version {
			f.Now = f.Now.Add(time.Second)
			current, err := other.Definitions(t.Context())
			require.NoError(t, err)
			yaml := "state_machines: {w: {states: [{gate: a, exit_condition: false}]}}"
			next, _, err := definition.Load(definition.File{Name: "w", Content: []byte(yaml)})
			require.NoError(t, err)
			next.Source = []byte(yaml)
			_, err = other.Put(t.Context(), current, next, nil, f.Now)
			require.NoError(t, err)
		}
		assert.Nil(t, f.Machine("v"))
		assert.NotNil(t, f.Machine("w"))
	})
}

// TestDefinitionsOfANewerProgramAreReplaced has definitions that this program cannot read.
func TestDefinitionsOfANewerProgramAreReplaced(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		state := func(name string) *machines.Definitions {
			yaml := "state_machines: {v: {states: [{gate: " + name + ", exit_condition: false}]}}"
			d, _, err := definition.Load(definition.File{Name: "v", Content: []byte(yaml)})
			require.NoError(t, err)
			d.Source = []byte(yaml)
			return d
		}
		_, err := f.Stores.Apply(t.Context(), state("a"), nil, f.Now)
		require.NoError(t, err)
		f.Create("v", "ann", "{}")
		definitions := f.Keys.Definitions()
		require.NoError(t, f.Server.Raw.HSet(t.Context(), definitions, "yaml", "newer: {}", "version", "7").Err())
		_, err = f.Definitions(t.Context())
		require.ErrorContains(t, err, "newer version")
		var resting *machines.LabelsRestError
		_, err = f.Stores.Apply(t.Context(), state("b"), nil, f.Now)
		require.ErrorAs(t, err, &resting)
		assert.Equal(t, []machines.StateCount{{Machine: "v", State: "a", Labels: 1}}, resting.States)
		version, err := f.Stores.Apply(t.Context(), state("b"), []machines.StateMove{{Machine: "v", From: "a", To: "b"}}, f.Now)
		require.NoError(t, err)
		assert.Equal(t, int64(8), version)
		f.Work()
		assert.Equal(t, machines.StateName("b"), f.Show("v", "ann").State)
	})
}

// TestLabelsGoByTheDefinitionsOfNow has another process give a version that this one knows to other
// definitions, after Redis came back empty, or older.
func TestLabelsGoByTheDefinitionsOfNow(t *testing.T) {
	goingTo := func(state string) string {
		return "state_machines: {m: {states: [{gate: before_" + state + ", triggers: [{metadata: go}], exit_condition: metadata.go, next: " +
			state + "}, {gate: " + state + ", exit_condition: false}]}}"
	}
	for change, lose := range map[string]func(*testing.T, *machinestest.Fixture){
		"empty": func(t *testing.T, f *machinestest.Fixture) {
			f.Apply(goingTo("charge"))
			require.NotNil(t, f.Machine("m"))
			require.NoError(t, f.Server.Raw.FlushAll(t.Context()).Err())
		},
		"older": func(t *testing.T, f *machinestest.Fixture) {
			backup := f.Server.Raw.HGetAll(t.Context(), f.Keys.Definitions()).Val()
			f.Apply(goingTo("charge"))
			require.NotNil(t, f.Machine("m"))
			require.NoError(t, f.Server.Raw.HSet(t.Context(), f.Keys.Definitions(), backup).Err())
		},
	} {
		for _, adds := range []string{"other", "this one"} {
			t.Run(change+", label added by "+adds, func(t *testing.T) {
				each(t, func(t *testing.T, f *machinestest.Fixture) {
					lose(t, f)
					other := machinestest.Beside(t, f.Partitions, nil)
					for d := new(machines.Definitions); d.Version < 2; {
						other.Now = other.Now.Add(time.Second)
						other.Apply(goingTo("mail"))
						var err error
						d, err = other.Definitions(t.Context())
						require.NoError(t, err)
					}
					by := other
					if adds == "this one" {
						by = f
					}
					_, err := by.Add(t.Context(), "m", "ann", machines.Object{}, f.Now)
					require.NoError(t, err)
					merge(other, "ann", `{"go": true}`)
					task := f.Take("worker")
					require.NotNil(t, task)
					f.Finish(task)
					label, _, err := other.Label(t.Context(), "m", "ann")
					require.NoError(t, err)
					assert.Equal(t, machines.StateName("mail"), label.State)
				})
			})
		}
	}
}
