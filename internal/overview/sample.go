package overview

import (
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Sample is what was read of a bus at one moment, by the clock of Redis. Counts that have "ever" in
// their comment only grow, unless they begin anew; who compares two samples takes a smaller one for
// unknown.
type Sample struct {
	At time.Time
	// Redis is why it could not be read, in words; empty if it could. Then all but At is missing.
	Redis string
	// Held are the numbers of the partitions that are held, have come back without their keys or are
	// on their way to another node, so scripts are refused there; Away are those that do not answer.
	Held, Away []int
	// Refuses is the code with which Redis refuses to write, such as OOM or READONLY, or to run
	// scripts; empty if it does, or if that is not known.
	Refuses string
	// RefusesScripts is whether that is about scripts, and it writes.
	RefusesScripts bool
	// Lost is that Redis has lost data, until an operator acknowledges it: one for each partition.
	Lost []bus.DataLoss
	// Risks say what would be lost if Redis crashed or was full, in sentences.
	Risks []string
	// Running is for how long the process that took the sample has run.
	Running time.Duration

	Topics      []TopicState
	Subscribers []SubscriberState
	Queues      []Queue
	// Due is the number of deliveries that are due now or soon.
	Due       int64
	JobTypes  []JobTypeState
	Machines  []MachineState
	Processes []Process
	// Clients are the [MaxClients] that have most, the largest first; none where the sample is for
	// the history only.
	Clients []Client
	// Memory is nil where Redis does not report it.
	Memory *Memory
	// Ever is what the whole bus has counted, also of topics and subscribers that are gone.
	Ever Ever
	// Unreadable is the number of events that ever could not be read in Redis, Scrubbed that of the
	// threads that ever were taken for dead.
	Unreadable, Scrubbed int64
	// Damaged are the keys that are not of their type. They show clients by name.
	Damaged []string
	// Unread are the parts that could not be read, which are missing.
	Unread []Unread
}

// Unread is a part of a [Sample] that could not be read.
type Unread struct {
	// Part is one of those below, such as [PartTopics].
	Part string `json:"part"`
	// Why is in words that everybody may see.
	Why string `json:"reason"`
	// ReadAt is when it was read last, which is what [Figures] show of it; zero if it never was, and
	// in a sample.
	ReadAt Time `json:"read_at"`
}

// Parts of a [Sample], as warnings call them, and the history.
const (
	PartMemory = "memory"
	PartQueues = "queues"
	// PartSubscribers is who is subscribed, what waits for them, and how their deliveries go.
	PartSubscribers = "subscribers"
	PartOldest      = "oldest events"
	PartTopics      = "topics"
	// PartSubscriptions is the topics of subscribers, what came of their last deliveries, and whether
	// a batch holds them up.
	PartSubscriptions = "subscriptions"
	PartCounters      = "counters"
	PartJobTypes      = "job types"
	PartMachines      = "state machines"
	PartProcesses     = "processes"
	// PartAccounts is what clients keep and have queued, in bytes.
	PartAccounts = "accounts"
	PartHistory  = "history"
)

// Lacks reports whether a part of the sample could not be read.
func (s Sample) Lacks(part string) bool {
	return slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Part == part })
}

// TopicState is a topic of a [Sample].
type TopicState struct {
	Name string
	// Publisher is the public name of a client, empty while nobody has published.
	Publisher string
	// Events is the number of events ever published.
	Events int64
}

// SubscriberState is a subscriber of a [Sample]: all that share a name, as they do while a client's
// token is being changed.
type SubscriberState struct {
	// Name is the public name of a client, never its token.
	Name   string
	Topics []string
	// Timeout is how long the subscriber lets a batch wait for more events.
	Timeout time.Duration
	// Sent is the number of events ever acknowledged; Queued that of events and Batches that of
	// batches that wait; Dead that of the events in dead letters.
	Sent, Queued, Batches, Dead int64
	// Health is from 0 to 100.
	Health int
	// OldestAt is when the oldest queued event was received, AttemptedAt when the last delivery was
	// attempted. Both are zero if not known.
	OldestAt, AttemptedAt time.Time
	// Paused, Throttled and Paced are until when nothing is delivered: it is paused, its deliveries
	// have failed, or it is held to its pace. They may be zero, or in the past.
	Paused, Throttled, Paced time.Time
	// Blocked is whether a failed batch holds up those behind it, with strict_order.
	Blocked bool
	// Failure is what came of the last delivery, such as "503" or "timeout", if none has succeeded
	// since and the client has not subscribed anew; else empty, also if it is not known. Test events
	// do not count.
	Failure string
	Counts  Counts
	// Times are read for the history only.
	Times Times
}

// Ever are the events that were ever published to a bus and acknowledged, and its [Counts].
type Ever struct {
	Published, Acknowledged int64
	Counts
}

