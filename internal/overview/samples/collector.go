package samples

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/store/stats"
	"routemaster/internal/telemetry"
)

// readTimeout bounds each part of a sample.
const readTimeout = 500 * time.Millisecond

// Config says of which bus samples are taken.
type Config struct {
	Store    *store.Store
	JobTypes telemetry.JobTypes
	Machines telemetry.Machines
	// Memory gives the marks of autodrop.
	Memory bus.MemoryLimits
	// ScalingDeadline is how soon a delivery must be due to count as due.
	ScalingDeadline time.Duration
}

// Collector takes samples of a bus. It is safe for concurrent use.
type Collector struct {
	config    Config
	stats     *stats.Stats
	inspector *inspect.Inspector
	processes *processes
	timeout   time.Duration
	now       func() time.Time
	startedAt time.Time
	// clock is what a sample takes for the time, given what Redis does. Tests hold it.
	clock func(redis time.Time) time.Time

	// mu is held while a sample is taken, and guards the fields below.
	mu sync.Mutex
	// ahead is how far the clock of this process was ahead of Redis' when Redis told its time last.
	ahead time.Duration
	known known
}

// NewCollector makes a collector. Now is the clock of this process; samples have that of Redis.
func NewCollector(config Config, now func() time.Time) *Collector {
	st := config.Store
	return &Collector{
		config: config, stats: stats.Of(st), inspector: inspect.New(st), processes: &processes{st.Partition()},
		timeout: readTimeout, now: now, startedAt: now(), clock: func(redis time.Time) time.Time { return redis },
	}
}

// part reads a part of a sample.
type part struct {
	name string
	read func(context.Context, *draft) error
}

// draft is a sample that is being taken. It has the backlogs that it is made from.
type draft struct {
	overview.Sample
	backlogs []stats.Backlog
	// timed is whether it is to have times.
	timed bool
}

// Collect takes a sample. It has names, and no token. If Redis does not tell the time, nothing else
// is read. A part that cannot be read within 500 ms is left out; all of them have a second. It does
// not read [overview.Times]: those who look cost Redis no more than they must.
func (c *Collector) Collect(ctx context.Context) overview.Sample { return c.collect(ctx, false) }

// collect is Collect, with times or without.
func (c *Collector) collect(ctx context.Context, timed bool) overview.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*c.timeout)
	defer cancel()
	d := &draft{Sample: overview.Sample{Running: c.now().Sub(c.startedAt)}, timed: timed}
	if err := c.bounded(ctx, func(ctx context.Context) error { return c.ping(ctx, d) }); err != nil {
		return overview.Sample{At: c.clock(c.now().Add(-c.ahead)), Redis: explain(err)}
	}
	for _, p := range []part{
		{overview.PartMemory, c.readMemory},
		{overview.PartQueues, c.readQueues},
		{overview.PartTopics, c.readTopics},
		{overview.PartSubscribers, c.readBacklogs},
		{overview.PartOldest, c.readOldest},
		{overview.PartSubscriptions, c.readDetails},
		{overview.PartCounters, c.readCounters},
		{overview.PartJobTypes, c.readJobTypes},
		{overview.PartMachines, c.readMachines},
		{overview.PartProcesses, c.readProcesses},
	} {
		if err := c.bounded(ctx, func(ctx context.Context) error { return p.read(ctx, d) }); err != nil {
			d.Unread = append(d.Unread, overview.Unread{Part: p.name, Why: explain(err)})
		}
	}
	if slices.ContainsFunc(d.Unread, func(u overview.Unread) bool { return u.Why == notOfTheBus }) {
		c.findDamage(ctx, d)
	}
	return d.Sample
}

// ping asks Redis for its time, and whether it takes writes: it may answer reads, and refuse each
// publish. The write changes nothing: it appends to a list that is never there.
func (c *Collector) ping(ctx context.Context, d *draft) error {
	p := c.config.Store.Partition()
	var clock rdb.Reply[time.Time]
	var write rdb.Reply[int64]
	before := c.now()
	_ = p.Pipelined(ctx, "ping", func(pipe rdb.Commands) { // each reply has its own error
		clock, write = pipe.Time(ctx), pipe.LPushX(ctx, Keys{p.Namespace()}.Slot("probe", 0), "")
	})
	if err := clock.Err(); err != nil {
		return rdb.Wrap("ping", err)
	}
	after := c.now()
	c.ahead = before.Add(after.Sub(before) / 2).Sub(clock.Val())
	d.At, d.Refuses = c.clock(clock.Val()), rdb.Refusal(write.Err())
	if err := write.Err(); d.Refuses == "" && !rdb.Answered(err) {
		return rdb.Wrap("ping", err)
	}
	return nil
}

