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
	"routemaster/internal/machines"
	"routemaster/internal/overview"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// readTimeout bounds each part of a sample; shareTTL is for how long readers share one.
const (
	readTimeout = 500 * time.Millisecond
	shareTTL    = time.Second
)

// Config configures a collector.
type Config struct {
	Stores *store.Bus
	// CountJobs reads all job types, and how many jobs of each there are.
	CountJobs func(context.Context) ([]jobs.CountedType, error)
	// CountLabels counts the labels of all machines.
	CountLabels func(context.Context) ([]machines.Count, error)
	// Memory gives the marks of autodrop.
	Memory bus.MemoryLimits
	// ScalingDeadline is how soon a delivery must be due to count as due.
	ScalingDeadline time.Duration
}

// Reader is the purpose of a sample. Parts that it does not need cost no command.
type Reader uint8

// The readers of samples.
const (
	// Look is for the figures that people look at.
	Look Reader = 1 << iota
	// Record is for the history, which has [overview.Times] and no clients.
	Record
	// Scrape is for Prometheus.
	Scrape
	// Measure is for a metric service.
	Measure
	// Check is for the keys of subscribers that are damaged.
	Check
)

// watches are the readers that get the readable parts, and a list of the others. For other readers,
// a partition counts only if all of it could be read.
const watches = Look | Record

// Collector takes samples of a bus. It is safe for concurrent use.
type Collector struct {
	config Config
	// partitions are the partitions of the bus, by number; the first has the data that exists once.
	partitions []*partition
	processes  *processes
	timeout    time.Duration
	now        func() time.Time
	startedAt  time.Time
	// clock converts the time of Redis to a sample's time. Tests replace it.
	clock func(redis time.Time) time.Time

	// mu is held while a sample is taken, and guards the fields below and the partitions' caches.
	mu    sync.Mutex
	asked map[Reader]asked
	last  struct {
		overview.Sample
		takenAt time.Time
	}
}

// NewCollector makes a collector. Now is the clock of this process; samples have Redis's time.
func NewCollector(config Config, now func() time.Time) *Collector {
	c := &Collector{
		config: config, processes: &processes{config.Stores.First().Partition()},
		timeout: readTimeout, now: now, startedAt: now(), clock: func(redis time.Time) time.Time { return redis },
		asked: map[Reader]asked{},
	}
	for _, st := range config.Stores.All() {
		c.partitions = append(c.partitions, &partition{
			Collector: c, redis: st.Partition(), keys: layout.Keys{Namespace: st.Partition().Namespace()},
			inspector: inspect.Of(st), known: known{batches: inspect.Batches{}},
		})
	}
	return c
}

// scraped returns the last sample for [Scrape] if it is younger than a second, and takes one
// otherwise. Callers must not change the sample.
func (c *Collector) scraped(ctx context.Context) overview.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last.takenAt) >= shareTTL {
		c.last.Sample = c.collect(ctx, Scrape)
		c.last.takenAt = time.Now()
	}
	return c.last.Sample
}

// Collect takes a sample. It has clients' names, never tokens. If Redis does not return the time,
// Collect reads nothing else. It leaves out a part that cannot be read within 500 ms; all parts
// together have a second.
func (c *Collector) Collect(ctx context.Context, reader Reader) overview.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.collect(ctx, reader)
}

// collect is Collect for a caller that holds mu.
func (c *Collector) collect(ctx context.Context, reader Reader) overview.Sample {
	ctx, cancel := context.WithTimeout(ctx, 2*c.timeout)
	defer cancel()
	drafts := c.readPartitions(ctx, reader)
	d := merge(drafts)
	if d.Redis != "" && !d.goesOn(d.Redis) {
		return d.Sample
	}
	d.addSubscribers()
	d.addClients()
	d.Running = c.now().Sub(c.startedAt)
	once := []part{
		{overview.PartCounters, watches | Scrape, c.readCounters},
		{overview.PartJobTypes, watches | Scrape | Measure, c.readJobTypes},
		{overview.PartMachines, watches | Scrape, c.readMachines},
		{overview.PartProcesses, watches, c.readProcesses},
	}
	if why := drafts[0].Redis; why != "" && !d.goesOn(why) { // each would wait for it
		for _, p := range once {
			d.Unread = append(d.Unread, overview.Unread{Part: p.name, Why: why})
		}
	} else {
		c.read(ctx, d, once...)
	}
	if reader&watches != 0 && d.hasDamage() {
		c.findDamage(ctx, d)
	}
	return d.Sample
}

