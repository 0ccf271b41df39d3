package inspect

import (
	"iter"
	"slices"
	"strings"
	"time"

	"routemaster/internal/overview"
)

// ByClient joins the backlogs of subscribers that share a public name, as they do while a client's
// token is being changed: the sums of queued and of sent events, the worst health, the oldest
// event, the last attempt, the longest timeout and the longest holds. It yields them in the order
// of names, each with the backlogs that it joins.
func ByClient(backlogs []Backlog) iter.Seq2[Backlog, []*Backlog] {
	order := make([]*Backlog, len(backlogs)) // they are large
	for i := range backlogs {
		order[i] = &backlogs[i]
	}
	slices.SortStableFunc(order, func(a, b *Backlog) int { return strings.Compare(string(a.Client), string(b.Client)) })
	return func(yield func(Backlog, []*Backlog) bool) {
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
func join(a, b *Backlog) {
	a.Events += b.Events
	a.Batches += b.Batches
	a.DeadLetterEvents += b.DeadLetterEvents
	a.Sent += b.Sent
	a.AttemptedAt, a.Timeout = later(a.AttemptedAt, b.AttemptedAt), max(a.Timeout, b.Timeout)
	a.Lanes = overview.Lanes{
		Count:    a.Lanes.Count + b.Lanes.Count,
		IsStrict: a.Lanes.IsStrict || b.Lanes.IsStrict, Blocked: a.Lanes.Blocked + b.Lanes.Blocked,
	}
	a.Holds = Holds{
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
