package queue

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Heartbeat notes that workers are alive, and how many entries of a lane they run at once. It fails
// with [bus.ErrUnavailable].
func (q *Queue) Heartbeat(ctx context.Context, now time.Time, workers ...bus.WorkerID) error {
	args := []any{now.UnixMilli(), len(workers)}
	for _, worker := range workers {
		args = append(args, string(worker))
	}
	for name, kind := range q.kinds {
		if most := kind.MaxInFlight(); most > 0 {
			args = append(args, string(name), most)
		}
	}
	return rdb.Wrap("heartbeat", q.partition.Run(ctx, scriptHeartbeat, args...).Err())
}

// Retire removes workers that stop, and requeues their pending jobs. It returns the number of jobs
// requeued. It fails with [bus.ErrUnavailable].
func (q *Queue) Retire(ctx context.Context, workers ...bus.WorkerID) (requeued int, err error) {
	const evenIfActive = math.MaxInt64
	known, err := q.known(ctx, workers)
	if err != nil {
		return 0, err
	}
	requeued, _, err = q.scrubAll(ctx, known, evenIfActive, true)
	return requeued, err
}

// known returns the workers that Redis has any data of. For most of a thread's spares it has none.
func (q *Queue) known(ctx context.Context, workers []bus.WorkerID) (known []bus.WorkerID, err error) {
	if len(workers) == 0 {
		return nil, nil
	}
	ids := make([]string, len(workers))
	members := make([]any, len(workers))
	for i, worker := range workers {
		ids[i], members[i] = string(worker), string(worker)
	}
	var active rdb.Reply[[]any]
	var pending []rdb.Reply[[]bool]
	err = q.partition.Pipelined(ctx, "look up workers", func(pipe rdb.Commands) {
		active = pipe.HMGet(ctx, q.keys.Workers(), ids...)
		for _, queue := range q.Names() {
			pending = append(pending, pipe.SMIsMember(ctx, q.keys.PendingIndex(queue), members...))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, worker := range workers {
		has := func(reply rdb.Reply[[]bool]) bool { return reply.Val()[i] }
		if active.Val()[i] != nil || slices.ContainsFunc(pending, has) {
			known = append(known, worker)
		}
	}
	return known, nil
}

// Scrub requeues the jobs, in some queues, of workers that have been silent since a time, or are
// unknown. It returns the number of jobs requeued. It fails with [bus.ErrUnavailable].
func (q *Queue) Scrub(ctx context.Context, since time.Time, queues ...bus.Queue) (int, error) {
	var members []rdb.Reply[[]string]
	var active rdb.Reply[map[string]string]
	err := q.partition.Pipelined(ctx, "list workers", func(pipe rdb.Commands) {
		for _, queue := range queues {
			members = append(members, pipe.SMembers(ctx, q.keys.PendingIndex(queue)))
		}
		active = pipe.HGetAll(ctx, q.keys.Workers())
	})
	if err != nil {
		return 0, err
	}
	candidates := map[bus.WorkerID]bool{}
	for _, list := range members {
		for _, worker := range list.Val() {
			if isSilent(active.Val()[worker], since) {
				candidates[bus.WorkerID(worker)] = true
			}
		}
	}
	jobs, _, err := q.scrubAll(ctx, slices.Collect(maps.Keys(candidates)), since.UnixMilli(), false)
	return jobs, err
}

// CorrectHeartbeats notes as of now the heartbeats that lie in the future by more than
// [bus.DeadAfter]: their workers' clocks were wrong, or Redis' clock was. A worker that lives notes
// another soon. It fails with [bus.ErrUnavailable].
func (q *Queue) CorrectHeartbeats(ctx context.Context, now time.Time) error {
	active, err := q.partition.HGetAll(ctx, q.keys.Workers()).Result()
	if err != nil {
		return rdb.Wrap("list workers", err)
	}
	var wrong []any
	for worker, at := range active {
		if !isSilent(at, now.Add(bus.DeadAfter)) {
			wrong = append(wrong, worker, now.UnixMilli())
		}
	}
	for some := range slices.Chunk(wrong, 2*scrubbedTogether) {
		if err := q.partition.HSet(ctx, q.keys.Workers(), some...).Err(); err != nil {
			return rdb.Wrap("correct heartbeats", err)
		}
	}
	return nil
}

// isSilent reports whether a worker's last heartbeat (ms) is not after a time. Without one that can
// be read it is silent.
func isSilent(active string, since time.Time) bool {
	at, err := strconv.ParseInt(active, 10, 64)
	return err != nil || at <= since.UnixMilli()
}

// ForgetWorkers removes workers that have been silent since a time, and requeues their pending
// jobs. It returns the number of jobs requeued, and of workers removed. It fails with
// [bus.ErrUnavailable].
func (q *Queue) ForgetWorkers(ctx context.Context, since time.Time) (jobs, forgotten int, err error) {
	workers, err := q.partition.HGetAll(ctx, q.keys.Workers()).Result()
	if err != nil {
		return 0, 0, rdb.Wrap("list workers", err)
	}
	var silent []bus.WorkerID
	for worker, active := range workers {
		if isSilent(active, since) {
			silent = append(silent, bus.WorkerID(worker))
		}
	}
	return q.scrubAll(ctx, silent, since.UnixMilli(), true)
}

// scrubbedTogether is how many workers are scrubbed in one round trip.
const scrubbedTogether = 100

// scrubAll returns the number of jobs requeued, and of workers that were silent.
func (q *Queue) scrubAll(
	ctx context.Context, workers []bus.WorkerID, since int64, forget bool,
) (jobs, silent int, err error) {
	for some := range slices.Chunk(workers, scrubbedTogether) {
		var calls []rdb.Call
		for _, worker := range some {
			calls = append(calls, scriptScrub.Call(scrubArgs(worker, since, forget, q.Names())...))
		}
		for _, result := range q.partition.RunAll(ctx, calls...) {
			requeued, err := result.Int()
			if err != nil {
				return jobs, silent, rdb.Wrap("scrub worker", err)
			}
			if requeued >= 0 { // else it has come back
				jobs += requeued
				silent++
			}
		}
	}
	return jobs, silent, nil
}

// scrubArgs returns the arguments of lua/scrub.lua.
func scrubArgs(worker bus.WorkerID, since int64, forget bool, queues []bus.Queue) []any {
	args := []any{string(worker), since, forget}
	for _, queue := range queues {
		args = append(args, string(queue))
	}
	return args
}
