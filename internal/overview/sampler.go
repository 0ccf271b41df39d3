package overview

import (
	"slices"
	"time"

	"routemaster/internal/bus"
)

// Windows of figures. While a bus is watched, its samples are 2 to 3.5 s apart.
const (
	// rateWindow is for rates: 10 s, and how late a sample may be.
	rateWindow = 11 * time.Second
	// Lately is for the trend of the health, failures and drops. Two samples in a row say little: a
	// failing subscriber is tried rarely, and workers flush their counters every few seconds.
	Lately = time.Minute
	// Alive is how long ago a process that lives was heard of.
	Alive = 30 * time.Second
)

// Sampler computes [Figures] from a series of [Sample]s. Its zero value is ready to use. It must
// not be used concurrently.
type Sampler struct {
	recent recent
	last   Figures
	// readAt is when each part was read last.
	readAt map[string]time.Time
}

// Add adds a sample, and returns the figures without states and problems, which the caller may set.
// It drops samples that are not earlier than this one, because clocks may be set back. If Redis or
// a part could not be read, their figures are from the last time they could. At is zero if Redis
// never could.
func (s *Sampler) Add(now Sample) Figures {
	if s.last.Topics == nil { // nothing was ever read
		s.last = newFigures()
	}
	if now.Redis != "" {
		s.lost(now)
		return s.last.clone()
	}
	s.recent.add(now, false)
	f := newFigures()
	f.At, f.Seconds, f.Due, f.Memory = now.At, s.recent.Took(s.recent.rates).Seconds(), &now.Due, now.Memory
	f.Queues = append(f.Queues, now.Queues...)
	f.Clients = append(f.Clients, now.Clients...)
	f.addProcesses(now)
	followers := map[string]int{}
	f.Subscribers = slices.Grow(f.Subscribers, len(now.Subscribers))
	f.Topics = slices.Grow(f.Topics, len(now.Topics))
	for _, sub := range now.Subscribers {
		for _, topic := range sub.Topics {
			followers[topic]++
		}
		f.Subscribers = append(f.Subscribers, s.subscriber(now.At, sub))
	}
	for _, t := range now.Topics {
		rate := s.recent.Trace(topic(t.Name)).Rate(s.recent.rates, topicEvents)
		f.Topics = append(f.Topics, Topic{
			Name: t.Name, Publisher: t.Publisher, Rate: rate, Events: t.Events, Subscribers: followers[t.Name],
		})
	}
	for _, t := range now.JobTypes {
		f.JobTypes = append(f.JobTypes, s.jobType(now.At, t))
	}
	for _, m := range now.Machines {
		f.Machines = append(f.Machines, s.machine(m))
	}
	f.sumUp(s.recent.HasGaps(s.recent.rates), now.Lacks(PartCounters))
	s.keep(&f, now)
	s.last = f
	return f
}

// Seed adds a slot of the history, for the rates of the first samples.
func (s *Sampler) Seed(slot Slot) {
	s.recent.add(slot.sample(), !slot.coverage().Whole())
}

// newFigures makes empty figures. Lists are encoded as `[]`, never null.
func newFigures() Figures {
	return Figures{
		Queues: []Queue{}, JobTypes: []JobType{}, Machines: []Machine{}, Processes: []Process{}, Clients: []Client{},
		Subscribers: []Subscriber{}, Topics: []Topic{}, Problems: []Problem{}, Unread: []Unread{}, Warnings: []string{},
	}
}

// lost notes that Redis could not be read.
func (s *Sampler) lost(now Sample) {
	if s.last.Redis == "" {
		s.last.RedisLostAt = Time{now.At}
	}
	s.last.Redis = now.Redis
}

// clone copies the parts that [Judge] changes.
func (f Figures) clone() Figures {
	f.Subscribers, f.Topics = slices.Clone(f.Subscribers), slices.Clone(f.Topics)
	f.Problems = slices.Clone(f.Problems)
	return f
}

// lives reports whether a process was heard of lately. Its own clock may be wrong.
func (p Process) lives(now time.Time) bool {
	seen := p.SeenAt.Add(-time.Duration(p.Ahead) * time.Millisecond)
	return now.Sub(seen) <= Alive
}

func (f *Figures) addProcesses(now Sample) {
	for _, p := range now.Processes {
		if !p.lives(now.At) {
			continue
		}
		f.Processes = append(f.Processes, p)
		if p.Kind == "worker" {
			f.Threads += p.Threads
			f.Busy += p.Busy
		}
	}
}

