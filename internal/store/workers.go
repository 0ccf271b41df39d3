package store

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Heartbeat notes that workers are alive.
func (s *Store) Heartbeat(ctx context.Context, now time.Time, workers ...bus.WorkerID) error {
	args := []any{now.UnixMilli()}
	for _, worker := range workers {
		args = append(args, string(worker))
	}
	return rdb.Wrap("heartbeat", s.redis.Run(ctx, scriptWorkerHeartbeat, args...).Err())
}

// Retire removes a worker that stops, and puts back what it has pending. It returns the number of
// jobs put back.
func (s *Store) Retire(ctx context.Context, worker bus.WorkerID) (int, error) {
	const evenIfActive = math.MaxInt64
	return s.scrub(ctx, worker, evenIfActive, true)
}

// ScrubQueues puts back the jobs, in some queues, of workers that have been silent since a time, or are
// unknown. It returns the number of jobs put back.
func (s *Store) ScrubQueues(ctx context.Context, since time.Time, queues ...bus.Queue) (int, error) {
	suspects := map[bus.WorkerID]bool{}
	for _, q := range queues {
		members, err := s.redis.SMembers(ctx, s.keys.PendingIndex(q)).Result()
		if err != nil {
			return 0, rdb.Wrap("list workers", err)
		}
		for _, worker := range members {
			suspects[bus.WorkerID(worker)] = true
		}
	}
	jobs, _, err := s.scrubAll(ctx, slices.Collect(maps.Keys(suspects)), since, false)
	return jobs, err
}

// ScrubWorkers forgets workers that have been silent since a time, and puts back what they may still
// have pending. It returns the number of jobs put back, and of workers forgotten.
func (s *Store) ScrubWorkers(ctx context.Context, since time.Time) (jobs, forgotten int, err error) {
	workers, err := s.redis.HGetAll(ctx, s.keys.Workers()).Result()
	if err != nil {
		return 0, 0, rdb.Wrap("list workers", err)
	}
	var silent []bus.WorkerID
	for worker, active := range workers {
		if integer(active, 0) <= since.UnixMilli() {
			silent = append(silent, bus.WorkerID(worker))
		}
	}
	return s.scrubAll(ctx, silent, since, true)
}

// scrubAll returns the number of jobs put back, and of workers that were silent.
func (s *Store) scrubAll(ctx context.Context, workers []bus.WorkerID, since time.Time, forget bool) (jobs, silent int, err error) {
	for _, worker := range workers {
		scrubbed, err := s.scrub(ctx, worker, since.UnixMilli(), forget)
		if err != nil {
			return jobs, silent, err
		}
		if scrubbed >= 0 { // else it has come back
			jobs += scrubbed
			silent++
		}
	}
	return jobs, silent, nil
}

func (s *Store) scrub(ctx context.Context, worker bus.WorkerID, since int64, forget bool) (int, error) {
	args := []any{string(worker), since, forget}
	for _, q := range bus.Queues {
		args = append(args, string(q))
	}
	jobs, err := s.redis.Run(ctx, scriptWorkerScrub, args...).Int()
	return jobs, rdb.Wrap("scrub worker", err)
}
