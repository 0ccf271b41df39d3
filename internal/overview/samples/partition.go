package samples

import (
	"context"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// partition reads what there is in each partition of the bus.
type partition struct {
	*Collector
	redis     *rdb.Partition
	keys      layout.Keys
	inspector *inspect.Inspector
	// ahead is how far the clock of this process was ahead of Redis' when Redis told its time last.
	ahead time.Duration
	known known
}

// collect takes the part of a sample that is about the partition: if timed, without accounts.
func (p *partition) collect(ctx context.Context, timed bool) *draft {
	d := &draft{}
	if err := p.bounded(ctx, func(ctx context.Context) error { return p.ping(ctx, d) }); err != nil {
		return &draft{
			Sample: overview.Sample{At: p.clock(p.now().Add(-p.ahead)), Redis: explain(err)},
			held:   rdb.IsHeld(err),
		}
	}
	p.known.forget(d.At)
	p.read(ctx, d,
		part{overview.PartMemory, p.readMemory},
		part{overview.PartQueues, p.readQueues},
		part{overview.PartTopics, p.readTopics},
		part{overview.PartSubscribers, p.readBacklogs},
		part{overview.PartOldest, p.readOldest},
		part{overview.PartSubscriptions, p.readDetails},
	)
	if !timed {
		p.read(ctx, d, part{overview.PartAccounts, p.readAccounts})
	}
	return d
}

// ping asks Redis for its time, whether it takes writes and runs scripts, and whether the partition
// is held: it may answer reads, and refuse each publish. The write changes nothing: it appends to a
// list that is never there.
func (p *partition) ping(ctx context.Context, d *draft) error {
	var clock rdb.Reply[time.Time]
	var write rdb.Reply[int64]
	var mark rdb.Reply[map[string]string]
	before := p.now()
	_ = p.redis.Pipelined(ctx, "ping", func(pipe rdb.Commands) { // each reply has its own error
		clock, write = pipe.Time(ctx), pipe.LPushX(ctx, layout.Keys{Namespace: p.redis.Namespace()}.SeriesSlot("probe", 0), "")
		mark = p.redis.AskLoss(ctx, pipe)
	})
	if err := clock.Err(); err != nil {
		return rdb.Wrap("ping", err)
	}
	after := p.now()
	p.ahead = before.Add(after.Sub(before) / 2).Sub(clock.Val())
	if loss := p.redis.ParseLoss(mark); loss != nil {
		d.Lost = []bus.DataLoss{*loss}
	}
	if rdb.IsWrongType(mark.Err()) {
		d.Damaged = append(d.Damaged, rdb.IdentityKey)
	}
	d.At, d.Refuses = p.clock(clock.Val()), rdb.Refusal(write.Err())
	if err := write.Err(); d.Refuses == "" && !rdb.Answered(err) {
		return rdb.Wrap("ping", err)
	}
	if d.Refuses == "" {
		d.Refuses = p.redis.RefusesScripts(ctx)
		d.RefusesScripts = d.Refuses != ""
	}
	held, err := p.redis.IsHeld(ctx)
	d.held = held
	return err
}

func (p *partition) readMemory(ctx context.Context, d *draft) error {
	m, err := p.inspector.Memory(ctx)
	if p.known.risks != nil {
		d.Risks = *p.known.risks
	}
	if err == nil && m != nil {
		limit, high, low := p.config.Memory.Marks(m.Max)
		d.node = p.redis.Node()
		d.Memory = &overview.Memory{Used: m.Used, Max: limit, High: high, Low: low}
	}
	if err != nil || p.known.risks != nil {
		return err
	}
	risks, err := p.redis.Risks(ctx)
	if err == nil {
		d.Risks, p.known.risks = risks, &risks
	}
	return err
}

func (p *partition) readQueues(ctx context.Context, d *draft) error {
	jobs, due, err := p.inspector.CountJobs(ctx, d.At.Add(p.config.ScalingDeadline))
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
func (p *partition) readBacklogs(ctx context.Context, d *draft) error {
	backlogs, damaged, err := p.inspector.Backlogs(ctx, &p.known.conditions)
	d.backlogs, d.Damaged = backlogs, append(d.Damaged, damaged...)
	return err
}

func (p *partition) readOldest(ctx context.Context, d *draft) error {
	return p.inspector.FindOldest(ctx, d.backlogs, p.known.batches)
}

// readDetails reads of each subscriber its topics, what came of its last delivery if that failed,
// and whether a batch holds it up.
func (p *partition) readDetails(ctx context.Context, d *draft) error {
	k := &p.known
	if len(d.backlogs) == 0 {
		return nil
	}
	if err := k.read(ctx, p); err != nil {
		return err
	}
	blocked, err := p.inspector.CountBlocked(ctx, k.strict)
	if err != nil {
		return err
	}
	for token := range k.strict {
		k.details[token].blocked = blocked[token] > 0
	}
	d.details = k.details
	return nil
}

// readAccounts reads what clients keep, and how many bytes wait for them; the batches and events
// are known by now. Of what is damaged there is nothing.
func (p *partition) readAccounts(ctx context.Context, d *draft) error {
	var accounts, bytes rdb.Reply[map[string]string]
	err := p.redis.Reads(ctx, "read accounts", func(pipe rdb.Commands) {
		accounts = pipe.HGetAll(ctx, layout.Keys{Namespace: p.redis.Namespace()}.Accounts())
		bytes = pipe.HGetAll(ctx, p.keys.BytesGauge())
	})
	if err != nil {
		return err
	}
	d.accounts, d.queued = account.Nodes{}, map[bus.ClientName]int64{}
	d.accounts.Add(p.redis.Node(), account.Parse(accounts.Val()))
	for _, b := range d.backlogs {
		if size := bus.QueueSize(b.Batches, b.Events, rdb.Integer(bytes.Val()[string(b.Token)], 0)); size > 0 {
			d.queued[b.Client] += size
		}
	}
	return nil
}
