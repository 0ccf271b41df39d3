package jobs

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
)

// Check looks again at jobs that have not ended, and whose entry was not found where it has to be.
func Check(ctx context.Context, e *exam.Examination) error {
	x := examination{e, jobstore.Keys{Namespace: e.Keys.Namespace}}
	open := func(yield func(string) bool) {
		for id, r := range e.Records {
			if isOpen(r) && !yield(scan.EntryOf(id)) {
				return
			}
		}
	}
	return e.FindMissing(ctx, bus.QueueJobs, open, func(entry string) (string, []exam.Check) {
		id := scan.JobIn(bus.QueueJobs, entry)
		return x.work.Job(jobs.ID(id)), x.unchanged(id)
	})
}
