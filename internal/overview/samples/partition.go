package samples

import (
	"context"
	"strconv"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// partition reads the data of one partition of the bus.
type partition struct {
	*Collector
	redis     *rdb.Partition
	keys      layout.Keys
	inspector *inspect.Inspector
	// ahead is how far the clock of this process was ahead of Redis' when Redis told its time last.
	ahead time.Duration
	known known
}

// parts are the parts of a sample that are about the partition, in the order of reading.
func (p *partition) parts() []part {
	return []part{
		{overview.PartMemory, watches | Scrape | Measure, p.readMemory},
		{overview.PartQueues, watches | Scrape | Measure, p.readQueues},
		{overview.PartReplays, Scrape, p.readReplays},
		{overview.PartHistories, Scrape, p.readHistories},
		{overview.PartTopics, watches, p.readTopics},
		{overview.PartSubscribers, watches | Scrape | Measure | Check, p.readBacklogs},
		{overview.PartOldest, watches | Scrape, p.readOldest},
		{overview.PartLanes, Scrape, p.readLanes},
		{overview.PartSubscriptions, watches, p.readDetails},
		{overview.PartAccounts, Look | Scrape, p.readAccounts},
		{overview.PartRelays, Scrape | Measure, p.readRelays},
	}
}

// collect takes the part of a sample that is about the partition.
func (p *partition) collect(ctx context.Context, reader Reader) *draft {
	d := &draft{reader: reader, node: p.redis.Node(), Sample: overview.Sample{At: p.now()}}
	if reader&watches == 0 {
		for _, part := range p.parts() {
			if p.read(ctx, d, part); len(d.Unread) > 0 && !d.goesOn(d.Unread[0].Why) {
				return d.away(d.At, d.Unread[0].Why)
			}
		}
		if len(d.Unread) > 0 {
			away := d.away(d.At, d.Unread[0].Why)
			away.Memory, away.accounts = d.Memory, d.accounts
			return away
		}
		return d
	}
	if err := p.bounded(ctx, func(ctx context.Context) error { return p.ping(ctx, d) }); err != nil {
		d.held = rdb.IsHeld(err)
		return d.away(p.clock(p.now().Add(-p.ahead)), explain(err))
	}
	p.known.forget(d.At)
	p.read(ctx, d, p.parts()...)
	return d
}

// ping asks Redis for its time, whether it takes writes and runs scripts, and whether the partition
// is held: a held one may answer reads, and refuses each publish. The write changes nothing: it
// appends to a list that never exists.
func (p *partition) ping(ctx context.Context, d *draft) error {
	var clock rdb.Reply[time.Time]
	var write rdb.Reply[int64]
	var mark rdb.Reply[map[string]string]
	before := p.now()
	_ = p.redis.Pipelined(ctx, "ping", func(pipe rdb.Commands) { // each reply has its own error
		clock, write = pipe.Time(ctx), pipe.LPushX(ctx, p.keys.SeriesSlot("probe", 0), "")
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
	if err == nil && m != nil {
		limit, high, low := p.config.Memory.Marks(m.Max)
		d.Memory = &overview.Memory{Used: m.Used, Max: limit, High: high, Low: low}
	}
	if d.reader&watches == 0 {
		return err
	}
	if p.known.risks != nil {
		d.Risks = *p.known.risks
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
	if d.reader != Measure {
		return nil
	}
	until := strconv.FormatInt(d.At.UnixMilli(), 10)
	scheduled, err := p.redis.ZCount(ctx, p.keys.Scheduled(bus.QueueJobs), "-inf", until).Result()
	d.DueJobs = jobs[bus.QueueJobs].Instant + scheduled
	return rdb.Wrap("count jobs", err)
}

func (p *partition) readReplays(ctx context.Context, d *draft) (err error) {
	d.RunningReplays, err = p.inspector.RunningReplays(ctx)
	return err
}

func (p *partition) readHistories(ctx context.Context, d *draft) (err error) {
	d.Histories, err = p.inspector.Histories(ctx)
	return err
}

// readBacklogs reads the subscribers' backlogs; the parts below add the rest. For watches alone,
// some of it may be a few seconds old.
func (p *partition) readBacklogs(ctx context.Context, d *draft) error {
	conditions := &p.known.conditions
	if d.reader&watches == 0 {
		conditions = &inspect.Conditions{}
	}
	backlogs, damaged, err := p.inspector.Backlogs(ctx, conditions)
	d.backlogs, d.Damaged = backlogs, append(d.Damaged, damaged...)
	return err
}

func (p *partition) readOldest(ctx context.Context, d *draft) error {
	return p.inspector.FindOldest(ctx, d.backlogs, p.known.batches)
}

func (p *partition) readLanes(ctx context.Context, d *draft) error {
	return p.inspector.AddLanes(ctx, d.backlogs)
}

// readRelays reads, if there are several partitions, the sizes of the outboxes from this one to
// others, and whether this one is held.
func (p *partition) readRelays(ctx context.Context, d *draft) (err error) {
	n := len(p.partitions)
	if n == 1 {
		return nil
	}
	if d.outboxes, err = p.config.Stores.Relays()[p.redis.Number()].Outboxes(ctx, n); err == nil && d.reader == Scrape {
		d.held, err = p.redis.IsHeld(ctx)
	}
	return err
}

// readDetails reads each subscriber's topics, the result of its last delivery if that failed, and
// whether a batch holds it up.
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

// readAccounts reads the clients' accounts, and for viewers the bytes queued for them; the batches
// and events are known by now. It leaves out damaged keys.
func (p *partition) readAccounts(ctx context.Context, d *draft) error {
	var accounts, bytes rdb.Reply[map[string]string]
	looks := d.reader == Look
	err := p.redis.Reads(ctx, "read accounts", func(pipe rdb.Commands) {
		accounts = pipe.HGetAll(ctx, p.keys.Accounts())
		if looks {
			bytes = pipe.HGetAll(ctx, p.keys.BytesGauge())
		}
	})
	if err != nil {
		return err
	}
	d.accounts, d.queued = account.Nodes{}, map[bus.ClientName]int64{}
	d.accounts.Add(d.node, account.Parse(accounts.Val()))
	if !looks {
		return nil
	}
	for _, b := range d.backlogs {
		if size := bus.QueueSize(b.Batches, b.Events, rdb.Integer(bytes.Val()[string(b.Token)], 0)); size > 0 {
			d.queued[b.Client] += size
		}
	}
	return nil
}
