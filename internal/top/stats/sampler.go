package stats

import (
	"slices"
	"time"
)

// window is how far the trend of the health, the share of failures and the dropped events look
// back. Two snapshots in a row say little: a failing subscriber is tried rarely, and workers
// flush their counters every few seconds.
const window = time.Minute

// Sampler computes [Figures] from a series of [Snapshot]s. Its zero value is ready to use. It
// must not be used concurrently.
type Sampler struct {
	last *Snapshot
	// recent has the snapshots of the last minute, oldest first, and at least the last two.
	recent []moment
}

// moment is what is kept of a snapshot.
type moment struct {
	at     time.Time
	health map[string]int
	counts map[string]Counts
	ended  map[string]map[string]float64 // by job type and status
	steps  map[string]map[string]float64 // by machine: [Moved] and [Failed]
}

// Add adds a snapshot, which must be later than those before, and returns the figures.
func (s *Sampler) Add(now Snapshot) Figures {
	before := s.last
	s.last = &now
	s.remember(now)

	f := Figures{
		At: now.At, Due: now.Bus.Due, Memory: now.Bus.Memory,
		// Never null in JSON:
		Jobs: append([]Jobs{}, now.Bus.Jobs...), Warnings: append([]string{}, now.Warnings...), Subscribers: []Subscriber{}, Topics: []Topic{},
		JobTypes: []JobType{}, Machines: []Machine{},
	}
	published, delivered := map[string]int64{}, map[string]int64{}
	if before != nil {
		f.Seconds = now.At.Sub(before.At).Seconds()
		for _, t := range before.Topics {
			published[t.Name] = t.Events
		}
		for _, sub := range before.Subscribers {
			delivered[sub.Name] = sub.Sent
		}
	}
	followers := map[string]int{}
	for _, sub := range now.Subscribers {
		for _, topic := range sub.Topics {
			followers[topic]++
		}
		rate := perSecond(delivered, sub.Name, sub.Sent, f.Seconds)
		f.Subscribers = append(f.Subscribers, s.subscriber(now, sub, rate))
	}
	for _, t := range now.Topics {
		rate := perSecond(published, t.Name, t.Events, f.Seconds)
		f.Topics = append(f.Topics, Topic{t.Name, t.Publisher, rate, t.Events, followers[t.Name]})
	}
	for _, t := range now.Bus.Types {
		f.JobTypes = append(f.JobTypes, s.jobType(t))
	}
	for _, m := range now.Bus.Machines {
		f.Machines = append(f.Machines, s.machine(m))
	}
	for name := range now.Bus.Counts { // including subscribers that no longer exist
		if lately, known := s.counted(name); known {
			f.Dropped = plus(f.Dropped, lately.Dropped)
		}
	}
	f.sumUp()
	return f
}

// perSecond returns the rate of a counter. It is not known for a counter that is new or was reset.
func perSecond(before map[string]int64, name string, now int64, seconds float64) *float64 {
	was, known := before[name]
	if !known || now < was || seconds <= 0 {
		return nil
	}
	rate := float64(now-was) / seconds
	return &rate
}

func (s *Sampler) subscriber(now Snapshot, sub SubscriberState, rate *float64) Subscriber {
	shown := Subscriber{
		Name: sub.Name, Topics: append([]string{}, sub.Topics...), Queued: sub.Queued, Rate: rate, Sent: sub.Sent, Health: sub.Health,
		Trend: s.trend(sub), SinceAttempt: since(sub.AttemptedAt, now.At), Timeout: sub.Timeout.Seconds(),
	}
	if lately, known := s.counted(sub.Name); known {
		shown.Failed, shown.Dropped = lately.failed(), plus(nil, lately.Dropped)
	}
	if batches, ok := now.Bus.Batches[sub.Name]; ok {
		shown.Batches = &batches
	}
	if dead, ok := now.Bus.Dead[sub.Name]; ok {
		shown.Dead = &dead
	}
	if state, ok := now.Bus.States[sub.Name]; ok {
		if sub.Queued == 0 && state != Paused {
			state = Ready // nothing is held up
		}
		shown.State = &state
	}
	if sub.Queued > 0 { // metrics are read at another moment than the queue
		shown.OldestAge = since(sub.OldestAt, now.At)
		if age, ok := now.Bus.OldestAge[sub.Name]; ok && age > 0 { // by the clock of the bus, which is the reference
			seconds := age.Seconds()
			shown.OldestAge = &seconds
		}
	}
	return shown
}

// since returns the seconds from t to now, nil if t is not known.
func since(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := max(now.Sub(t), 0).Seconds()
	return &seconds
}

