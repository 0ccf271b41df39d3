package top

import "time"

// Snapshot is what a bus told at one moment.
type Snapshot struct {
	At          time.Time
	Topics      []TopicState
	Subscribers []SubscriberState
	Bus         Metrics
	// Troubles say what could not be read, one sentence each. What is not in them was read.
	Troubles []string
}

// TopicState is a topic of a [Snapshot].
type TopicState struct {
	Name string
	// Publisher is the public name of a client, empty while nobody has published.
	Publisher string
	// Events is how many were ever published.
	Events int64
}

// SubscriberState is a subscriber of a [Snapshot]: all those who bear one name, as while a client's token is being changed.
type SubscriberState struct {
	// Name is the public name of a client, never its token.
	Name   string
	Topics []string
	// Timeout is how long the subscriber lets a batch wait for more events.
	Timeout time.Duration
	// Sent is how many events were ever acknowledged, Queued how many wait.
	Sent, Queued int64
	// Health is from 0 to 100.
	Health int
	// OldestAt is when the oldest event that waits was received, AttemptedAt when a delivery was last tried; zero if not known.
	OldestAt, AttemptedAt time.Time
}

// Metrics are what web's metrics tell of the whole bus. All are zero where web did not tell.
type Metrics struct {
	// Batches is how many wait, and OldestAge the age of the oldest event that waits, by the clock of the bus; both by
	// subscriber.
	Batches   map[string]int64
	OldestAge map[string]time.Duration
	// Counts is what the workers have counted, by subscriber. Each adds to it every few seconds.
	Counts map[string]Counts
	Jobs   []Jobs
	// Due is the number of deliveries that are due now or soon, nil if not known.
	Due    *int64
	Memory *Memory
}

// Jobs is how many jobs of a queue wait for a thread (instant) or for their time (scheduled).
type Jobs struct {
	Queue     string `json:"queue"`
	Instant   int64  `json:"instant"`
	Scheduled int64  `json:"scheduled"`
}

// Memory is that of Redis, in bytes: above High the bus drops the oldest batches, until Low.
type Memory struct {
	Used int64 `json:"used_bytes"`
	Max  int64 `json:"max_bytes"`
	High int64 `json:"high_mark_bytes"`
	Low  int64 `json:"low_mark_bytes"`
}

// Counts is how many deliveries have ever succeeded, and failed, and how many events were dropped because Redis was about to be
// full.
type Counts struct{ Succeeded, Failed, Dropped float64 }
