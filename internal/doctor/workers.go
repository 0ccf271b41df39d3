package doctor

import (
	"routemaster/internal/bus"
)

func findWorkers(e *Examination) {
	for q, queue := range e.Queues {
		for worker, held := range queue.Pending {
			short, index := keys.Pending(q, bus.WorkerID(worker)), keys.PendingIndex(q)
			if !e.Has(index, worker) {
				e.mustListAs(short, "belongs to a worker that is not in "+index, "added there", index, worker, nil)
			}
			pending := e.Full(short)
			running := held[len(held)-1]
			checks := []Check{Is(running, "LINDEX", pending, -1)}
			var repair []Command
			for i, packed := range held[:len(held)-1] {
				checks = append(checks, Is(packed, "LINDEX", pending, i-len(held)))
				repair = append(repair, Command{"LREM", pending, 1, packed})
				if packed != running {
					repair = append(repair, Command{"RPUSH", e.Keys.Instant(q), packed})
				}
			}
			if repair != nil {
				e.Add(pending, "has several jobs, must have one", "put back, all but the last", checks, repair...)
			}
		}
	}
}