// trend returns the change of a subscriber's health in the last minute.
func (s *Sampler) trend(sub SubscriberState) int {
	for _, m := range s.recent {
		if was, ok := m.health[sub.Name]; ok {
			return sub.Health - was
		}
	}
	return 0
}

// counted returns the growth of a subscriber's counters in the last minute. Counters may be
// smaller than before, if they were reset, or if another web process answered, which had read
// them earlier. Snapshots with larger counters are ignored.
func (s *Sampler) counted(name string) (lately Counts, known bool) {
	last := len(s.recent) - 1
	now, ok := s.recent[last].counts[name]
	for _, m := range s.recent[:last] {
		was, found := m.counts[name]
		if ok && found && was.Succeeded <= now.Succeeded && was.Failed <= now.Failed && was.Dropped <= now.Dropped {
			return Counts{now.Succeeded - was.Succeeded, now.Failed - was.Failed, now.Dropped - was.Dropped}, true
		}
	}
	return Counts{}, false
}

// failed returns the share of failed deliveries, nil if there were none.
func (c Counts) failed() *float64 {
	if c.Succeeded+c.Failed == 0 {
		return nil
	}
	share := c.Failed / (c.Succeeded + c.Failed)
	return &share
}

func (s *Sampler) jobType(t JobTypeState) JobType {
	shown := JobType{
		Name: t.Name, Queued: t.Queued, Waiting: t.Waiting, InProgress: t.InProgress, Concurrency: t.Concurrency, Paused: t.Paused,
		Succeeded: s.ended(t.Name, "succeeded"), Failed: s.ended(t.Name, "failed"), Expired: s.ended(t.Name, "expired"),
	}
	if t.OldestAge > 0 {
		seconds := t.OldestAge.Seconds()
		shown.OldestAge = &seconds
	}
	return shown
}

// ended returns the rate of the last minute at which jobs of a type ended with a status.
func (s *Sampler) ended(job, status string) *float64 {
	return s.rate(func(m moment) map[string]float64 { return m.ended[job] }, status)
}

func (s *Sampler) machine(m MachineState) Machine {
	steps := func(of moment) map[string]float64 { return of.steps[m.Name] }
	return Machine{
		Name: m.Name, Labels: m.Labels, Errored: m.Errored, Unpublished: m.Unpublished,
		Moves: s.rate(steps, Moved), Failed: s.rate(steps, Failed),
	}
}

// rate returns the rate of the last minute of one of the counters that a function finds. As in
// [Sampler.counted], snapshots with larger counters are ignored.
func (s *Sampler) rate(counters func(moment) map[string]float64, name string) *float64 {
	last := len(s.recent) - 1
	now, ok := counters(s.recent[last])[name]
	for _, m := range s.recent[:last] {
		was, found := counters(m)[name]
		if seconds := s.recent[last].at.Sub(m.at).Seconds(); ok && found && was <= now && seconds > 0 {
			rate := (now - was) / seconds
			return &rate
		}
	}
	return nil
}

// remember keeps what the figures of the next minute need of a snapshot.
func (s *Sampler) remember(now Snapshot) {
	m := moment{
		at: now.At, health: make(map[string]int, len(now.Subscribers)), counts: now.Bus.Counts,
		ended: map[string]map[string]float64{}, steps: map[string]map[string]float64{},
	}
	for _, t := range now.Bus.Types {
		m.ended[t.Name] = t.Ended
	}
	for _, machine := range now.Bus.Machines {
		m.steps[machine.Name] = machine.Steps
	}
	for _, sub := range now.Subscribers {
		m.health[sub.Name] = sub.Health
	}
	s.recent = append(s.recent, m)
	for len(s.recent) > 2 && now.At.Sub(s.recent[0].at) > window {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
}

// plus adds to a sum, which is nil at first.
func plus(sum *int64, events float64) *int64 {
	n := int64(events)
	if sum != nil {
		n += *sum
	}
	return &n
}

// sumUp computes the figures of the whole bus. A rate that is not known counts as 0.
func (f *Figures) sumUp() {
	if f.Seconds > 0 {
		f.Published, f.Delivered = new(float64), new(float64)
	}
	for _, t := range f.Topics {
		if t.Rate != nil {
			*f.Published += *t.Rate
		}
	}
	for _, sub := range f.Subscribers {
		if sub.Rate != nil {
			*f.Delivered += *sub.Rate
		}
		f.Queued += sub.Queued
		if age := sub.OldestAge; age != nil && (f.OldestAge == nil || *age > *f.OldestAge) {
			f.OldestAge = age
		}
	}
}
