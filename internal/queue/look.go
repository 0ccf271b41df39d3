package queue

import (
	"context"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Look looks at the queues of a partition, of whatever kind their entries are, and changes nothing.
// It is safe for concurrent use.
type Look struct {
	partition *rdb.Partition
	keys      layout.Keys
}

// NewLook makes a look at the queues of a partition.
func NewLook(p *rdb.Partition) *Look { return &Look{p, layout.Keys{Namespace: p.Namespace()}} }

// Entry is an entry that waits in a queue, or is run.
type Entry struct {
	// Job has no name if the entry cannot be read.
	Job bus.Job
	// DueAt is when the entry is to run; zero if it is instant, or run.
	DueAt time.Time
	// Worker is the worker that runs it; empty if it waits.
	Worker bus.WorkerID
}

// Next returns the entries of a queue that are to run next, in that order: at most limit. Scheduled
// ones may have to wait for others of their lane first. It fails with [bus.ErrUnavailable].
func (l *Look) Next(ctx context.Context, queue bus.Queue, limit int) ([]Entry, error) {
	instant, err := l.partition.LRange(ctx, l.keys.Instant(queue), int64(-limit), -1).Result()
	if !rdb.Answered(err) {
		return nil, rdb.Wrap("read queue", err)
	}
	slices.Reverse(instant) // they are taken from the right
	entries := make([]Entry, 0, limit)
	for _, packed := range instant {
		entries = append(entries, entryOf(packed))
	}
	left := int64(limit - len(entries))
	if left == 0 {
		return entries, nil
	}
	scheduled, err := l.partition.MembersFrom(ctx, l.keys.Scheduled(queue), math.Inf(-1), 0, left)
	if !rdb.Answered(err) {
		return nil, rdb.Wrap("read queue", err)
	}
	for _, one := range scheduled {
		e := entryOf(one.Member)
		e.DueAt = time.UnixMilli(int64(one.Score))
		entries = append(entries, e)
	}
	return entries, nil
}

func entryOf(packed string) Entry {
	job, err := wire.UnpackJob(packed)
	if err != nil { // something else wrote it
		return Entry{}
	}
	return Entry{Job: job}
}

// Running returns the entries of a queue that workers run now, by the names of the workers, and how
// many further workers may run one: it looks at limit workers. It fails with [bus.ErrUnavailable].
func (l *Look) Running(ctx context.Context, queue bus.Queue, limit int) (entries []Entry, more int, err error) {
	workers, err := l.partition.SMembers(ctx, l.keys.PendingIndex(queue)).Result()
	if !rdb.Answered(err) {
		return nil, 0, rdb.Wrap("read pending jobs", err)
	}
	slices.Sort(workers)
	if len(workers) > limit {
		workers, more = workers[:limit], len(workers)-limit
	}
	lists := make([]rdb.Reply[[]string], len(workers))
	err = l.partition.Reads(ctx, "read pending jobs", func(pipe rdb.Commands) {
		for i, worker := range workers {
			lists[i] = pipe.LRange(ctx, l.keys.Pending(queue, bus.WorkerID(worker)), 0, 0)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	for i, list := range lists {
		for _, packed := range list.Val() {
			e := entryOf(packed)
			e.Worker = bus.WorkerID(workers[i])
			entries = append(entries, e)
		}
	}
	return entries, more, nil
}

// Workers counts the workers that were active since a time, and the others, whose entries are to be
// requeued. One counts once with its spares. It fails with [bus.ErrUnavailable].
func (l *Look) Workers(ctx context.Context, since time.Time) (active, silent int, err error) {
	all, err := l.partition.HGetAll(ctx, l.keys.Workers()).Result()
	if !rdb.Answered(err) {
		return 0, 0, rdb.Wrap("list workers", err)
	}
	isActive := map[string]bool{}
	for worker, at := range all {
		thread := worker
		if bus.IsUID(worker) {
			thread = worker[:len(worker)-1]
		}
		isActive[thread] = isActive[thread] || !isSilent(at, since)
	}
	for _, is := range isActive {
		if is {
			active++
		} else {
			silent++
		}
	}
	return active, silent, nil
}
