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
// The list of instant ones is read again: it may be too long for one step to search it.
func Check(ctx context.Context, e *exam.Examination) error {
	missing, waiting := map[string]bool{}, e.Queues[bus.QueueJobs].Entries // by entry; whether it is instant
	for id, r := range e.Records {
		if entry := scan.EntryOf(id); isOpen(r) && (!waiting[entry].Listed || waiting[entry].States() == 0) {
			missing[entry] = waiting[entry].States() > 0
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := e.Settle(ctx); err != nil {
		return err
	}
	if _, err := e.ReadInstant(ctx, bus.QueueJobs, func(entry string, _ int64) {
		if _, is := missing[entry]; is {
			missing[entry] = true
		}
	}); err != nil {
		return err
	}
	x := examination{e, jobstore.Keys{Namespace: e.Keys.Namespace}}
	for entry, found := range missing {
		x.findMissing(entry, found)
	}
	_, err := e.Confirm(ctx)
	return err
}

// findMissing looks at a job that lacks its entry in the index, or all of it.
func (x examination) findMissing(entry string, found bool) {
	id := scan.JobIn(bus.QueueJobs, entry)
	job, index, checks := x.work.Job(jobs.ID(id)), x.Jobs.JobsIndex(bus.QueueJobs), x.unchanged(id)
	if found {
		x.Add(job, "is not in "+entries.JobsIndex(bus.QueueJobs), "added there",
			append(checks, exam.Is(0, "SISMEMBER", index, entry)), exam.Command{"SADD", index, entry})
		return
	}
	x.Add(job, "has no entry in its queue", "given one, to be taken now", append(checks, x.absent(entry)...),
		exam.Command{"SADD", index, entry}, exam.Command{"LPUSH", x.Jobs.Instant(bus.QueueJobs), entry})
}

// absent checks that an entry is nowhere. In the list of instant ones it was just looked for: it
// can only have come in at either end.
func (x examination) absent(entry string) []exam.Check {
	instant, end := x.Jobs.Instant(bus.QueueJobs), x.MaxSearched/2
	return []exam.Check{
		exam.Is("", "ZSCORE", x.Jobs.Scheduled(bus.QueueJobs), entry),
		exam.Is("", "LPOS", instant, entry, "MAXLEN", end),
		exam.Is("", "LPOS", instant, entry, "RANK", -1, "MAXLEN", end),
		exam.Is(0, "HOLDERS", string(bus.QueueJobs), entry),
	}
}
