package samples

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// merge makes one of the drafts of all partitions, by number. A partition of which a part could not
// be read is unread as such: what is known of the others is shown.
func merge(drafts []*draft) *draft {
	if len(drafts) == 1 {
		return drafts[0]
	}
	var all *draft
	var unread []overview.Unread
	for i, d := range drafts {
		why := d.Redis
		if why == "" && len(d.Unread) > 0 {
			why = d.Unread[0].Why
		}
		if why != "" {
			unread = append(unread, overview.Unread{Part: "partition " + rdb.Number(i).String(), Why: why})
		}
		switch {
		case d.Redis != "":
		case all == nil:
			all = d
		default:
			all.add(d)
		}
	}
	if all == nil {
		return drafts[0]
	}
	all.Unread = unread
	slices.SortFunc(all.Topics, func(a, b overview.TopicState) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(all.Subscribers, func(a, b overview.SubscriberState) int { return strings.Compare(a.Name, b.Name) })
	all.Subscribers = joinSubscribers(all.Subscribers)
	return all
}

// add adds the draft of another partition.
func (d *draft) add(more *draft) {
	d.Refuses = cmp.Or(d.Refuses, more.Refuses)
	d.Topics, d.Subscribers = append(d.Topics, more.Topics...), append(d.Subscribers, more.Subscribers...)
	d.Damaged = append(d.Damaged, more.Damaged...)
	d.Due += more.Due
	if len(d.Queues) == 0 {
		d.Queues = more.Queues
	} else {
		for i, q := range more.Queues { // all list the same
			d.Queues[i].Instant += q.Instant
			d.Queues[i].Scheduled += q.Scheduled
		}
	}
	if d.Memory == nil || more.Memory != nil && isFuller(*more.Memory, *d.Memory) {
		d.Memory = more.Memory // of several nodes, that of the fullest
	}
}

// isFuller is whether a node is nearer to its high mark than another one.
func isFuller(a, b overview.Memory) bool {
	return float64(a.Used)*float64(b.High) > float64(b.Used)*float64(a.High)
}

// joinSubscribers makes one of those that follow one another with the same name: a client may have
// tokens in several partitions.
func joinSubscribers(all []overview.SubscriberState) (joined []overview.SubscriberState) {
	for _, sub := range all {
		if last := len(joined) - 1; last >= 0 && joined[last].Name == sub.Name {
			joined[last] = join(joined[last], sub)
		} else {
			joined = append(joined, sub)
		}
	}
	return joined
}

// join is as [telemetry.ByClient] within a partition.
func join(a, b overview.SubscriberState) overview.SubscriberState {
	a.Sent += b.Sent
	a.Queued += b.Queued
	a.Batches += b.Batches
	a.Dead += b.Dead
	a.Health, a.Timeout = min(a.Health, b.Health), max(a.Timeout, b.Timeout)
	a.AttemptedAt = later(a.AttemptedAt, b.AttemptedAt)
	if a.OldestAt.IsZero() || !b.OldestAt.IsZero() && b.OldestAt.Before(a.OldestAt) {
		a.OldestAt = b.OldestAt
	}
	a.Paused, a.Throttled, a.Paced = later(a.Paused, b.Paused), later(a.Throttled, b.Throttled), later(a.Paced, b.Paced)
	a.Blocked = a.Blocked || b.Blocked
	a.Failure = cmp.Or(a.Failure, b.Failure)
	a.Topics = slices.Concat(a.Topics, b.Topics)
	slices.Sort(a.Topics)
	a.Topics = slices.Compact(a.Topics)
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
