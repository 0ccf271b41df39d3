// Package machinestest opens state machines on a test's own Redis, with a clock, and does what
// workers would.
package machinestest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/telemetry"
)

// Start is the clock's first time: a Tuesday in winter, 22:13:20 UTC.
var Start = time.UnixMilli(1_700_000_000_000).UTC()

// Namespace is the namespace of a fixture's keys.
const Namespace = "m:"

// soon is the timeout of tests; a wait takes that long only if the test fails.
const soon = time.Minute

// Fixture is the machines of a test. Whatever fails fails the test.
type Fixture struct {
	// Store is the first partition's: most tests have no other one.
	*engine.Store
	Stores     *engine.Bus
	T          testing.TB
	Server     *rdbtest.Server
	Partitions rdb.Partitions
	Runner     *engine.Runner
	Tender     *engine.Tender
	// Tell is the handler of [bus.JobMoves], for tests that publish.
	Tell func(context.Context, *queue.Task) queue.Result
	Keys layout.Keys
	Log  *rdbtest.Buffer
	// Recorder is the runner's, and Metrics its counters.
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Registry
	// Now is the current time of the fixture.
	Now time.Time

	config engine.RunnerConfig
}

// New makes a fixture on a server.
func New(t testing.TB, server *rdbtest.Server) *Fixture {
	client := outbound.New(outbound.Config{
		ConnectTimeout: soon, Timeout: soon, MaxIdle: 4, UserAgent: "routemaster/test",
	}, time.Now)
	t.Cleanup(client.Close)
	f := Beside(t, rdb.Partitions{server.Open(t).Partition(Namespace)}, client)
	f.Server, f.Keys, f.Metrics = server, layout.Keys{Namespace: Namespace}, telemetry.NewRegistry()
	f.Recorder = telemetry.NewRecorder(f.Metrics, nil, slog.New(slog.DiscardHandler))
	f.Configure(func(c *engine.RunnerConfig) { c.Recorder = f.Recorder })
	return f
}

// Beside makes a fixture of a bus that others work on, too.
func Beside(t testing.TB, partitions rdb.Partitions, client *outbound.Client) *Fixture {
	stores := engine.NewBus(partitions)
	f := &Fixture{
		Store: stores.All()[0], Stores: stores, T: t, Partitions: partitions, Log: &rdbtest.Buffer{}, Now: Start,
		config: engine.RunnerConfig{Client: client},
	}
	f.Configure(func(*engine.RunnerConfig) {})
	f.Tender = engine.NewTender(stores, func() time.Time { return f.Now })
	return f
}

// Configure makes the runner anew, with another configuration.
func (f *Fixture) Configure(change func(*engine.RunnerConfig)) {
	change(&f.config)
	log := slog.New(slog.NewTextHandler(f.Log, nil))
	f.Runner = engine.NewRunner(f.Stores, f.config, log, func() time.Time { return f.Now })
}

// Apply replaces the definitions.
func (f *Fixture) Apply(yaml string, moves ...machines.StateMove) {
	f.T.Helper()
	require.NoError(f.T, f.TryApply(yaml, moves...))
}

// TryApply is Apply for definitions that the store may refuse.
func (f *Fixture) TryApply(yaml string, moves ...machines.StateMove) error {
	f.T.Helper()
	next, _, err := definition.Load(definition.File{Name: "machines.yaml", Content: []byte(yaml)})
	require.NoError(f.T, err)
	next.Source = []byte(yaml)
	current, err := f.Definitions(f.T.Context())
	require.NoError(f.T, err)
	version, err := f.Put(f.T.Context(), current, next, moves, f.Now)
	if err == nil {
		require.Equal(f.T, current.Version+1, version)
	}
	return err
}

// Machine returns a machine of the definitions.
func (f *Fixture) Machine(name machines.Name) *machines.Machine {
	f.T.Helper()
	definitions, err := f.Definitions(f.T.Context())
	require.NoError(f.T, err)
	return definitions.Machine(name)
}

// Create makes a label with metadata, and queues it.
func (f *Fixture) Create(machine machines.Name, name machines.LabelName, metadata string) {
	f.T.Helper()
	_, err := f.Stores.Of(machine, name).Add(f.T.Context(), machine, name, f.object(metadata), f.Now)
	require.NoError(f.T, err)
	f.Work()
}

