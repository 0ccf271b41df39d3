package store

import "routemaster/internal/bus"

// JobsIndex is the set of all jobs of a queue in any state, packed. Written by enqueue and publish.
func (k Keys) JobsIndex(q bus.Queue) string { return k.Namespace + "jobs:index:" + string(q) }

// Scheduled is a sorted set of the packed jobs to run later, by deadline (ms). Written by publish,
// enqueue and nack.
func (k Keys) Scheduled(q bus.Queue) string { return k.Namespace + "jobs:scheduled:" + string(q) }

// Instant is a list of the packed jobs to run now, taken from the right. Written by publish, enqueue
// and schedule.
func (k Keys) Instant(q bus.Queue) string { return k.Namespace + "jobs:instant:" + string(q) }

// Pending is a list of the one packed job that a worker is running. Written by acquire.
func (k Keys) Pending(q bus.Queue, w bus.WorkerID) string {
	return k.Namespace + "jobs:pending:" + string(q) + ":" + string(w)
}

// PendingIndex is the set of the workers that may have a pending job. Written by acquire.
func (k Keys) PendingIndex(q bus.Queue) string {
	return k.Namespace + "jobs:pending:index:" + string(q)
}

// Workers is a hash of worker to when it was last active (ms). Written by acquire and heartbeat.
func (k Keys) Workers() string { return k.Namespace + "workers" }
