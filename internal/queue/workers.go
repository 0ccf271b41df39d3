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

// retiredTogether is how many workers are removed in one round trip.
const retiredTogether = 100

// Retire removes workers that stop, and requeues what they have pending. It returns the number of
// jobs requeued. It fails with [bus.ErrUnavailable].
func (q *Queue) Retire(ctx context.Context, workers ...bus.WorkerID) (requeued int, err error) {
	const evenIfActive = math.MaxInt64
	for some := range slices.Chunk(workers, retiredTogether) {
		var calls []rdb.Call
		for _, worker := range some {
			calls = append(calls, scriptScrub.Call(scrubArgs(worker, evenIfActive, true)...))
		}
		for _, result := range q.partition.RunAll(ctx, calls...) {
			jobs, err := result.Int()
			if err != nil {
				return requeued, rdb.Wrap("retire worker", err)
			}
			requeued += jobs
		}
	}
	return requeued, nil
}

// Scrub requeues the jobs, in some queues, of workers that have been silent since a time, or are
// unknown. It returns the number of jobs requeued. It fails with [bus.ErrUnavailable].
func (q *Queue) Scrub(ctx context.Context, since time.Time, queues ...bus.Queue) (int, error) {
	candidates := map[bus.WorkerID]bool{}
	for _, queue := range queues {
		members, err := q.partition.SMembers(ctx, q.keys.PendingIndex(queue)).Result()
		if err != nil {
			return 0, rdb.Wrap("list workers", err)
		}
		for _, worker := range members {
			candidates[bus.WorkerID(worker)] = true
		}
	}
	jobs, _, err := q.scrubAll(ctx, slices.Collect(maps.Keys(candidates)), since, false)
	return jobs, err
}

// ForgetWorkers removes workers that have been silent since a time, and requeues what they may
// still have pending. It returns the number of jobs requeued, and of workers removed. It fails with
// [bus.ErrUnavailable].
func (q *Queue) ForgetWorkers(ctx context.Context, since time.Time) (jobs, forgotten int, err error) {
	workers, err := q.partition.HGetAll(ctx, q.keys.Workers()).Result()
	if err != nil {
		return 0, 0, rdb.Wrap("list workers", err)
	}
	var silent []bus.WorkerID
	for worker, active := range workers {
		if at, err := strconv.ParseInt(active, 10, 64); err != nil || at <= since.UnixMilli() {
			silent = append(silent, bus.WorkerID(worker))
		}
	}
	return q.scrubAll(ctx, silent, since, true)
}

// scrubAll returns the number of jobs requeued, and of workers that were silent.
func (q *Queue) scrubAll(
	ctx context.Context, workers []bus.WorkerID, since time.Time, forget bool,
) (jobs, silent int, err error) {
	for _, worker := range workers {
		requeued, err := q.scrub(ctx, worker, since.UnixMilli(), forget)
		if err != nil {
			return jobs, silent, err
		}
		if requeued >= 0 { // else it has come back
			jobs += requeued
			silent++
		}
	}
	return jobs, silent, nil
}

func (q *Queue) scrub(ctx context.Context, worker bus.WorkerID, since int64, forget bool) (int, error) {
	jobs, err := q.partition.Run(ctx, scriptScrub, scrubArgs(worker, since, forget)...).Int()
	return jobs, rdb.Wrap("scrub worker", err)
}

// scrubArgs are what lua/scrub.lua reads.
func scrubArgs(worker bus.WorkerID, since int64, forget bool) []any {
	args := []any{string(worker), since, forget}
	for _, queue := range bus.Queues {
		args = append(args, string(queue))
	}
	return args
}
