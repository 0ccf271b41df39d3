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

// Job is a unit of work. Two jobs with the same name and arguments are the same job.
type Job struct {
	Name JobName
	Args []string
}
