package doctor

import (
	"routemaster/internal/bus"
)

// findWork looks for jobs that have not ended, and whose entry is not where it has to be.
func findWork(e *Examination) {
	x := jobExam{e}
	open := func(yield func(string) bool) {
		for id, r := range e.Records {
			if isOpen(r) && !yield(EntryOf(id)) {
				return
			}
		}
	}
	e.findMissing(bus.QueueJobs, open, func(entry string) (string, []Check) {
		id := JobIn(bus.QueueJobs, entry)
		return x.Keys.Job(id), x.unchanged(id)
	})
}
