package stats

import "time"

// Snapshot is the state of a bus at one moment.
type Snapshot struct {
	At          time.Time
	Topics      []TopicState
	Subscribers []SubscriberState
	Bus         Metrics
	// Warnings name what could not be read, one sentence each.
	Warnings []string
}

// TopicState is a topic of a [Snapshot].
type TopicState struct {
	Name string
	// Publisher is the public name of a client, empty while nobody has published.
	Publisher string
	// Events is the number of events ever published.
	Events int64
}

// SubscriberState is a subscriber of a [Snapshot]: all subscribers that share a name, as they do
// while a client's token is being changed.
type SubscriberState struct {
	// Name is the public name of a client, never its token.
	Name   string
	Topics []string
	// Timeout is how long the subscriber lets a batch wait for more events.
	Timeout time.Duration
	// Sent is the number of events ever acknowledged, Queued that of events that wait.
	Sent, Queued int64
	// Health is from 0 to 100.
	Health int
	// OldestAt is when the oldest queued event was received, AttemptedAt when the last delivery was
	// attempted. Both are zero if not known.
	OldestAt, AttemptedAt time.Time
}

// Metrics are the metrics of the whole bus. Those that could not be read are zero.
type Metrics struct {
	// Batches is the number of queued batches, Dead that of the events in dead letters, OldestAge the
	// age of the oldest queued event by the clock of the bus, and States whether deliveries are held
	// up, such as [Paused], all by subscriber.
	Batches   map[string]int64
	Dead      map[string]int64
	OldestAge map[string]time.Duration
	States    map[string]string
	// Counts has the workers' counters, by subscriber. A worker adds to them every few seconds.
	Counts map[string]Counts
	Jobs   []Jobs
	// Types are the job types, by name.
	Types []JobTypeState
	// Machines are the state machines, by name.
	Machines []MachineState
	// Due is the number of deliveries due now or soon, nil if not known.
	Due    *int64
	Memory *Memory
}

// The states of a subscriber.
const (
	// Ready is nothing of what follows.
	Ready = "ready"
	// Paced is that its pace does not allow a delivery yet.
	Paced = "paced"
	// Throttled is that the bus waits because deliveries have failed.
	Throttled = "throttled"
	// Paused is that it gets nothing until it is resumed.
	Paused = "paused"
	// Blocked is that a batch that has failed holds up those behind it, with strict_order.
	Blocked = "blocked"
)

// Jobs counts the jobs of a queue that are ready to run (instant), or not due yet (scheduled).
type Jobs struct {
	Queue     string `json:"queue"`
	Instant   int64  `json:"instant"`
	Scheduled int64  `json:"scheduled"`
}

// JobTypeState is a job type at one moment.
type JobTypeState struct {
	Name string
	// Queued is the number of jobs that wait, Waiting those of them that are due and held back by the
	// limit or a pause, InProgress those that their service has, and Concurrency how many it may have.
	Queued, Waiting, InProgress, Concurrency int64
	// OldestAge is the time since the oldest job was enqueued that is due and not in progress, 0 if
	// there is none.
	OldestAge time.Duration
	Paused    bool
	// Ended is the number of jobs that ever ended, by status. Processes add to it every few seconds.
	Ended map[string]float64
}

// MachineState is a state machine at one moment.
type MachineState struct {
	Name string
	// Labels is the number of labels, Errored that of those whose action is not tried again, and
	// Unpublished that of the moves that are still to be published.
	Labels, Errored, Unpublished int64
	// Steps has what workers ever did for labels: [Moved] and [Failed]. They add to it every few
	// seconds.
	Steps map[string]float64
}

// What is counted of the steps of labels.
const (
	// Moved is moves.
	Moved = "moved"
	// Failed is webhooks and evaluations that failed.
	Failed = "failed"
)

// Memory is Redis' memory in bytes. Above High the bus drops the oldest batches, down to Low.
type Memory struct {
	Used int64 `json:"used_bytes"`
	Max  int64 `json:"max_bytes"`
	High int64 `json:"high_mark_bytes"`
	Low  int64 `json:"low_mark_bytes"`
}

// Counts are the deliveries that ever succeeded and failed, and the events that were ever dropped
// because Redis was about to be full.
type Counts struct{ Succeeded, Failed, Dropped float64 }
