package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// shops are the jobs of a bus with three partitions, and a clock.
type shops struct {
	*jobs.Bus
	*testing.T
	bus *storetest.Partitions
	now time.Time
}

func newShops(t *testing.T, server *rdbtest.Server) *shops {
	p := storetest.NewPartitions(t, server.Open(t))
	return &shops{jobs.NewBus(p.All), t, p, time.UnixMicro(1_800_000_000_000_000)}
}

func each(t *testing.T, test func(t *testing.T, s *shops)) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, newShops(t, server)) })
}

// typeIn is the type of a partition with a number.
func (s *shops) typeIn(partition rdb.Number, n int) jobs.TypeName {
	return jobs.TypeName(s.bus.TypeIn(partition, n))
}

func newType(name jobs.TypeName, now time.Time) jobs.Type {
	return jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 100, Pull: true,
		Timeout: time.Minute, Retention: time.Hour, CreatedAt: now, UpdatedAt: now,
	}
}

// add makes a type whose services fetch its jobs.
func (s *shops) add(name jobs.TypeName) {
	s.Helper()
	require.NoError(s, s.CreateType(s.Context(), newType(name, s.now)))
}

// addAll makes a type in each partition.
func (s *shops) addAll() (names []jobs.TypeName) {
	s.Helper()
	for number := range s.All() {
		names = append(names, s.typeIn(rdb.Number(number), 0))
		s.add(names[number])
		s.now = s.now.Add(time.Second)
	}
	return names
}

// id is that with a number.
func id(n int) jobs.ID { return jobs.ID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

// put enqueues the job of a type with a number, and returns when.
func (s *shops) put(name jobs.TypeName, n int) time.Time {
	s.Helper()
	_, err := s.Of(name).Enqueue(s.Context(), name, []jobs.NewJob{{ID: id(n), Data: []byte("1")}}, "", s.now)
	require.NoError(s, err)
	return s.now
}

// fetch takes jobs of a type.
func (s *shops) fetch(name jobs.TypeName, max int) {
	s.Helper()
	list, _, err := s.Of(name).Fetch(s.Context(), name, max, s.now)
	require.NoError(s, err)
	require.Len(s, list, max)
}

// pages reads a list to its end, a page at a time.
func (s *shops) pages(archived bool, f jobs.Filter) (ids []jobs.ID) {
	s.Helper()
	read := s.Open
	if archived {
		read = s.Archived
	}
	for range 200 {
		page, next, err := read(s.Context(), f)
		require.NoError(s, err)
		require.LessOrEqual(s, len(page), f.Limit)
		for _, job := range page {
			ids = append(ids, job.ID)
		}
		if f.Before = next; next == "" {
			return ids
		}
	}
	require.Fail(s, "the list has no end")
	return nil
}

// run takes all due jobs of a partition with a worker, and completes them as succeeded.
func (s *shops) run(number int) (ids []jobs.ID) {
	s.Helper()
	q, ctx := s.Queues()[number], s.Context()
	_, err := q.Schedule(ctx, bus.QueueJobs, s.now, 1000)
	require.NoError(s, err)
	for {
		taken, err := q.Acquire(ctx, bus.QueueJobs, "worker", bus.Failing, s.now)
		require.NoError(s, err)
		require.Empty(s, taken.Poisoned)
		if taken.Task == nil {
			return ids
		}
		require.EqualValues(s, number, taken.Task.Partition)
		ids = append(ids, taken.Task.Payload.(*jobs.Run).ID)
		_, err = q.Complete(ctx, taken.Task, queue.Result{Detail: jobs.Outcome{Result: jobs.RunSucceeded}}, s.now)
		require.NoError(s, err)
	}
}
