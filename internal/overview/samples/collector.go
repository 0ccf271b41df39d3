package samples

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	topics    subscribed
}

// NewCollector makes a collector.
func NewCollector(config Config, now func() time.Time) *Collector {
	st := config.Store
	return &Collector{
		config: config, stats: stats.Of(st), inspector: inspect.New(st), processes: &processes{st.Partition()},
		timeout: readTimeout, now: now, startedAt: now(),
	}
}

// part reads a part of a sample.
type part struct {
	// name is what a warning calls the part.
	name string
	read func(context.Context, *overview.Sample) error
}

// Collect takes a sample. It has names, and no token. A part that cannot be read within 500 ms is
// left out, with a warning; without the first part, nothing else is read.
func (c *Collector) Collect(ctx context.Context) overview.Sample {
	s := overview.Sample{At: c.now()}
	s.Running = s.At.Sub(c.startedAt)
	var backlogs []stats.Backlog
	if err := c.bounded(ctx, func(ctx context.Context) (err error) {
		backlogs, err = c.readBacklogs(ctx, &s)
		return err
	}); err != nil {
		return overview.Sample{At: s.At, Redis: explain(err)}
	}
	for _, p := range []part{
		{"readiness for writes", c.probe},
		{overview.PartTopics, c.readTopics},
		{"subscriptions", func(ctx context.Context, s *overview.Sample) error { return c.readDetails(ctx, s, backlogs) }},
		{overview.PartCounters, c.readCounters},
		{"job types", c.readJobTypes},
		{"state machines", c.readMachines},
		{overview.PartProcesses, func(ctx context.Context, s *overview.Sample) (err error) {
			s.Processes, err = c.processes.list(ctx)
			return err
		}},
	} {
		if err := c.bounded(ctx, func(ctx context.Context) error { return p.read(ctx, &s) }); err != nil {
			s.Unread = append(s.Unread, p.name)
			s.Warnings = append(s.Warnings, fmt.Sprintf("The %s could not be read: %s.", p.name, explain(err)))
		}
	}
	return s
}

// probe notes whether Redis takes writes: it may answer reads, and refuse each publish. The write
// changes nothing: it appends to a list that is never there.
func (c *Collector) probe(ctx context.Context, s *overview.Sample) error {
	p := c.config.Store.Partition()
	err := p.LPushX(ctx, Keys{p.Namespace()}.Slot("probe", 0), "").Err()
	if s.Refuses = rdb.Refusal(err); s.Refuses != "" {
		return nil
	}
	return rdb.Wrap("probe", err)
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
	return "Redis answered with what is not of the bus"
}

// readBacklogs reads what waits: all of the subscribers but what readDetails and readCounters add.
func (c *Collector) readBacklogs(ctx context.Context, s *overview.Sample) ([]stats.Backlog, error) {
	snapshot, err := c.stats.Snapshot(ctx, s.At.Add(c.config.ScalingDeadline))
	if err != nil {
		return nil, err
	}
	s.Due, s.Damaged = snapshot.Due, snapshot.Damaged
	for _, name := range bus.Queues {
		jobs := snapshot.Jobs[name]
		s.Queues = append(s.Queues, overview.Queue{Name: string(name), Instant: jobs.Instant, Scheduled: jobs.Scheduled})
	}
	if m := snapshot.Memory; m != nil {
		limit, high, low := c.config.Memory.Marks(m.Max)
		s.Memory = &overview.Memory{Used: m.Used, Max: limit, High: high, Low: low}
	}
	for name, b := range telemetry.ByClient(snapshot.Backlogs) {
		if !b.Subscribed {
			continue
		}
		s.Subscribers = append(s.Subscribers, overview.SubscriberState{
			Name: string(name), Timeout: b.Timeout, Sent: b.Sent, Queued: b.Events, Batches: b.Batches,
			Dead: b.DeadLetterEvents, Health: b.Health, OldestAt: b.OldestAt, AttemptedAt: b.AttemptedAt,
			Paused: b.Holds.Paused, Throttled: b.Holds.Throttled, Paced: b.Holds.Paced, Blocked: b.Lanes.Blocked > 0,
		})
	}
	slices.SortFunc(s.Subscribers, func(a, b overview.SubscriberState) int { return cmp.Compare(a.Name, b.Name) })
	return snapshot.Backlogs, nil
}

func (c *Collector) readTopics(ctx context.Context, s *overview.Sample) error {
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

// readDetails reads of each subscriber its topics, and whether its last delivery failed.
func (c *Collector) readDetails(ctx context.Context, s *overview.Sample, backlogs []stats.Backlog) error {
	tokens := make([]bus.Token, len(backlogs))
	for i, b := range backlogs {
		tokens[i] = b.Token
	}
	topics, err := c.topics.of(ctx, c.stats, tokens, s.At)
	if err != nil {
		return err
	}
	failures, err := c.inspector.Failures(ctx, tokens)
	if err != nil {
		return err
	}
	places := placesOf(s)
	for _, b := range backlogs {
		sub := places[string(b.Client)]
		if sub == nil {
			continue
		}
		for _, topic := range topics[b.Token] {
			sub.Topics = append(sub.Topics, string(topic))
		}
		sub.Failure = cmp.Or(failures[b.Token], sub.Failure)
	}
	for i := range s.Subscribers {
		slices.Sort(s.Subscribers[i].Topics)
		s.Subscribers[i].Topics = slices.Compact(s.Subscribers[i].Topics)
	}
	return nil
}

// placesOf returns where the subscribers of a sample are, by name.
func placesOf(s *overview.Sample) map[string]*overview.SubscriberState {
	places := make(map[string]*overview.SubscriberState, len(s.Subscribers))
	for i := range s.Subscribers {
		places[s.Subscribers[i].Name] = &s.Subscribers[i]
	}
	return places
}

func (c *Collector) readJobTypes(ctx context.Context, s *overview.Sample) error {
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

func (c *Collector) readMachines(ctx context.Context, s *overview.Sample) error {
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
