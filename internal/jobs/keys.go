package jobs

import (
	"routemaster/internal/bus"
)

// Keys are the jobs' keys in a partition, one method a key; their entries stand in the queue's.
// lua/lib/keys.lua says the same to the scripts; a test holds the two together.
type Keys struct{ Namespace string }

// Types is the set of the names of all types, those included that are being deleted.
func (k Keys) Types() string { return k.Namespace + "work:types" }

// TypesOf is the set of the names of a client's types, those included that are being deleted.
// Root's are in none.
func (k Keys) TypesOf(owner bus.ClientName) string {
	return k.Namespace + "work:types:of:" + string(owner)
}

// Type is a hash of a type.
func (k Keys) Type(name TypeName) string { return k.Namespace + "work:type:" + string(name) }

// Schedules is a hash of the types with a schedule to the time that was enqueued last or, if none
// was, since when it has that schedule (µs).
func (k Keys) Schedules() string { return k.Namespace + "work:schedules" }

// Job is a hash of a job, queued or archived.
func (k Keys) Job(id ID) string { return k.Namespace + "work:job:" + string(id) }

// Data is a job's data, JSON to the letter as it was sent: under the job's id, or where its record
// says.
func (k Keys) Data(id ID) string { return k.Namespace + "work:data:" + string(id) }

// Copies is the set of the ids of the jobs that share data: where it is, which is what follows in
// the key, is in their records. Data without the set is that of one job, which has its id.
func (k Keys) Copies(data ID) string { return k.Namespace + "work:copies:" + string(data) }

// Open is a sorted set of the ids of a type's jobs that have not ended, by their sequence.
func (k Keys) Open(name TypeName) string { return k.Namespace + "work:open:" + string(name) }

// Archive is a sorted set of the ids of a type's archived jobs of a status, by the time at which
// they were archived (µs), or a little later.
func (k Keys) Archive(name TypeName, status Status) string {
	return k.Namespace + "work:archive:" + string(name) + ":" + string(status)
}

// Removed says of a job of a type that was to be tried once, and that was removed, until when (ms)
// it is not enqueued again. It expires about then.
func (k Keys) Removed(name TypeName, id ID) string {
	return k.Namespace + "work:removed:" + string(name) + ":" + string(id)
}

// Pulls is a stream whose last entry is from when there may have been something to fetch last.
func (k Keys) Pulls() string { return k.Namespace + "work:pulls" }
