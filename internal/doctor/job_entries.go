package doctor

import (
	"context"

	"routemaster/internal/bus"
)

// checkWork looks again at jobs that have not ended, and whose entry was not found where it has to
// be.
func checkWork(ctx context.Context, e *Examination) error {
	x := jobExam{e}
	open := func(yield func(string) bool) {
		for id, r := range e.Records {
			if isOpen(r) && !yield(EntryOf(id)) {
				return
			}
		}
	}
	return e.FindMissing(ctx, bus.QueueJobs, open, func(entry string) (string, []Check) {
		id := JobIn(bus.QueueJobs, entry)
		return x.Keys.Job(id), x.unchanged(id)
	})
}