func (s *Sampler) subscriber(now time.Time, sub SubscriberState) Subscriber {
	trace := s.recent.Trace(subscriber(sub.Name))
	f := Subscriber{
		Name: sub.Name, Topics: sub.Topics, Queued: sub.Queued, Batches: new(sub.Batches), Dead: new(sub.Dead),
		Rate: trace.Rate(s.recent.rates, sent), Sent: sub.Sent, Health: sub.Health, Trend: s.recent.trend(trace),
		SinceAttempt: since(sub.AttemptedAt, now), Failure: sub.Failure, Timeout: sub.Timeout.Seconds(), State: OK,
	}
	if f.Topics == nil {
		f.Topics = []string{}
	}
	if sub.Queued > 0 {
		f.OldestAge = since(sub.OldestAt, now)
	}
	f.Hold, f.HoldUntil = sub.hold(now)
	f.Throttled = sub.Queued > 0 && sub.Throttled.After(now)
	f.Failed, f.Dropped = s.failed(trace), trace.Growth(s.recent.lately, dropped)
	return f
}

// hold returns why deliveries are held up, and until when, if that is known.
func (sub SubscriberState) hold(now time.Time) (hold string, until Time) {
	switch {
	case sub.Paused.After(now) && !sub.Paused.Before(bus.Forever):
		return Paused, Time{}
	case sub.Paused.After(now):
		return Paused, Time{sub.Paused}
	case sub.Queued == 0: // nothing is held up
		return Ready, Time{}
	case sub.Blocked:
		return Blocked, Time{}
	case sub.Throttled.After(now):
		return Throttled, Time{sub.Throttled}
	case sub.Paced.After(now):
		return Paced, Time{sub.Paced}
	}
	return Ready, Time{}
}

// since returns the seconds from t to now, nil if t is not known.
func since(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := max(now.Sub(t), 0).Seconds()
	return &seconds
}

// failed returns the share of a subscriber's deliveries that failed in the last minute, nil if
// there were none or it is not known.
func (s *Sampler) failed(sub *Trace) *float64 {
	succeeded, failed := sub.Growth(s.recent.lately, succeeded), sub.Growth(s.recent.lately, failed)
	if succeeded == nil || failed == nil || *succeeded+*failed == 0 {
		return nil
	}
	share := float64(*failed) / float64(*succeeded+*failed)
	return &share
}

func (s *Sampler) jobType(now time.Time, t JobTypeState) JobType {
	r, trace := &s.recent, s.recent.Trace(jobType(t.Name))
	return JobType{
		Name: t.Name, Queued: t.Queued, Waiting: t.Waiting, InProgress: t.InProgress, Concurrency: t.Concurrency, Paused: t.Paused,
		OldestAge: since(t.OldestAt, now), Succeeded: trace.Rate(r.lately, typeSucceeded),
		Failed: trace.Rate(r.lately, typeFailed), Expired: trace.Rate(r.lately, typeExpired),
		HeldBack: r.least(trace, typeWaiting) > 0 && r.ages(trace, typeOldest),
	}
}

func (s *Sampler) machine(m MachineState) Machine {
	r, trace := &s.recent, s.recent.Trace(machine(m.Name))
	return Machine{
		Name: m.Name, Labels: m.Labels, Errored: m.Errored, Unpublished: m.Unpublished,
		Moves: trace.Rate(r.lately, moved), Failed: trace.Rate(r.lately, stepsFailed), Held: r.least(trace, unpublished),
	}
}

// sumUp computes the figures of the whole bus. They are unknown if no rate is known, if only part
// of the rates' window is, or if the bus's counters could not be read. A single unknown rate counts
// as 0.
func (f *Figures) sumUp(gaps, uncounted bool) {
	if f.Seconds > 0 && !gaps {
		f.Published = sum(f.Topics, func(t Topic) *float64 { return t.Rate })
		f.Delivered = sum(f.Subscribers, func(sub Subscriber) *float64 { return sub.Rate })
		if !uncounted {
			f.Dropped = sum(f.Subscribers, func(sub Subscriber) *int64 { return sub.Dropped })
		}
	}
	for _, sub := range f.Subscribers {
		f.Queued += sub.Queued
		if age := sub.OldestAge; age != nil && (f.OldestAge == nil || *age > *f.OldestAge) {
			f.OldestAge = age
		}
	}
}

// sum adds up the known values of a figure. It returns nil if there are values, and none is known.
func sum[T any, N int64 | float64](all []T, figure func(T) *N) *N {
	total, known := new(N), len(all) == 0
	for _, one := range all {
		if n := figure(one); n != nil {
			*total, known = *total+*n, true
		}
	}
	if !known {
		return nil
	}
	return total
}
