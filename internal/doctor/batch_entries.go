package doctor

import (
	"context"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// checkJobs looks again at the entries of a queue that do not fit, but for those of services' jobs,
// which package jobs examines. Where their jobs stand in the
// list of instant jobs is read again: that may be too long for one step to search it.
func checkJobs(ctx context.Context, e *Examination, q bus.Queue) error {
	places := map[string][]int64{} // of those that do not fit
	for packed, j := range e.Queues[q].Entries {
		if bid, ours := BatchOf(q, packed); ours && !j.Fits(bid != "") && JobIn(q, packed) == "" {
			places[packed] = nil
		}
	}
	if len(places) == 0 {
		return nil
	}
	if err := e.Settle(ctx); err != nil {
		return err
	}
	head, length, err := e.ReadInstant(ctx, q, func(packed string, index int64) {
		if _, doubtful := places[packed]; doubtful {
			places[packed] = append(places[packed], index)
		}
	})
	if err != nil {
		return err
	}
	for packed, places := range places {
		l := look{e, e.Queues[q].Entries[packed], q, packed, "", head, places, length > e.MaxSearched && places != nil}
		l.bid, _ = BatchOf(q, packed)
		l.Instant = uint16(len(places))
		l.findEntry()
	}
	_, err = e.Confirm(ctx)
	return err
}

// look is a second look at an entry that does not fit.
type look struct {
	*Examination
	Entry
	q           bus.Queue
	packed, bid string
	head        string  // what stood first in the list of instant jobs as that was read
	places      []int64 // in the list of instant jobs
	deep        bool    // it stands in that list, which is too long to be searched
}

func (l look) findEntry() {
	batch, exists := l.Keys.Batch(bus.BatchID(l.bid)), Is(1, "EXISTS", l.Keys.Batch(bus.BatchID(l.bid)))
	switch {
	case l.bid == "":
		l.findJob()
	case !l.There:
		l.findGone()
	case l.Empty():
		lacks := Is("", "LINDEX", batch, store.BatchHeader)
		if l.Events > 0 {
			lacks = Is("", "LINDEX", batch, 0)
		}
		repair := []Command{{"REMOVE_BATCH", l.bid}}
		if l.Pending == 0 && !l.deep { // else it is dropped as it comes up
			repair = append(repair, l.removal()...)
		}
		l.Add(batch, "has no event, or no subscriber", "removed, with all that points to it",
			[]Check{exists, lacks}, repair...)
	case l.Broken:
		l.Add(batch, "does not begin as a batch does", "", []Check{exists})
	default:
		l.findJob()
		if index, created := l.Keys.BatchesIndex(), strconv.FormatInt(l.Created, 10); !l.Indexed {
			l.Add(batch, "is not in "+keys.BatchesIndex(), "added there",
				[]Check{Is(created, "LINDEX", batch, 1), Is("", "ZSCORE", index, l.bid)},
				Command{"ZADD", index, created, l.bid})
		}
	}
}

// findGone looks at what points to a batch that is not there.
func (l look) findGone() {
	if index := l.Keys.BatchesIndex(); l.Indexed {
		l.Add(index, "lists "+l.bid+", which is not there", "removed",
			append(isGone(l.Examination, l.bid), Not("", "ZSCORE", index, l.bid)), Command{"ZREM", index, l.bid})
	}
	job, problem := ShowJob(l.packed), "is for a batch that is not there"
	checks := append(isGone(l.Examination, l.bid), l.present()...)
	switch {
	case l.Pending > 0:
		l.Add(job, problem+", and a worker runs it: it goes when that is completed", "", checks)
	case l.deep:
		l.Add(job, problem+", deep in a long queue: it is dropped as it comes up", "", checks)
	case l.Listed || l.States() > 0:
		checks = append(checks, Is(l.Listed, "SISMEMBER", l.Keys.JobsIndex(l.q), l.packed),
			Is(0, "HOLDERS", string(l.q), l.packed))
		l.Add(job, problem, "removed", checks, l.removal()...)
	}
}

// findJob looks at where a job is, which has its batch if it delivers one.
func (l look) findJob() {
	job, index := ShowJob(l.packed), l.Keys.JobsIndex(l.q)
	add := Command{"SADD", index, l.packed}
	if l.States() == 0 {
		give := Command{"LPUSH", l.Keys.Instant(l.q), l.packed}
		if batch := l.Keys.Batch(bus.BatchID(l.bid)); l.bid != "" {
			l.Add(batch, "has no job", "given one, to be run now",
				append(l.absent(), Is(1, "EXISTS", batch)), add, give)
		} else {
			l.Add(job, "is in "+keys.JobsIndex(l.q)+", but in no state", "made instant",
				append(l.absent(), Is(1, "SISMEMBER", index, l.packed)), add, give)
		}
		return
	}
	if !l.Listed {
		l.Add(job, "is not in "+keys.JobsIndex(l.q), "added there",
			append(l.present(), Is(0, "SISMEMBER", index, l.packed)), add)
	}
	if l.States() > 1 && l.deep {
		l.Add(job, "is in more than one place, deep in a long queue: it is dropped as it comes up again", "",
			l.present())
	} else if l.States() > 1 {
		l.Add(job, "is in more than one place", "reduced to one", l.present(), l.reduction()...)
	}
}

// holders are how often workers have the job.
func (l look) holders() map[string]int {
	times := map[string]int{}
	for worker, held := range l.Examination.Queues[l.q].Pending {
		for _, packed := range held {
			if packed == l.packed {
				times[worker]++
			}
		}
	}
	return times
}

// present checks that the job is in every place where it was seen.
func (l look) present() (checks []Check) {
	instant := l.Keys.Instant(l.q)
	if l.Scheduled {
		checks = append(checks, Not("", "ZSCORE", l.Keys.Scheduled(l.q), l.packed))
	}
	for worker, times := range l.holders() {
		pending := l.Keys.Pending(l.q, bus.WorkerID(worker))
		checks = append(checks, Not("", "LPOS", pending, l.packed, "RANK", times))
	}
	if !l.deep && l.places != nil {
		return append(checks, Not("", "LPOS", instant, l.packed, "RANK", len(l.places)))
	}
	for _, index := range l.places {
		checks = append(checks, Is(1, "NEAR", instant, index, l.packed))
	}
	return checks
}

// absent checks that the job is in no state.
func (l look) absent() []Check {
	checks := l.Absent(l.q, l.packed, l.head)
	for worker := range l.Examination.Queues[l.q].Pending {
		if !l.Has(keys.PendingIndex(l.q), worker) {
			checks = append(checks, Is("", "LPOS", l.Keys.Pending(l.q, bus.WorkerID(worker)), l.packed))
		}
	}
	return checks
}

// removal removes the job, which no worker has.
func (l look) removal() []Command {
	return append(l.unqueue(), Command{"SREM", l.Keys.JobsIndex(l.q), l.packed})
}

// unqueue removes the job from where no worker has it. A long list of instant jobs is not searched.
func (l look) unqueue() []Command {
	commands := []Command{{"ZREM", l.Keys.Scheduled(l.q), l.packed}}
	if l.places != nil {
		commands = append(commands, Command{"LREM", l.Keys.Instant(l.q), 0, l.packed})
	}
	return commands
}

// reduction leaves the job one of its places: the worker that runs it, which has it last, before
// another, any worker before the instant jobs, and these before the scheduled ones.
func (l look) reduction() []Command {
	commands := l.unqueue()
	keep := Command{"LPUSH", l.Keys.Instant(l.q), l.packed}
	runs := false
	for _, worker := range Sorted(l.holders()) {
		held, pending := l.Examination.Queues[l.q].Pending[worker], l.Keys.Pending(l.q, bus.WorkerID(worker))
		commands = append(commands, Command{"LREM", pending, 0, l.packed})
		if !runs {
			keep, runs = Command{"RPUSH", pending, l.packed}, held[len(held)-1] == l.packed
		}
	}
	return append(commands, keep)
}
