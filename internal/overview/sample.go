package overview

import (
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Sample is the state of a bus at one moment, by the clock of Redis. Counts with "ever" in their
// comment only grow, unless they are reset; a caller that compares two samples treats a smaller
// count as unknown.
type Sample struct {
	At time.Time
	// Redis is why it could not be read, in words; empty if it could. Then all but At is missing.
	Redis string
	// Held are the numbers of the partitions that are held, have come back without their keys or
	// are on their way to another node, so scripts are refused there; Away are the partitions that
	// do not answer.
	Held, Away []int
	// Refuses is the code with which Redis refuses to write, such as OOM or READONLY, or to run
	// scripts; empty if it does, or if that is not known.
	Refuses string
	// RefusesScripts is whether that is about scripts, and it writes.
	RefusesScripts bool
	// Lost is that Redis has lost data, until an operator acknowledges it: one for each partition.
	Lost []bus.DataLoss
	// Risks are sentences that say which data a crash or a full Redis would lose.
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
	// Ever holds the counts of the whole bus, including topics and subscribers that are gone.
	Ever Ever
	// Unreadable is the number of events that ever could not be read in Redis, Scrubbed the number
	// of threads that ever were taken for dead.
	Unreadable, Scrubbed int64
	// Damaged are the keys that are not of their type. They show clients by name.
	Damaged []string
	// Metrics are read for metrics only.
	Metrics
	// Unread are the parts that could not be read, which are missing.
	Unread []Unread
}

// Metrics are the parts of a [Sample] that only Prometheus or a metric service asks for.
type Metrics struct {
	// Others are clients that are not subscribed, and have something queued or have had it.
	Others []SubscriberState
	// DueJobs is the number of entries of jobs that are due.
	DueJobs int64
	// RunningReplays is the number of replays that copy, or whose events are still queued.
	RunningReplays int64
	// Histories are the histories of topics, ordered by topic.
	Histories []HistoryState
	// Accounts are the clients' accounts on each node.
	Accounts []Account
	// Partitions are the partitions of a bus that has several, by number, and Nodes the Redis
	// servers that have them.
	Partitions []Partition
	Nodes      []Node
}

// HistoryState is how much is stored of the history of a topic.
type HistoryState struct {
	Topic         string
	Events, Bytes int64
}

// Account is how many bytes the jobs, job types and labels of a client take on a node, and may take
// there; Limit is nil if that is any number.
type Account struct {
	Client, Node string
	Kept         int64
	Limit        *int64
}

// Partition is one of several partitions of a bus.
type Partition struct {
	// IsUp is whether it could be read, and is not held.
	IsUp bool
	// Relayed is the number of events on their way there from the others that could be read, and
	// RelayedSince when the relay of the oldest began; zero if none has.
	Relayed      int64
	RelayedSince time.Time
}

// Node is a Redis server that has partitions of a bus.
type Node struct {
	Address string
	// IsUp is whether all of its partitions could be read; First is the number of one of them.
	IsUp  bool
	First int
	// Memory is nil where Redis does not report it, or is away.
	Memory *Memory
}

// Unread is a part of a [Sample] that could not be read.
type Unread struct {
	// What it is, such as topics; on a bus with partitions it may be one of them, such as
	// partition 07.
	Part string `json:"part"`
	// In words that every client may see.
	Why string `json:"reason"`
	// When it was read last, in ms since the Unix epoch; null if this process never could.
	ReadAt Time `json:"read_at"`
}

// Parts of a [Sample], as warnings call them, and the history.
const (
	PartMemory = "memory"
	PartQueues = "queues"
	// PartSubscribers has the subscribers, their queued events, and the state of their deliveries.
	PartSubscribers = "subscribers"
	PartOldest      = "oldest events"
	PartTopics      = "topics"
	// PartSubscriptions has the topics of subscribers, the results of their last deliveries, and
	// whether a batch blocks them.
	PartSubscriptions = "subscriptions"
	PartCounters      = "counters"
	PartJobTypes      = "job types"
	PartMachines      = "state machines"
	PartProcesses     = "processes"
	// PartAccounts has the bytes that clients keep and have queued.
	PartAccounts = "accounts"
	PartHistory  = "history"
	// PartReplays, PartHistories, PartLanes and PartRelays are read for metrics only.
	PartReplays   = "replays"
	PartHistories = "histories"
	PartLanes     = "lanes"
	PartRelays    = "relays"
)

// Lacks reports whether a part of the sample could not be read.
func (s Sample) Lacks(part string) bool {
	return slices.ContainsFunc(s.Unread, func(u Unread) bool { return u.Part == part })
}

// TopicState is a topic of a [Sample].
type TopicState struct {
	Name string
	// Publisher is the public name of a client, empty before the first publish.
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
	// Sent is the number of events ever acknowledged; Queued and Batches are the numbers of waiting
	// events and batches; Dead is the number of events in dead letters.
	Sent, Queued, Batches, Dead int64
	// Health is from 0 to 100.
	Health int
	// OldestAt is when the oldest queued event was received, AttemptedAt when the last delivery was
	// attempted. Both are zero if not known.
	OldestAt, AttemptedAt time.Time
	// Paused, Throttled and Paced are the times until which the subscriber is paused, throttled
	// after failures, or held to its pace. They may be zero, or in the past.
	Paused, Throttled, Paced time.Time
	// Blocked is whether a failed batch holds up those behind it, with strict_order.
	Blocked bool
	// Failure is the result of the last delivery, such as "503" or "timeout", if none has succeeded
	// since and the client has not subscribed anew; else empty, also if it is not known. Test
	// events do not count.
	Failure string
	Counts  Counts
	// Times are read for the history only.
	Times Times
	// SentEvents and FailedEvents are those in deliveries that ever succeeded and failed. They and
	// the lanes are read for Prometheus only, as are all counts that are [Uncounted].
	SentEvents, FailedEvents int64
	Lanes                    Lanes
}

// Uncounted stands for a count for Prometheus that could not be read: to it, 0 is a beginning anew.
const Uncounted = -1

// Lanes are how many lanes a subscriber has, whether its order is strict, and in how many lanes a
// failed batch then holds up those behind it.
type Lanes struct {
	Count    int
	IsStrict bool
	Blocked  int
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
	// Queued is the number of waiting jobs, Waiting the number of these that are due and held back
	// by the limit or a pause, InProgress the number of jobs at their service, and Concurrency the
	// limit of InProgress.
	Queued, Waiting, InProgress, Concurrency int64
	// OldestAt is when the oldest job was enqueued that is due and not in progress; zero if there is
	// none.
	OldestAt time.Time
	Paused   bool
	// Succeeded, Failed, Expired and Cancelled are the jobs that ever ended so.
	Succeeded, Failed, Expired, Cancelled int64
}

// MachineState is a state machine of a [Sample].
type MachineState struct {
	Name string
	// Labels is the number of labels, Errored the number of labels whose action is not retried, and
	// Unpublished the number of moves still to be published.
	Labels, Errored, Unpublished int64
	// Moved is the number of moves that workers ever made, Failed the number of webhooks and
	// evaluations that ever failed.
	Moved, Failed int64
	// States are the numbers of labels by state, and Steps the numbers of workers' steps ever, by
	// outcome.
	States []LabelState
	Steps  map[string]int64
}

// LabelState is how many labels are in a state of a machine.
type LabelState struct {
	State  string
	Labels int64
}

// Queue counts the jobs of a queue that are ready to run (instant), or not due yet (scheduled).
type Queue struct {
	Name string `json:"queue"`
	// Jobs that are ready to run.
	Instant int64 `json:"instant"`
	// Jobs that are not due yet.
	Scheduled int64 `json:"scheduled"`
}

// MaxClients is the maximum number of clients that are shown with their memory.
const MaxClients = 20

// Client says how many bytes of Redis a client takes, about.
type Client struct {
	Name string `json:"client"`
	// About how much its jobs, job types and labels take: its account.
	Kept int64 `json:"kept_bytes"`
	// The limit of its account; left out if it has none.
	Limit *int64 `json:"limit_bytes,omitempty"`
	// Share of the limit that is taken, on the Redis where it is most: 1 is full. Left out if it is 0.
	Share float64 `json:"limit_share,omitempty"`
	// About how much the events queued for it take.
	Queued int64 `json:"queued_bytes"`
}

// Memory is Redis' memory in bytes. Above High the bus drops the oldest batches, down to Low.
type Memory struct {
	Used int64 `json:"used_bytes"`
	Max  int64 `json:"max_bytes"`
	// Above it the oldest batches are dropped.
	High int64 `json:"high_mark_bytes"`
	// Down to it.
	Low int64 `json:"low_mark_bytes"`
	// Of several nodes, the address of the one whose memory this is: the nearest to its high mark.
	// For the operator only.
	Node string `json:"node,omitempty"`
	// How many nodes there are, if there are several.
	Nodes int `json:"nodes,omitempty"`
}

// Process is a web or worker process that lives, as it says itself every few seconds.
type Process struct {
	Kind string `json:"kind" api:"enum=web|worker"`
	// For the operator only.
	Host string `json:"host,omitempty"`
	// For the operator only.
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version"`
	// By the clock of the process, in ms since the Unix epoch.
	StartedAt Time `json:"started_at"`
	// By the clock of the process, in ms since the Unix epoch.
	SeenAt Time `json:"seen_at"`
	// How many deliveries a worker makes at once.
	Threads int `json:"threads"`
	// How many of these it makes now.
	Busy int `json:"busy"`
	// How many threads it has besides: for the housekeeping, jobs and labels.
	Others int `json:"other_threads"`
	// How many of these run jobs of services. Only workers have it.
	JobThreads *int `json:"job_threads,omitempty"`
	// How many of these run labels of state machines. Only workers have it.
	MachineThreads *int `json:"machine_threads,omitempty"`
	// How far its clock is ahead of Redis'.
	Ahead int64 `json:"clock_ahead_ms"`
	// Requests a second that web answered with 401 lately although they had credentials; left out
	// if 0.
	Refused float64 `json:"refused_per_second,omitzero"`
	// Requests a second that web answered with 429 lately; left out if 0.
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