// Change merges a patch into the metadata of a label, and queues it.
func (f *Fixture) Change(machine machines.Name, name machines.LabelName, patch string) {
	f.T.Helper()
	_, err := f.Stores.Of(machine, name).Merge(f.T.Context(), machine, name, f.object(patch), false)
	require.NoError(f.T, err)
	f.Work()
}

func (f *Fixture) object(text string) machines.Object {
	f.T.Helper()
	object, err := machines.ParseObject([]byte(text))
	require.NoError(f.T, err)
	return object
}

// Work runs due tasks with a worker until none is left, and returns how many it ran.
func (f *Fixture) Work() (tasks int) {
	f.T.Helper()
	require.NoError(f.T, f.Tender.Tick(f.T.Context()))
	for range 10_000 {
		task := f.Take("worker")
		if task == nil {
			return tasks
		}
		f.Finish(task)
		tasks++
	}
	f.T.Fatal("there is always more to do")
	return 0
}

// Take takes the next task for a worker; nil if there is none.
func (f *Fixture) Take(worker bus.WorkerID) *queue.Task {
	f.T.Helper()
	for _, q := range f.Stores.Queues() {
		_, err := q.Schedule(f.T.Context(), bus.QueueMachines, f.Now, 10_000)
		require.NoError(f.T, err)
		taken, err := q.Acquire(f.T.Context(), bus.QueueMachines, worker, bus.Failing, f.Now)
		require.NoError(f.T, err)
		require.Empty(f.T, taken.Poisoned)
		if taken.Task != nil {
			return taken.Task
		}
	}
	return nil
}

// Finish runs a task and completes it. It reports whether the worker still had it.
func (f *Fixture) Finish(task *queue.Task) (owned bool) {
	f.T.Helper()
	handle := f.Runner.Run
	switch task.Job.Name {
	case bus.JobWalk:
		handle = f.Runner.Walk
	case bus.JobMoves:
		handle = f.Tell
	}
	owned, err := f.Stores.Queues()[task.Partition].Complete(f.T.Context(), task, handle(f.T.Context(), task), f.Now)
	require.NoError(f.T, err)
	return owned
}

// Pass advances the clock, and runs the work that becomes due.
func (f *Fixture) Pass(d time.Duration) (tasks int) {
	f.T.Helper()
	f.Now = f.Now.Add(d)
	return f.Work()
}

// Show looks a label up.
func (f *Fixture) Show(machine machines.Name, name machines.LabelName) machines.Label {
	f.T.Helper()
	label, _, err := f.Stores.Of(machine, name).Label(f.T.Context(), machine, name)
	require.NoError(f.T, err)
	return label
}

// Route returns the states of a label's history, the oldest first; empty ones for the creation and
// the deletion.
func (f *Fixture) Route(machine machines.Name, name machines.LabelName) (route []machines.StateName) {
	f.T.Helper()
	label, _, err := f.Stores.Of(machine, name).Label(f.T.Context(), machine, name)
	if label.DeletedAt.IsZero() {
		require.NoError(f.T, err)
	}
	moves, count, err := f.Stores.Of(machine, name).History(f.T.Context(), &label)
	require.NoError(f.T, err)
	require.LessOrEqual(f.T, int64(len(moves)), count)
	for i := len(moves) - 1; i >= 0; i-- {
		if i < len(moves)-1 {
			require.Equal(f.T, moves[i+1].To, moves[i].From)
		}
		route = append(route, moves[i].To)
	}
	return route
}

// RequireSound requires the invariants between any two steps: the ones that doctor examines, and
// that the names of deleted labels expire.
func (f *Fixture) RequireSound(t require.TestingT) {
	ctx, raw := f.T.Context(), f.Server.Raw
	for _, p := range f.Partitions {
		var findings []doctor.Finding
		_, err := doctor.New(p, 0).Examine(ctx, false, func(found doctor.Finding) { findings = append(findings, found) })
		require.NoError(t, err)
		require.Empty(t, findings)
		for _, key := range raw.Keys(ctx, p.Namespace()+"machines:label:*").Val() {
			if raw.HExists(ctx, key, "deleted_at").Val() {
				require.Positive(t, raw.PTTL(ctx, key).Val())
			}
		}
	}
}
