package queue

import "routemaster/internal/bus"

// Keys are the queue's keys in a partition, one method a key. lua/lib/keys.lua says the same to the
// scripts; a test holds the two together.
type Keys struct{ Namespace string }

// JobsIndex is the set of all jobs of a queue in any state, packed.
func (k Keys) JobsIndex(q bus.Queue) string { return k.Namespace + "jobs:index:" + string(q) }

// Scheduled is a sorted set of the packed jobs to run later, by deadline (ms).
func (k Keys) Scheduled(q bus.Queue) string { return k.Namespace + "jobs:scheduled:" + string(q) }

// Instant is a list of the packed jobs to run now. They enter at the left and are taken from the
// right.
func (k Keys) Instant(q bus.Queue) string { return k.Namespace + "jobs:instant:" + string(q) }

// Pending is a list of the one packed job that a worker is running.
func (k Keys) Pending(q bus.Queue, w bus.WorkerID) string {
	return k.Namespace + "jobs:pending:" + string(q) + ":" + string(w)
}

// PendingIndex is the set of the workers that may have a pending job.
func (k Keys) PendingIndex(q bus.Queue) string {
	return k.Namespace + "jobs:pending:index:" + string(q)
}

// Lane is a sorted set of the packed jobs of one lane of a kind, in the order of their turn. The
// first are in flight or about to be, the others wait among the scheduled jobs. It is there only
// while one of its jobs is in flight or waits. It is not of the founding layout.
func (k Keys) Lane(kind bus.JobName, name string) string {
	return k.Namespace + "jobs:lane:" + string(kind) + ":" + name
}

// MaxInFlight is a hash of kind to how many jobs of one lane may be in flight, as the workers noted
// it last. It is not of the founding layout.
func (k Keys) MaxInFlight() string { return k.Namespace + "jobs:max_in_flight" }

// Workers is a hash of worker to when it was last active (ms).
func (k Keys) Workers() string { return k.Namespace + "workers" }
