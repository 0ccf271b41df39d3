package telemetry

import (
	"iter"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
)

// Namespace is the first part of the name of every metric of ours.
const Namespace = "routemaster"

// Counters of the bus that a scrape reads back. Each has a [QueueTag].
const (
	DeliveriesCounter      = "delivery.batches" // also by [StatusTag]
	DeliveredEventsCounter = "delivery.events"  // also by [StatusTag]
	DroppedEventsCounter   = "events.autodropped"
)

// Counters of the bus that the history has, in ms, with a [QueueTag]: how long deliveries took, and
// the age of the oldest event when the last attempt began.
const (
	DeliveryTimeCounter = "delivery.time" // also by [StatusTag]
	LatencyCounter      = "latency.batches.last_attempt"
)

// Counters of the bus without tags.
const (
	UnreadableEventsCounter = "events.unreadable"
	ScrubbedJobsCounter     = "jobs.scrubbed"
	ScrubbedWorkersCounter  = "workers.scrubbed"
)

// QueueTag says whose queue a counter is about. The Ruby original put the subscriber's token here,
// which is a secret: ours is the client's public name.
func QueueTag(subscriber bus.ClientName) bus.Tag {
	return bus.Tag{Name: "queue", Value: string(subscriber)}
}

// Status is how a delivery ended.
type Status int

// The statuses of a delivery.
const (
	Success Status = iota
	Failure
)

// Statuses lists all statuses.
var Statuses = [...]Status{Success, Failure}

// String returns the status as it stands in metrics.
func (s Status) String() string { return [...]string{"success", "failure"}[s] }

// StatusTag says how the deliveries of a counter ended.
func StatusTag(status Status) bus.Tag {
	return bus.Tag{Name: "status", Value: status.String()}
}

// publisherTag says who published: the name in a token, which is the part before "--" and no
// secret.
func publisherTag(token bus.Token) bus.Tag {
	name, _, ok := strings.Cut(string(token), "--")
	switch {
	case token == "":
		name = "null"
	case !ok || name == "":
		name = "malformed"
	}
	return bus.Tag{Name: "publisher", Value: name}
}

// ByClient joins the backlogs of subscribers that share a public name, as they do while a client's
// token is being changed: the sum of what waits and of what was sent, the worst health, the oldest
// event, the last attempt, the longest timeout and the longest holds. It goes through them in the
// order of names, each with those that it is joined of.
func ByClient(backlogs []stats.Backlog) iter.Seq2[stats.Backlog, []*stats.Backlog] {
	order := make([]*stats.Backlog, len(backlogs)) // they are large
	for i := range backlogs {
		order[i] = &backlogs[i]
	}
	slices.SortStableFunc(order, func(a, b *stats.Backlog) int { return strings.Compare(string(a.Client), string(b.Client)) })
	return func(yield func(stats.Backlog, []*stats.Backlog) bool) {
		for from, to := 0, 0; from < len(order); from = to {
			joined := *order[from]
			for to = from + 1; to < len(order) && order[to].Client == joined.Client; to++ {
				join(&joined, order[to])
			}
			if !yield(joined, order[from:to]) {
				return
			}
		}
	}
}

// join adds the backlog of another subscriber of the same name.
func join(a, b *stats.Backlog) {
	a.Events += b.Events
	a.Batches += b.Batches
	a.DeadLetterEvents += b.DeadLetterEvents
	a.Sent += b.Sent
	a.AttemptedAt, a.Timeout = later(a.AttemptedAt, b.AttemptedAt), max(a.Timeout, b.Timeout)
	a.Lanes = stats.Lanes{
		Count: a.Lanes.Count + b.Lanes.Count, Fence: a.Lanes.Fence + b.Lanes.Fence,
		IsStrict: a.Lanes.IsStrict || b.Lanes.IsStrict, Blocked: a.Lanes.Blocked + b.Lanes.Blocked,
	}
	a.Holds = stats.Holds{
		Paused: later(a.Holds.Paused, b.Holds.Paused), Throttled: later(a.Holds.Throttled, b.Holds.Throttled),
		Paced: later(a.Holds.Paced, b.Holds.Paced),
	}
	if b.Subscribed && (!a.Subscribed || b.Health < a.Health) {
		a.Health = b.Health
	}
	a.Subscribed = a.Subscribed || b.Subscribed
	if a.OldestAt.IsZero() || !b.OldestAt.IsZero() && b.OldestAt.Before(a.OldestAt) {
		a.OldestAt = b.OldestAt
	}
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ByTopic returns what is stored of the histories of topics, by name, with those beyond the first
// 2,000 together.
func ByTopic(histories []stats.HistorySize) map[string]stats.HistorySize {
	named := make(map[string]stats.HistorySize, min(len(histories), maxChildren+1))
	for i, h := range histories {
		name := string(h.Topic)
		if i >= maxChildren {
			name = other
		}
		sum := named[name]
		named[name] = stats.HistorySize{Topic: h.Topic, Events: sum.Events + h.Events, Bytes: sum.Bytes + h.Bytes}
	}
	return named
}