// findDamage names the keys because of which parts could not be read.
func (c *Collector) findDamage(ctx context.Context, d *draft) {
	if damaged, err := c.stats.DamagedSingles(ctx); err == nil {
		d.Damaged = append(d.Damaged, damaged...)
	}
	if d.Lacks(overview.PartProcesses) && c.processes.isDamaged(ctx) {
		d.Damaged = append(d.Damaged, Keys{}.Processes())
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

func (c *Collector) readMemory(ctx context.Context, d *draft) error {
	m, err := c.stats.Memory(ctx)
	if err == nil && m != nil {
		limit, high, low := c.config.Memory.Marks(m.Max)
		d.Memory = &overview.Memory{Used: m.Used, Max: limit, High: high, Low: low}
	}
	return err
}

func (c *Collector) readQueues(ctx context.Context, d *draft) error {
	jobs, due, err := c.stats.CountJobs(ctx, d.At.Add(c.config.ScalingDeadline))
	if err != nil {
		return err
	}
	d.Due = due
	for _, name := range bus.Queues {
		d.Queues = append(d.Queues, overview.Queue{Name: string(name), Instant: jobs[name].Instant, Scheduled: jobs[name].Scheduled})
	}
	return nil
}

// readBacklogs reads what waits: all of the subscribers but what the parts below add.
func (c *Collector) readBacklogs(ctx context.Context, d *draft) error {
	c.known.forget(d.At)
	backlogs, damaged, err := c.stats.Backlogs(ctx, &c.known.conditions)
	d.backlogs, d.Damaged = backlogs, append(d.Damaged, damaged...)
	d.Subscribers = make([]overview.SubscriberState, 0, len(backlogs))
	joined := telemetry.ByClient(backlogs)
	for _, name := range slices.Sorted(maps.Keys(joined)) {
		b := joined[name]
		if !b.Subscribed {
			continue
		}
		d.Subscribers = append(d.Subscribers, overview.SubscriberState{
			Name: string(name), Timeout: b.Timeout, Sent: b.Sent, Queued: b.Events, Batches: b.Batches,
			Dead: b.DeadLetterEvents, Health: b.Health, AttemptedAt: b.AttemptedAt,
			Paused: b.Holds.Paused, Throttled: b.Holds.Throttled, Paced: b.Holds.Paced,
		})
	}
	return err
}

func (c *Collector) readOldest(ctx context.Context, d *draft) (err error) {
	c.known.owners, err = c.stats.FindOldest(ctx, d.backlogs, c.known.owners)
	if err != nil {
		return err
	}
	d.eachBacklog(func(b stats.Backlog, sub *overview.SubscriberState) {
		if at := b.OldestAt; sub.OldestAt.IsZero() || !at.IsZero() && at.Before(sub.OldestAt) {
			sub.OldestAt = at
		}
	})
	return nil
}

// eachBacklog calls a function with the backlogs of subscribers. Several may be of one.
func (d *draft) eachBacklog(each func(b stats.Backlog, sub *overview.SubscriberState)) {
	byName := func(sub overview.SubscriberState, name bus.ClientName) int {
		return strings.Compare(sub.Name, string(name))
	}
	for _, b := range d.backlogs {
		if at, found := slices.BinarySearchFunc(d.Subscribers, b.Client, byName); found {
			each(b, &d.Subscribers[at])
		}
	}
}

func (c *Collector) readTopics(ctx context.Context, s *draft) error {
	damaged, err := c.stats.EachTopics(ctx, stats.Page{}, func(some []bus.Topic) error {
		for _, t := range some {
			topic := overview.TopicState{Name: string(t.Name), Events: t.Events}
			if t.Publisher != "" {
				topic.Publisher = string(bus.PublicName(t.Publisher, t.Owner))
			}
			s.Topics = append(s.Topics, topic)
		}
		return nil
	})
	s.Damaged = append(s.Damaged, damaged...)
	if err != nil {
		s.Topics = nil
	}
	return err
}

// readDetails reads of each subscriber its topics, what came of its last delivery if that failed,
// and whether a batch holds it up.
func (c *Collector) readDetails(ctx context.Context, d *draft) error {
	k := &c.known
	if len(d.backlogs) == 0 {
		return nil
	}
	if err := k.read(ctx, c, d); err != nil {
		return err
	}
	blocked, err := c.stats.CountBlocked(ctx, k.lanes)
	if err != nil {
		return err
	}
	d.eachBacklog(func(b stats.Backlog, sub *overview.SubscriberState) {
		for _, topic := range k.topics[b.Token] {
			sub.Topics = append(sub.Topics, string(topic))
		}
		sub.Failure = cmp.Or(k.failures[b.Token], sub.Failure)
		sub.Blocked = sub.Blocked || blocked[b.Token] > 0
	})
	for i := range d.Subscribers {
		slices.Sort(d.Subscribers[i].Topics)
		d.Subscribers[i].Topics = slices.Compact(d.Subscribers[i].Topics)
	}
	return nil
}

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
