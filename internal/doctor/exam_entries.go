package doctor

import (
	"iter"

	"routemaster/internal/bus"
)

// findMissing looks for entries that a queue must have, and that were not found where they have to
// be. Whose returns the key of what lacks its entry, and the checks that it must have one.
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
