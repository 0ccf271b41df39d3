package jobstore_test

import (
	"testing"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

// BenchmarkEnqueue is one job, up to Redis' answer.
func BenchmarkEnqueue(b *testing.B) {
	s := newShop(b, rdbtest.Real(b))
	s.Add("ship", limit(300))
	for b.Loop() {
		s.Put("ship")
	}
}

// BenchmarkCompleteAndAcquire is what a job costs beside its POST, which says that it is done,
// while many wait for their turn.
func BenchmarkCompleteAndAcquire(b *testing.B) {
	s := newShop(b, rdbtest.Real(b))
	s.Add("ship", limit(32))
	fill := func() *queue.Task {
		s.putMany("ship", 10_000)
		return s.acquire("ann").Task
	}
	task := fill()
	for b.Loop() {
		s.Now = s.Now.Add(time.Millisecond)
		_, next, err := s.Queue().CompleteAndAcquire(b.Context(), task, completed, bus.Failing, s.Now)
		if err != nil || next.Err != nil {
			b.Fatal(err, next.Err)
		}
		if task = next.Task; task == nil {
			b.StopTimer()
			task = fill()
			b.StartTimer()
		}
	}
}
