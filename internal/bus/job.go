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
	// QueueJobs holds the jobs of services.
	QueueJobs Queue = "jobs"
	// QueueMachines holds the labels of state machines.
	QueueMachines Queue = "machines"
	// QueueRelay holds the relays, on a bus with partitions.
	QueueRelay Queue = "relay"
)

// Queues lists all queues except the relays' queue.
var Queues = [...]Queue{QueueMain, QueueAux, QueueJobs, QueueMachines}

// JobName is the kind of a job.
type JobName string

// The jobs.
const (
	// JobBatch delivers the batch named by its one argument.
	JobBatch JobName = "batch"
	// JobJob hands the job of a service named by its one argument, a UUID, to the service.
	JobJob JobName = "job"
	// JobLabel does the work due for a label, given its machine and its name.
	JobLabel JobName = "label"
	// JobWalk looks at all labels in a state, given its machine and the name of the walk.
	JobWalk JobName = "walk"
	// JobMoves publishes moves of labels, given their machine and the number of the first.
	JobMoves JobName = "moves"
	// JobRelay carries events to the partition of the number that is its one argument.
	JobRelay JobName = "relay"
	// JobAutodrop drops batches when Redis is about to be full.
	JobAutodrop JobName = "autodrop"
	// JobMonitor sends the bus's gauges and counters to the metric service.
	JobMonitor JobName = "monitor"
	// JobScrubQueues requeues the pending jobs of dead workers.
	JobScrubQueues JobName = "scrub_queues"
	// JobScrubWorkers removes workers that are long dead.
	JobScrubWorkers JobName = "scrub_workers"
)

// Timeouts of a worker's heartbeat: after the first its jobs are requeued, after the second the
// worker itself is removed.
const (
	DeadAfter   = 30 * time.Second
	ForgetAfter = 120 * time.Second
)

// Job is a unit of work. Two jobs with the same name and arguments are the same job.
type Job struct {
	Name JobName
	Args []string
}
