package queue

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Scripts that are the same whatever kinds there are.
var (
	scriptEnqueue   = script("enqueue")
	scriptSchedule  = script("schedule")
	scriptHeartbeat = script("heartbeat")
	scriptScrub     = script("scrub")
)

func script(entry string) *rdb.Script { return rdb.NewScript(Library, lua(entry)) }

// Queue is the job queue of one partition. It is safe for concurrent use.
type Queue struct {
	partition *rdb.Partition
	// group runs the steps that all threads of a worker make all the time.
	group *rdb.Group
	keys  layout.Keys
	kinds map[bus.JobName]Kind
	// maxAhead is how many tasks may be taken ahead.
	maxAhead int
	// scripts are the scripts that call kinds.
	scripts struct{ acquire, complete, retry, completeAcquire, retryAcquire, giveBack *rdb.Script }
}

// New makes a queue whose entries are of these kinds, or of none.
func New(p *rdb.Partition, kinds ...Kind) *Queue {
	q := &Queue{partition: p, group: p.NewGroup(), keys: layout.Keys{Namespace: p.Namespace()}, kinds: map[bus.JobName]Kind{}}
	library := Library
	for _, kind := range kinds {
		q.kinds[kind.Name()] = kind
		if ahead, ok := kind.(AheadKind); ok {
			q.maxAhead = max(q.maxAhead, ahead.MaxAhead())
		}
		library = slices.Concat(library, kind.Library())
	}
	withKinds := func(entry string) *rdb.Script { return rdb.NewScript(library, lua(entry)) }
	q.scripts.acquire, q.scripts.giveBack = withKinds("acquire"), withKinds("give_back")
	q.scripts.complete, q.scripts.completeAcquire = withKinds("complete"), withKinds("complete_acquire")
	q.scripts.retry, q.scripts.retryAcquire = withKinds("retry"), withKinds("retry_acquire")
	return q
}

// Enqueue adds a job to a queue, to be run now, unless it is in the queue already, in any
// state. It reports whether it was added. It fails with [bus.ErrUnavailable].
func (q *Queue) Enqueue(ctx context.Context, queue bus.Queue, job bus.Job) (added bool, err error) {
	n, err := q.partition.Run(ctx, scriptEnqueue, string(queue), wire.PackJob(job), 0).Int()
	return n == 1, rdb.Wrap("enqueue job", err)
}

// Schedule makes the jobs of a queue that are due instant, at most limit of them, and returns
// their number. It fails with [bus.ErrUnavailable].
func (q *Queue) Schedule(ctx context.Context, queue bus.Queue, now time.Time, limit int) (int, error) {
	n, err := q.partition.Run(ctx, scriptSchedule, string(queue), now.UnixMilli(), limit).Int()
	return n, rdb.Wrap("schedule jobs", err)
}

// Due returns the number of a queue's jobs that are instant, or scheduled until a time. It fails
// with [bus.ErrUnavailable].
func (q *Queue) Due(ctx context.Context, queue bus.Queue, until time.Time) (int64, error) {
	var instant, scheduled rdb.Reply[int64]
	err := q.partition.Pipelined(ctx, "count jobs", func(pipe rdb.Commands) {
		instant = pipe.LLen(ctx, q.keys.Instant(queue))
		scheduled = pipe.ZCount(ctx, q.keys.Scheduled(queue), "-inf", strconv.FormatInt(until.UnixMilli(), 10))
	})
	if err != nil {
		return 0, err
	}
	return instant.Val() + scheduled.Val(), nil
}

// never is when a job is due that is not there.
var never = time.UnixMilli(1 << 53)

// NextDue returns when the next of a queue's scheduled jobs is due: in the far future if there is
// none, or with an error, which may be [bus.ErrUnavailable].
func (q *Queue) NextDue(ctx context.Context, queue bus.Queue) (time.Time, error) {
	first, err := q.partition.MembersFrom(ctx, q.keys.Scheduled(queue), math.Inf(-1), 0, 1)
	if err != nil || len(first) == 0 {
		return never, rdb.Wrap("read next job", err)
	}
	ms := min(first[0].Score, float64(never.UnixMilli()))
	return time.UnixMilli(int64(math.Ceil(ms))), nil
}

// NewWaiter prepares to wait for instant jobs of a queue; no wait takes longer than longest.
func (q *Queue) NewWaiter(queue bus.Queue, longest time.Duration) *rdb.Waiter {
	return q.partition.NewWaiter(q.keys.Instant(queue), longest)
}

// Names returns the names of the partition's queues. Relays have one on a bus that has several
// partitions.
func (q *Queue) Names() []bus.Queue {
	names := slices.Clone(bus.Queues[:])
	if q.partition.IsOneOfSeveral() {
		names = append(names, bus.QueueRelay)
	}
	return names
}

// RequireOpen fails with [bus.ErrUnavailable] while the partition is held: see
// [rdb.Partition.RequireOpen].
func (q *Queue) RequireOpen(ctx context.Context) error { return q.partition.RequireOpen(ctx) }

// SteadySince is since when no call has found Redis unavailable: see [rdb.Partition.SteadySince].
func (q *Queue) SteadySince() time.Time { return q.partition.SteadySince() }
