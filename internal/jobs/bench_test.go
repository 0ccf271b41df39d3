package jobs_test

import (
	"strings"
	"testing"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
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

// BenchmarkCompleteAndAcquire measures the cost of a job besides its POST, whose answer completes
// it, while many jobs wait for their turn.
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

// BenchmarkEnqueueArray is an array of 1,000 jobs with 100 bytes of data each, up to Redis' answer.
func BenchmarkEnqueueArray(b *testing.B) {
	s := newShop(b, rdbtest.Real(b))
	s.Add("ship", limit(300))
	data := []byte(`"` + strings.Repeat("x", 98) + `"`)
	for b.Loop() {
		b.StopTimer()
		list := make([]jobs.NewJob, 1000)
		for i := range list {
			list[i] = jobs.NewJob{ID: jobs.NewID(), Data: data}
		}
		b.StartTimer()
		if _, err := s.Enqueue(b.Context(), "ship", list, "", s.Now); err != nil {
			b.Fatal(err)
		}
	}
}
