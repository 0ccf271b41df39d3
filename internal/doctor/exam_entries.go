package doctor

import (
	"context"
	"iter"

	"routemaster/internal/bus"
)

// FindMissing looks again for entries that a queue must have, and that were not found where they
// have to be. The list of instant ones is read again: it may be too long for one step to search it.
// Whose returns the key of what lacks its entry, and the checks that it must have one.
func (e *Examination) FindMissing(
	ctx context.Context, q bus.Queue, required iter.Seq[string], whose func(entry string) (key string, checks []Check),
) error {
	missing, waiting := map[string]bool{}, e.Queues[q].Entries // by entry; whether it is somewhere
	for entry := range required {
		if !waiting[entry].Listed || waiting[entry].States() == 0 {
			missing[entry] = waiting[entry].States() > 0
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := e.Settle(ctx); err != nil {
		return err
	}
	head, _, err := e.ReadInstant(ctx, q, func(entry string, _ int64) {
		if _, is := missing[entry]; is {
			missing[entry] = true
		}
	})
	if err != nil {
		return err
	}
	for entry, found := range missing {
		key, checks := whose(entry)
		e.addMissing(q, entry, found, head, key, checks)
	}
	_, err = e.Confirm(ctx)
	return err
}

// addMissing adds that something lacks its entry in the index, or all of it.
func (e *Examination) addMissing(q bus.Queue, entry string, found bool, head, key string, checks []Check) {
	index := e.Keys.JobsIndex(q)
	if found {
		e.Add(key, "is not in "+keys.JobsIndex(q), "added there",
			append(checks, Is(0, "SISMEMBER", index, entry)), Command{"SADD", index, entry})
		return
	}
	e.Add(key, "has no entry in its queue", "given one, to be taken now", append(checks, e.Absent(q, entry, head)...),
		Command{"SADD", index, entry}, Command{"LPUSH", e.Keys.Instant(q), entry})
}

// Absent checks that an entry is nowhere. In the list of instant ones it was looked for, since an
// entry stood at its head.
func (e *Examination) Absent(q bus.Queue, entry, head string) []Check {
	return []Check{
		Is("", "ZSCORE", e.Keys.Scheduled(q), entry),
		Is(0, "CAME_IN", e.Keys.Instant(q), entry, head, e.MaxSearched),
		Is(0, "HOLDERS", string(q), entry),
	}
}