// Counts are the deliveries that ever succeeded and failed, and the events that were ever dropped
// because Redis was about to be full.
type Counts struct{ Succeeded, Failed, Dropped int64 }

// Times are sums over the deliveries that ever succeeded, in ms: of how long they took, and of the
// age that the oldest event of the batch had when they began.
type Times struct{ Took, Waited int64 }

// JobTypeState is a job type of a [Sample].
type JobTypeState struct {
	Name string
	// Queued is the number of jobs that wait, Waiting that of those of them that are due and held
	// back by the limit or a pause, InProgress that of those that their service has, and Concurrency
	// how many it may have.
	Queued, Waiting, InProgress, Concurrency int64
	// OldestAt is when the oldest job was enqueued that is due and not in progress; zero if there is
	// none.
	OldestAt time.Time
	Paused   bool
	// Succeeded, Failed and Expired are the jobs that ever ended so.
	Succeeded, Failed, Expired int64
}

// MachineState is a state machine of a [Sample].
type MachineState struct {
	Name string
	// Labels is the number of labels, Errored that of those whose action is not tried again, and
	// Unpublished that of the moves that are still to be published.
	Labels, Errored, Unpublished int64
	// Moved is the number of moves that workers ever made, Failed that of their webhooks and
	// evaluations that ever failed.
	Moved, Failed int64
}

// Queue counts the jobs of a queue that are ready to run (instant), or not due yet (scheduled).
type Queue struct {
	Name      string `json:"queue"`
	Instant   int64  `json:"instant"`
	Scheduled int64  `json:"scheduled"`
}

// MaxClients is how many clients are shown with what they have in Redis.
const MaxClients = 20

// Client says how many bytes of Redis a client takes, about.
type Client struct {
	Name string `json:"client"`
	// Kept are its jobs, job types and labels, Limit is what these may take; nil if it is any number.
	// Of several nodes they are the sums.
	Kept  int64  `json:"kept_bytes"`
	Limit *int64 `json:"limit_bytes,omitempty"`
	// Share is how much of its limit it keeps, on the node where that is most: 1 is full. It is 0 if
	// there is no limit.
	Share float64 `json:"limit_share,omitempty"`
	// Queued is what waits to be delivered to it: see [bus.QueueSize].
	Queued int64 `json:"queued_bytes"`
}

// Memory is Redis' memory in bytes. Above High the bus drops the oldest batches, down to Low.
type Memory struct {
	Used int64 `json:"used_bytes"`
	Max  int64 `json:"max_bytes"`
	High int64 `json:"high_mark_bytes"`
	Low  int64 `json:"low_mark_bytes"`
	// Of several nodes, this is the memory of Node, which is the fullest of so many. Its address is
	// for the operator only.
	Node  string `json:"node,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
}

// Process is a web or worker process that lives, as it says itself every few seconds.
type Process struct {
	// Kind is "web" or "worker".
	Kind string `json:"kind"`
	// Host and PID are for the operator only.
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version"`
	// StartedAt and SeenAt are by the clock of the process, ms since the Unix epoch.
	StartedAt Time `json:"started_at"`
	SeenAt    Time `json:"seen_at"`
	// Threads is how many deliveries a worker makes at once, Busy how many it makes now.
	Threads int `json:"threads"`
	Busy    int `json:"busy"`
	// Others is how many threads it has for the housekeeping, jobs and labels.
	Others int `json:"other_threads"`
	// JobThreads and MachineThreads are how many of them run jobs of services and labels; nil where
	// the process does not say, as web and older workers do not.
	JobThreads     *int `json:"job_threads,omitempty"`
	MachineThreads *int `json:"machine_threads,omitempty"`
	// Ahead is how far its clock is ahead of Redis' in ms, as far as that is known.
	Ahead int64 `json:"clock_ahead_ms"`
	// Refused is how many requests a second web has answered with 401 lately although they had
	// credentials, Throttled how many with 429.
	Refused   float64 `json:"refused_per_second,omitzero"`
	Throttled float64 `json:"throttled_per_second,omitzero"`
}

// threads returns how many threads a worker has for a queue, nil if it does not say.
func (p Process) threads(of bus.Queue) *int {
	switch of {
	case bus.QueueMain:
		return &p.Threads
	case bus.QueueJobs:
		return p.JobThreads
	case bus.QueueMachines:
		return p.MachineThreads
	}
	return nil
}

// Unserved reports whether workers live, and all of them say that they have no thread for a queue.
// It is false if none lives, because that is another problem.
func Unserved(of bus.Queue, processes []Process, now time.Time) (unserved bool) {
	for _, p := range processes {
		if p.Kind != "worker" || !p.lives(now) {
			continue
		}
		if threads := p.threads(of); threads == nil || *threads > 0 {
			return false
		}
		unserved = true
	}
	return unserved
}
