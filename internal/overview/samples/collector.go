package samples

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// readTimeout bounds each part of a sample.
const readTimeout = 500 * time.Millisecond

// Config says of which bus samples are taken.
type Config struct {
	Stores   *store.Bus
	JobTypes JobTypes
	Machines Machines
	// Memory gives the marks of autodrop.
	Memory bus.MemoryLimits
	// ScalingDeadline is how soon a delivery must be due to count as due.
	ScalingDeadline time.Duration
}

// Collector takes samples of a bus. It is safe for concurrent use.
type Collector struct {
	config Config
	// partitions are those of the bus, by number; the first has what there is once.
	partitions []*partition
	processes  *processes
	timeout    time.Duration
	now        func() time.Time
	startedAt  time.Time
	// clock is what a sample takes for the time, given what Redis does. Tests hold it.
	clock func(redis time.Time) time.Time

	// mu is held while a sample is taken, and guards asked and what the partitions remember.
	mu    sync.Mutex
	asked asked
}

// NewCollector makes a collector. Now is the clock of this process; samples have that of Redis.
func NewCollector(config Config, now func() time.Time) *Collector {
	c := &Collector{
		config: config, processes: &processes{config.Stores.First().Partition()},
		timeout: readTimeout, now: now, startedAt: now(), clock: func(redis time.Time) time.Time { return redis },
	}
	for _, st := range config.Stores.All() {
		c.partitions = append(c.partitions, &partition{
			Collector: c, redis: st.Partition(), keys: layout.Keys{Namespace: st.Partition().Namespace()},
			inspector: inspect.Of(st), known: known{batches: inspect.Batches{}},
		})
	}
	return c
}

// Collect takes a sample. It has names, and no token. If Redis does not tell the time, nothing else
// is read. A part that cannot be read within 500 ms is left out; all of them have a second. It does
// not read [overview.Times]: those who look cost Redis no more than they must.
func (c *Collector) Collect(ctx context.Context) overview.Sample { return c.collect(ctx, false) }

// collect is Collect; or, if timed, with times and without clients, as the history has them.
func (c *Collector) collect(ctx context.Context, timed bool) overview.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*c.timeout)
	defer cancel()
	drafts := c.readPartitions(ctx, timed)
	d := merge(drafts)
	if d.Redis != "" {
		return d.Sample
	}
	d.addSubscribers()
	d.addClients()
	d.Running, d.timed = c.now().Sub(c.startedAt), timed
	once := []part{
		{overview.PartCounters, c.readCounters},
		{overview.PartJobTypes, c.readJobTypes},
		{overview.PartMachines, c.readMachines},
		{overview.PartProcesses, c.readProcesses},
	}
	if why := drafts[0].Redis; why != "" { // each would wait for it
		for _, p := range once {
			d.Unread = append(d.Unread, overview.Unread{Part: p.name, Why: why})
		}
	} else {
		c.read(ctx, d, once...)
	}
	if d.hasDamage() {
		c.findDamage(ctx, d)
	}
	return d.Sample
}

// readPartitions takes the parts of a sample that are about partitions, of all at once. A panic of
// one is its own: its callers report that, and go on.
func (c *Collector) readPartitions(ctx context.Context, timed bool) []*draft {
	drafts, panics := make([]*draft, len(c.partitions)), make([]any, len(c.partitions))
	var reading sync.WaitGroup
	defer reading.Wait()
	for i, p := range c.partitions[1:] {
		reading.Go(func() {
			defer func() { panics[i] = recover() }()
			drafts[i+1] = p.collect(ctx, timed)
		})
	}
	drafts[0] = c.partitions[0].collect(ctx, timed)
	reading.Wait()
	for _, reason := range panics {
		if reason != nil {
			panic(reason)
		}
	}
	return drafts
}

// part reads a part of a sample.
type part struct {
	name string
	read func(context.Context, *draft) error
}

// read reads parts, as far as they can be read.
func (c *Collector) read(ctx context.Context, d *draft, parts ...part) {
	for _, p := range parts {
		if err := c.bounded(ctx, func(ctx context.Context) error { return p.read(ctx, d) }); err != nil {
			d.Unread = append(d.Unread, overview.Unread{Part: p.name, Why: explain(err)})
		}
	}
}

// findDamage names the keys because of which parts could not be read.
func (c *Collector) findDamage(ctx context.Context, d *draft) {
	for _, p := range c.partitions {
		if damaged, err := p.inspector.DamagedSingles(ctx); err == nil {
			d.Damaged = append(d.Damaged, damaged...)
		}
	}
	if d.Lacks(overview.PartProcesses) && c.processes.isDamaged(ctx) {
		d.Damaged = append(d.Damaged, layout.Keys{}.Processes())
	}
}

func (c *Collector) bounded(ctx context.Context, read func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return read(ctx)
}

// explain says why a read has failed, in words that everybody may see: no address.
func explain(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Redis did not answer within %d ms", readTimeout.Milliseconds())
	case errors.Is(err, bus.ErrUnavailable):
		return "Redis is unavailable, or refuses calls"
	}
	return notOfTheBus
}

// notOfTheBus is what explains an answer that the bus does not know, as from a key of another type.
const notOfTheBus = "Redis answered with what is not of the bus"

func (c *Collector) readProcesses(ctx context.Context, d *draft) (err error) {
	d.Processes, err = c.processes.list(ctx)
	return err
}

func (c *Collector) readJobTypes(ctx context.Context, s *draft) error {
	types, err := c.config.JobTypes.Read(ctx)
	for _, t := range types {
		s.JobTypes = append(s.JobTypes, overview.JobTypeState{
			Name: string(t.Name), Queued: t.Queued, Waiting: t.Waiting, InProgress: t.InProgress,
			Concurrency: int64(t.Concurrency), OldestAt: t.Oldest, Paused: t.Paused,
			Succeeded: t.Ended[jobs.Succeeded], Failed: t.Ended[jobs.Failed], Expired: t.Ended[jobs.Expired],
		})
	}
	slices.SortFunc(s.JobTypes, func(a, b overview.JobTypeState) int { return strings.Compare(a.Name, b.Name) })
	return err
}

func (c *Collector) readMachines(ctx context.Context, s *draft) error {
	all, err := c.config.Machines.Read(ctx)
	for _, m := range all {
		state := overview.MachineState{Name: string(m.Machine), Errored: m.Errored, Unpublished: m.Unpublished}
		for _, in := range m.States {
			state.Labels += in.Labels
		}
		for outcome, n := range m.Steps {
			if outcome == telemetry.Moved {
				state.Moved += n
			} else {
				state.Failed += n
			}
		}
		s.Machines = append(s.Machines, state)
	}
	slices.SortFunc(s.Machines, func(a, b overview.MachineState) int { return strings.Compare(a.Name, b.Name) })
	return err
}
