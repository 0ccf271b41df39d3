package overview

import (
	"cmp"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Slot is the part of a [Sample] that the history keeps: counters and measurements.
type Slot struct {
	At time.Time
	// Bus has the counts of the bus. Its queue is the sum of all subscribers, including the ones
	// left out, its health the worst health, and its age the age of the oldest event.
	Bus Totals
	// Events is the number ever published. Unreadable and Scrubbed are as in the sample.
	Events, Unreadable, Scrubbed int64
	// Used is Redis' memory in bytes, Waiting the number of instant jobs of main, Dead the number
	// of events in dead letters. Busy of the Threads of the workers deliver.
	Used, Waiting, Dead, Busy, Threads int64
	// Subscribers and Topics are as many as fit into a slot, the most interesting first, of
	// AllSubscribers and AllTopics.
	Subscribers               []NamedTotals
	Topics                    []TopicEvents
	AllSubscribers, AllTopics int64
	// JobTypes and Machines are for the figures of the last minute, as far as there is room, with
	// most failures first. They have the fields that [Sampler.Seed] needs.
	JobTypes []JobTypeState
	Machines []MachineState
}

// RecordedParts are the parts that a [Sample] needs to make a slot: a 0 for an unknown value would
// be a false point.
var RecordedParts = []string{PartMemory, PartQueues, PartSubscribers, PartTopics, PartCounters}

// Totals are a subscriber's numbers in a [Slot]: events ever acknowledged, deliveries and events by
// result, the times of deliveries, the queue, the age of the oldest queued event, negative if
// unknown, and the health from 0 to 100. Times are not added up for the bus.
type Totals struct {
	Sent int64
	Counts
	Times
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

// SlotOf returns the slot of a sample. Subscribers with queued events or a failed last delivery
// come first, then the most recently tried; topics are ordered by number of events.
func SlotOf(s Sample) Slot {
	slot := Slot{
		At: s.At, Bus: Totals{Sent: s.Ever.Acknowledged, Counts: s.Ever.Counts, Oldest: unknownAge, Health: 100},
		Events: s.Ever.Published, Unreadable: s.Unreadable, Scrubbed: s.Scrubbed,
		AllSubscribers: int64(len(s.Subscribers)), AllTopics: int64(len(s.Topics)),
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
	ordered := slices.Clone(s.Subscribers)
	slices.SortStableFunc(ordered, func(a, b SubscriberState) int {
		return cmp.Or(-compareBools(a.needsCare(), b.needsCare()), b.AttemptedAt.Compare(a.AttemptedAt))
	})
	for _, sub := range ordered {
		totals := Totals{Sent: sub.Sent, Counts: sub.Counts, Times: sub.Times, Queued: sub.Queued, Health: sub.Health}
		if sub.Queued > 0 {
			totals.Oldest = unknownAge
			if !sub.OldestAt.IsZero() {
				totals.Oldest = max(s.At.Sub(sub.OldestAt), 0)
			}
		}
		slot.Bus.addQueue(totals)
		slot.Dead += sub.Dead
		slot.Subscribers = append(slot.Subscribers, NamedTotals{sub.Name, totals})
	}
	if slot.Bus.Queued == 0 {
		slot.Bus.Oldest = 0
	}
	for _, topic := range s.Topics {
		slot.Topics = append(slot.Topics, TopicEvents{topic.Name, topic.Events})
	}
	slices.SortStableFunc(slot.Topics, func(a, b TopicEvents) int { return cmp.Compare(b.Events, a.Events) })
	slot.JobTypes = slices.SortedStableFunc(slices.Values(s.JobTypes), func(a, b JobTypeState) int {
		return cmp.Compare(b.Failed+b.Expired, a.Failed+a.Expired)
	})
	slot.Machines = slices.SortedStableFunc(slices.Values(s.Machines), func(a, b MachineState) int { return cmp.Compare(b.Failed, a.Failed) })
	return slot
}

// unknownAge is an age that is not known.
const unknownAge = -time.Millisecond

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

// addQueue adds a subscriber's queue and health.
func (t *Totals) addQueue(one Totals) {
	t.Queued += one.Queued
	if one.Queued > 0 {
		t.Oldest = max(t.Oldest, one.Oldest)
	}
	t.Health = min(t.Health, one.Health)
}

// Shorten keeps only a share, from 0 to 1, of each list.
func (s *Slot) Shorten(share float64) {
	s.Subscribers, s.Topics = firstOf(s.Subscribers, share), firstOf(s.Topics, share)
	s.JobTypes, s.Machines = firstOf(s.JobTypes, share), firstOf(s.Machines, share)
}

func firstOf[T any](all []T, share float64) []T { return all[:int(share*float64(len(all)))] }

// HasNames reports whether something is left to leave out.
func (s *Slot) HasNames() bool {
	return len(s.Subscribers)+len(s.Topics)+len(s.JobTypes)+len(s.Machines) > 0
}

func (s Slot) coverage() Coverage {
	return Coverage{int64(len(s.Subscribers)), s.AllSubscribers, int64(len(s.Topics)), s.AllTopics}
}

// sample returns a sample with the data of the slot.
func (s Slot) sample() Sample {
	sample := Sample{At: s.At, JobTypes: s.JobTypes, Machines: s.Machines}
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

// numbers returns a subscriber's values in the history, by [Figure] from [Out] on.
func (t Totals) numbers() [Waited + 1]float64 {
	oldest := t.Oldest.Seconds()
	if oldest < 0 {
		oldest = math.NaN()
	}
	return [...]float64{
		Out: float64(t.Sent), Succeeded: float64(t.Succeeded), Failed: float64(t.Failed), Dropped: float64(t.Dropped),
		Queued: float64(t.Queued), Oldest: oldest, Health: float64(t.Health),
		Took: float64(t.Took), Waited: float64(t.Waited),
	}
}

// numbers returns the bus's values in the history, by [Figure].
func (s Slot) numbers() (n [figures]float64) {
	of := s.Bus.numbers()
	copy(n[:], of[:Took])
	n[Took], n[Waited] = math.NaN(), math.NaN()
	n[In], n[Unreadable], n[Scrubbed] = float64(s.Events), float64(s.Unreadable), float64(s.Scrubbed)
	n[Used], n[Waiting], n[Dead] = float64(s.Used), float64(s.Waiting), float64(s.Dead)
	if s.Used == 0 { // it is not known
		n[Used] = math.NaN()
	}
	n[Busy] = float64(s.Busy) / float64(s.Threads) // 0/0 is NaN
	return n
}
