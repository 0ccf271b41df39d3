package doctor

import (
	"iter"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// findEntries looks for damaged queue entries, except entries of services' jobs, which [findJobs]
// and [findWork] cover.
func findEntries(e *Examination) {
	for _, q := range e.QueueNames() {
		for packed, entry := range e.Queues[q].Entries {
			if bid, ours := BatchOf(q, packed); ours && !entry.Fits(bid != "") && JobIn(q, packed) == "" {
				look{e, entry, q, packed, bid}.findEntry()
			}
		}
	}
}

// look is a look at an entry that does not fit.
type look struct {
	exam        *Examination
	entry       Entry
	q           bus.Queue
	packed, bid string
}

func (l look) findEntry() {
	batch, exists := l.exam.Keys.Batch(bus.BatchID(l.bid)), Is(1, "EXISTS", l.exam.Keys.Batch(bus.BatchID(l.bid)))
	switch {
	case l.bid == "":
		l.findJob()
	case !l.entry.There:
		l.findGone()
	case l.entry.Empty():
		lacks := Is("", "LINDEX", batch, store.BatchHeader)
		if l.entry.Events > 0 {
			lacks = Is("", "LINDEX", batch, 0)
		}
		repair := []Command{{"REMOVE_BATCH", l.bid}}
		if l.entry.Pending == 0 { // else it is dropped as it comes up
			repair = append(repair, l.removal()...)
		}
		l.exam.Add(batch, "has no event, or no subscriber", "removed, with all that points to it",
			[]Check{exists, lacks}, repair...)
	case l.entry.Broken:
		l.exam.Add(batch, "does not begin as a batch does", "", []Check{exists})
	default:
		l.findJob()
		if created := strconv.FormatInt(l.entry.Created, 10); !l.entry.Indexed {
			l.exam.mustList(keys.Batch(bus.BatchID(l.bid)), keys.BatchesIndex(), l.bid, created, Is(created, "LINDEX", batch, 1))
		}
	}
}

// findGone removes references to a batch that does not exist.
func (l look) findGone() {
	if l.entry.Indexed {
		l.exam.mustNotList(keys.BatchesIndex(), "lists "+l.bid+", which is not there", l.bid, isGone(l.exam, l.bid)...)
	}
	job, problem := ShowJob(l.packed), "is for a batch that is not there"
	checks := isGone(l.exam, l.bid)
	switch {
	case l.entry.Pending > 0:
		l.exam.Add(job, problem+", and a worker runs it: it goes when that is completed", "", append(checks, l.present()...))
	case l.entry.Listed || l.entry.States() > 0:
		checks = append(checks, Is(l.entry.Listed, "SISMEMBER", l.exam.Keys.JobsIndex(l.q), l.packed),
			Is(0, "HOLDERS", string(l.q), l.packed))
		l.exam.Add(job, problem, "removed", append(checks, l.present()...), l.removal()...)
	}
}

// findJob looks at where a job is, which has its batch if it delivers one.
func (l look) findJob() {
	job, index := ShowJob(l.packed), l.exam.Keys.JobsIndex(l.q)
	add := Command{"SADD", index, l.packed}
	if l.entry.States() == 0 {
		give := Command{"LPUSH", l.exam.Keys.Instant(l.q), l.packed}
		if batch := l.exam.Keys.Batch(bus.BatchID(l.bid)); l.bid != "" {
			l.exam.Add(batch, "has no job", "given one, to be run now",
				append([]Check{Is(1, "EXISTS", batch)}, l.absent()...), add, give)
		} else {
			l.exam.Add(job, "is in "+keys.JobsIndex(l.q)+", but in no state", "made instant",
				append([]Check{Is(1, "SISMEMBER", index, l.packed)}, l.absent()...), add, give)
		}
		return
	}
	if !l.entry.Listed {
		l.exam.Add(job, "is not in "+keys.JobsIndex(l.q), "added there",
			append([]Check{Is(0, "SISMEMBER", index, l.packed)}, l.present()...), add)
	}
	if l.entry.States() > 1 {
		l.exam.Add(job, "is in more than one place", "reduced to one", l.present(), l.reduction()...)
	}
}

// holders are how often workers have the job.
func (l look) holders() map[string]int {
	times := map[string]int{}
	for worker, held := range l.exam.Queues[l.q].Pending {
		for _, packed := range held {
			if packed == l.packed {
				times[worker]++
			}
		}
	}
	return times
}

// present checks that the job is in every place where it was seen. The list of instant jobs, which
// may be long, is searched last.
func (l look) present() (checks []Check) {
	instant := l.exam.Keys.Instant(l.q)
	if l.entry.Scheduled {
		checks = append(checks, Not("", "ZSCORE", l.exam.Keys.Scheduled(l.q), l.packed))
	}
	for worker, times := range l.holders() {
		pending := l.exam.Keys.Pending(l.q, bus.WorkerID(worker))
		checks = append(checks, Not("", "LPOS", pending, l.packed, "RANK", times))
	}
	if l.entry.Instant > 0 {
		checks = append(checks, Not("", "LPOS", instant, l.packed, "RANK", l.entry.Instant))
	}
	return checks
}

// absent checks that the job is in no state.
func (l look) absent() []Check {
	var checks []Check
	for worker := range l.exam.Queues[l.q].Pending {
		if !l.exam.Has(keys.PendingIndex(l.q), worker) {
			checks = append(checks, Is("", "LPOS", l.exam.Keys.Pending(l.q, bus.WorkerID(worker)), l.packed))
		}
	}
	return append(checks, l.exam.Absent(l.q, l.packed)...)
}

// removal removes the job, which no worker has.
func (l look) removal() []Command {
	return append(l.unqueue(), Command{"SREM", l.exam.Keys.JobsIndex(l.q), l.packed})
}

// unqueue removes the job from where no worker has it.
func (l look) unqueue() []Command {
	return []Command{
		{"ZREM", l.exam.Keys.Scheduled(l.q), l.packed}, {"LREM", l.exam.Keys.Instant(l.q), 0, l.packed},
	}
}

// reduction leaves the job one of its places: the worker that runs it, which has it last, before
// another, any worker before the instant jobs, and these before the scheduled ones.
func (l look) reduction() []Command {
	commands := l.unqueue()
	keep := Command{"LPUSH", l.exam.Keys.Instant(l.q), l.packed}
	runs := false
	for _, worker := range Sorted(l.holders()) {
		held, pending := l.exam.Queues[l.q].Pending[worker], l.exam.Keys.Pending(l.q, bus.WorkerID(worker))
		commands = append(commands, Command{"LREM", pending, 0, l.packed})
		if !runs {
			keep, runs = Command{"RPUSH", pending, l.packed}, held[len(held)-1] == l.packed
		}
	}
	return append(commands, keep)
}

// findMissing looks for queue entries that must exist and are missing. Whose returns the key that
// lacks its entry, and the checks that prove the entry is required.
func (e *Examination) findMissing(
	q bus.Queue, required iter.Seq[string], whose func(entry string) (key string, checks []Check),
) {
	for entry := range required {
		seen, index := e.Queues[q].Entries[entry], e.Keys.JobsIndex(q)
		if seen.Listed && seen.States() > 0 {
			continue
		}
		key, checks := whose(entry)
		if seen.States() > 0 {
			e.Add(key, "is not in "+keys.JobsIndex(q), "added there",
				append(checks, Is(0, "SISMEMBER", index, entry)), Command{"SADD", index, entry})
			continue
		}
		e.Add(key, "has no entry in its queue", "given one, to be taken now", append(checks, e.Absent(q, entry)...),
			Command{"SADD", index, entry}, Command{"LPUSH", e.Keys.Instant(q), entry})
	}
}

// Absent checks that an entry is nowhere. The list of instant ones, which may be long, is searched
// last.
func (e *Examination) Absent(q bus.Queue, entry string) []Check {
	return []Check{
		Is("", "ZSCORE", e.Keys.Scheduled(q), entry),
		Is(0, "HOLDERS", string(q), entry),
		Is("", "LPOS", e.Keys.Instant(q), entry),
	}
}

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