// readPartitions takes the parts of a sample that are about partitions, of all at once. A panic of
// one is its own: its callers report that, and go on.
func (c *Collector) readPartitions(ctx context.Context, reader Reader) []*draft {
	drafts, panics := make([]*draft, len(c.partitions)), make([]any, len(c.partitions))
	var reading sync.WaitGroup
	defer reading.Wait()
	for i, p := range c.partitions[1:] {
		reading.Go(func() {
			defer func() { panics[i] = recover() }()
			drafts[i+1] = p.collect(ctx, reader)
		})
	}
	drafts[0] = c.partitions[0].collect(ctx, reader)
	reading.Wait()
	for _, reason := range panics {
		if reason != nil {
			panic(reason)
		}
	}
	return drafts
}

// part reads a part of a sample, for some readers.
type part struct {
	name    string
	readers Reader
	read    func(context.Context, *draft) error
}

// read reads the parts that are for the reader of a draft, as far as they can be read.
func (c *Collector) read(ctx context.Context, d *draft, parts ...part) {
	for _, p := range parts {
		if p.readers&d.reader == 0 {
			continue
		}
		if err := c.bounded(ctx, func(ctx context.Context) error { return p.read(ctx, d) }); err != nil {
			d.Unread = append(d.Unread, overview.Unread{Part: p.name, Why: explain(err)})
		}
	}
}

// findDamage names the keys that made parts unreadable.
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

// explain says why a read has failed, in words that every client may see: no address.
func explain(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Redis did not answer within %d ms", readTimeout.Milliseconds())
	case errors.Is(err, bus.ErrUnavailable):
		return "Redis is unavailable, or refuses calls"
	}
	return notOfTheBus
}

// notOfTheBus explains a reply that the bus does not know, as from a key of another type.
const notOfTheBus = "Redis answered with what is not of the bus"

func (c *Collector) readProcesses(ctx context.Context, d *draft) (err error) {
	d.Processes, err = c.processes.list(ctx)
	return err
}

// readJobTypes reads the job types and, if there are any, how many of their jobs have ended, which
// a metric service does not need.
func (c *Collector) readJobTypes(ctx context.Context, d *draft) error {
	types, err := c.config.CountJobs(ctx)
	if err != nil || len(types) == 0 {
		return err
	}
	var counts map[bus.Counter]int64
	if d.reader != Measure {
		var counters []bus.Counter
		for _, t := range types {
			for _, status := range jobs.Archived {
				counters = append(counters, endedJobs(t.Name, status)...)
			}
		}
		if counts, err = c.partitions[0].inspector.ReadCounters(ctx, counters); err != nil {
			return err
		}
	}
	for _, t := range types {
		ended := func(status jobs.Status) (n int64) {
			for _, counter := range endedJobs(t.Name, status) {
				n += counts[counter]
			}
			return n
		}
		d.JobTypes = append(d.JobTypes, overview.JobTypeState{
			Name: string(t.Name), Queued: t.Queued, Waiting: t.Waiting, InProgress: t.InProgress,
			Concurrency: int64(t.Concurrency), OldestAt: t.Oldest, Paused: t.Paused,
			Succeeded: ended(jobs.Succeeded), Failed: ended(jobs.Failed), Expired: ended(jobs.Expired), Cancelled: ended(jobs.Cancelled),
		})
	}
	slices.SortFunc(d.JobTypes, func(a, b overview.JobTypeState) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// endedJobs are the counters of the jobs of a type that ended with a status: their sum is how many.
func endedJobs(name jobs.TypeName, status jobs.Status) []bus.Counter {
	return []bus.Counter{
		telemetry.EndedJobs.Bus(string(name), string(status), telemetry.Web),
		telemetry.EndedJobs.Bus(string(name), string(status), telemetry.Worker),
	}
}

// readMachines counts the labels and, if there are machines, reads the counts of their steps.
func (c *Collector) readMachines(ctx context.Context, d *draft) error {
	all, err := c.config.CountLabels(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	var counters []bus.Counter
	for _, m := range all {
		for _, outcome := range telemetry.BusOutcomes {
			counters = append(counters, telemetry.BusLabelSteps.Bus(string(m.Machine), outcome))
		}
	}
	counts, err := c.partitions[0].inspector.ReadCounters(ctx, counters)
	if err != nil {
		return err
	}
	for _, m := range all {
		state := overview.MachineState{
			Name: string(m.Machine), Errored: m.Errored, Unpublished: m.Unpublished, Steps: map[string]int64{},
		}
		for _, in := range m.States {
			state.Labels += in.Labels
			state.States = append(state.States, overview.LabelState{State: string(in.State), Labels: in.Labels})
		}
		for _, outcome := range telemetry.BusOutcomes {
			n := counts[telemetry.BusLabelSteps.Bus(string(m.Machine), outcome)]
			if state.Steps[outcome] = n; outcome == telemetry.Moved {
				state.Moved += n
			} else {
				state.Failed += n
			}
		}
		d.Machines = append(d.Machines, state)
	}
	slices.SortFunc(d.Machines, func(a, b overview.MachineState) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
