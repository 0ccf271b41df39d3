package store

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Heartbeat notes that workers are alive.
func (s *Store) Heartbeat(ctx context.Context, now time.Time, workers ...bus.WorkerID) error {
	args := []any{now.UnixMilli()}
	for _, worker := range workers {
		args = append(args, string(worker))
	}
	return wrap("heartbeat", s.run(ctx, scriptWorkerHeartbeat, args...).Err())
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
		members, err := s.redis.SMembers(ctx, s.keys.pendingIndex(q)).Result()
		if err != nil {
			return 0, wrap("list workers", err)
		}
		for _, worker := range members {
			suspects[bus.WorkerID(worker)] = true
		}
	}
	return s.scrubAll(ctx, slices.Collect(maps.Keys(suspects)), since, false)
}

// ScrubWorkers forgets workers that have been silent since a time, and puts back what they may still
// have pending. It returns the number of jobs put back.
func (s *Store) ScrubWorkers(ctx context.Context, since time.Time) (int, error) {
	workers, err := s.redis.HGetAll(ctx, s.keys.workers()).Result()
	if err != nil {
		return 0, wrap("list workers", err)
	}
	var silent []bus.WorkerID
	for worker, active := range workers {
		if integer(active, 0) <= since.UnixMilli() {
			silent = append(silent, bus.WorkerID(worker))
		}
	}
	return s.scrubAll(ctx, silent, since, true)
}

func (s *Store) scrubAll(ctx context.Context, workers []bus.WorkerID, since time.Time, forget bool) (int, error) {
	total := 0
	for _, worker := range workers {
		jobs, err := s.scrub(ctx, worker, since.UnixMilli(), forget)
		if err != nil {
			return total, err
		}
		total += max(jobs, 0) // -1: it has come back
	}
	return total, nil
}

func (s *Store) scrub(ctx context.Context, worker bus.WorkerID, since int64, forget bool) (int, error) {
	args := []any{string(worker), since, forget}
	for _, q := range bus.Queues {
		args = append(args, string(q))
	}
	jobs, err := s.run(ctx, scriptWorkerScrub, args...).Int()
	return jobs, wrap("scrub worker", err)
}
