package batches

import (
	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
)

func findWorkers(e *exam.Examination) {
	for q, queue := range e.Queues {
		for worker, held := range queue.Pending {
			pending, index := e.Jobs.Pending(q, bus.WorkerID(worker)), e.Jobs.PendingIndex(q)
			if !e.Has(jobs.PendingIndex(q), worker) {
				e.Add(pending, "belongs to a worker that is not in "+jobs.PendingIndex(q), "added there",
					[]exam.Check{exam.Is(1, "EXISTS", pending), exam.Is(0, "SISMEMBER", index, worker)},
					exam.Command{"SADD", index, worker})
			}
			running := held[len(held)-1]
			checks := []exam.Check{exam.Is(running, "LINDEX", pending, -1)}
			var repair []exam.Command
			for i, packed := range held[:len(held)-1] {
				checks = append(checks, exam.Is(packed, "LINDEX", pending, i-len(held)))
				repair = append(repair, exam.Command{"LREM", pending, 1, packed})
				if packed != running {
					repair = append(repair, exam.Command{"RPUSH", e.Jobs.Instant(q), packed})
				}
			}
			if repair != nil {
				e.Add(pending, "has several jobs, must have one", "put back, all but the last", checks, repair...)
			}
		}
	}
}
