package bus

import "time"

// Queue names a queue of jobs.
type Queue string

// The queues.
const (
	// QueueMain holds the deliveries.
	QueueMain Queue = "main"
	// QueueAux holds the housekeeping.
	QueueAux Queue = "aux"
)

// Queues lists all queues.
var Queues = [...]Queue{QueueMain, QueueAux}

// JobName says what a job does.
type JobName string

// The jobs.
const (
	// JobBatch delivers the batch named by its one argument.
	JobBatch JobName = "batch"
	// JobAutodrop drops the oldest batches when Redis is about to be full.
	JobAutodrop JobName = "autodrop"
	// JobMonitor sends what waits in the bus, and its counters, to the metric service.
	JobMonitor JobName = "monitor"
	// JobScrubQueues puts the pending jobs of dead workers back.
	JobScrubQueues JobName = "scrub_queues"
	// JobScrubWorkers forgets workers that are long dead.
	JobScrubWorkers JobName = "scrub_workers"
)

// How long a worker may be silent before its jobs are put back, and before it is forgotten.
const (
	DeadAfter   = 30 * time.Second
	ForgetAfter = 120 * time.Second
)

// minRedisUptime is how long Redis must have been available before a worker's silence counts: while
// Redis is unavailable, no heartbeat arrives. It is longer than the interval of heartbeats.
const minRedisUptime = 10 * time.Second

// CanDetectDeadWorkers reports whether a silent worker may be considered dead, given since when Redis
// has been available.
func CanDetectDeadWorkers(availableSince, now time.Time) bool {
	return now.Sub(availableSince) >= minRedisUptime
}

// Job is a unit of work. Two jobs with the same name and arguments are the same job.
type Job struct {
	Name JobName
	Args []string
}
