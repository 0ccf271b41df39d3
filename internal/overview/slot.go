package overview

import (
	"cmp"
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Slot is what the history keeps of a [Sample]: what only grows, and what is measured.
type Slot struct {
	At time.Time
	// Bus is the sum of all subscribers, also of those that are left out: the health is that of the
	// worst, the age that of the oldest event.
	Bus Totals
	// Events is the number ever published. Unreadable and Scrubbed are those of the sample.
	Events, Unreadable, Scrubbed int64
	// Used is Redis' memory in bytes, Waiting the number of instant jobs of main. Busy of the Threads
	// of the workers deliver.
	Used, Waiting, Busy, Threads int64
	// Subscribers and Topics are those that a slot has room for, the most interesting first. Of all
	// there are All; Left were left out.
	Subscribers []NamedTotals
	Topics      []TopicEvents
	Left, All   int64
}

// Totals are what a [Slot] has of a subscriber: numbers of events ever acknowledged, deliveries and
// events by what became of them, what is queued, the age of the oldest queued event, and the health
// from 0 to 100.
type Totals struct {
	Sent int64
	Counts
	Queued int64
	Oldest time.Duration
	Health int
}

// NamedTotals are the totals of a subscriber.
type NamedTotals struct {
	Name string
	Totals
}

// TopicEvents is the number of events ever published to a topic.
type TopicEvents struct {
	Name   string
	Events int64
}

// SlotOf returns what the history keeps of a sample. The subscribers for which something waits, or
// whose last delivery failed, come first, then those that were tried last; the topics by how much
// was published.
func SlotOf(s Sample) Slot {
	slot := Slot{
		At: s.At, Bus: Totals{Health: 100}, Unreadable: s.Unreadable, Scrubbed: s.Scrubbed,
		All: int64(len(s.Subscribers) + len(s.Topics)),
	}
	if s.Memory != nil {
		slot.Used = s.Memory.Used
	}
	for _, q := range s.Queues {
		if q.Name == string(bus.QueueMain) {
			slot.Waiting = q.Instant
		}
	}
	for _, p := range s.Processes {
		if p.Kind == "worker" && p.lives(s.At) {
			slot.Threads += int64(p.Threads)
			slot.Busy += int64(p.Busy)
		}
	}
	ordered := slices.SortedStableFunc(slices.Values(s.Subscribers), func(a, b SubscriberState) int {
		return cmp.Or(-compareBools(a.needsCare(), b.needsCare()), b.AttemptedAt.Compare(a.AttemptedAt))
	})
	for _, sub := range ordered {
		totals := Totals{Sent: sub.Sent, Counts: sub.Counts, Queued: sub.Queued, Health: sub.Health}
		if sub.Queued > 0 && !sub.OldestAt.IsZero() {
			totals.Oldest = max(s.At.Sub(sub.OldestAt), 0)
		}
		slot.Bus.add(totals)
		slot.Subscribers = append(slot.Subscribers, NamedTotals{sub.Name, totals})
	}
	for _, topic := range s.Topics {
		slot.Events += topic.Events
		slot.Topics = append(slot.Topics, TopicEvents{topic.Name, topic.Events})
	}
	slices.SortStableFunc(slot.Topics, func(a, b TopicEvents) int { return cmp.Compare(b.Events, a.Events) })
	return slot
}

func (sub SubscriberState) needsCare() bool { return sub.Queued > 0 || sub.Failure != "" }

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (t *Totals) add(one Totals) {
	t.Sent += one.Sent
	t.Succeeded += one.Succeeded
	t.Failed += one.Failed
	t.Dropped += one.Dropped
	t.Queued += one.Queued
	t.Oldest = max(t.Oldest, one.Oldest)
	t.Health = min(t.Health, one.Health)
}

// Shorten leaves out all but a share of the subscribers and topics, from 0 to 1.
func (s *Slot) Shorten(share float64) {
	s.Subscribers = s.Subscribers[:int(share*float64(len(s.Subscribers)))]
	s.Topics = s.Topics[:int(share*float64(len(s.Topics)))]
	s.Left = s.All - int64(len(s.Subscribers)+len(s.Topics))
}

// Sample returns what can be said of the bus by a slot alone, for the rates of a [Sampler] that has
// just begun.
func (s Slot) Sample() Sample {
	sample := Sample{At: s.At}
	for _, sub := range s.Subscribers {
		sample.Subscribers = append(sample.Subscribers, SubscriberState{
			Name: sub.Name, Sent: sub.Sent, Counts: sub.Counts, Queued: sub.Queued, Health: sub.Health,
		})
	}
	for _, topic := range s.Topics {
		sample.Topics = append(sample.Topics, TopicState{Name: topic.Name, Events: topic.Events})
	}
	return sample
}
