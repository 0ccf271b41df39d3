package top

import (
	"slices"
	"time"
)

// lately is how far the trend of the health, the share of failures, and the dropped events look back: a subscriber that fails is
// tried less and less often, and workers tell what they count every few seconds, so what is seen between two snapshots says
// little.
const lately = time.Minute

// Sampler makes [Figures] of one [Snapshot] after another. Its zero value is ready.
type Sampler struct {
	last *Snapshot
	// recent has what is needed of the snapshots of the last minute, oldest first; the last two at least.
	recent []moment
}

// moment is what is remembered of a snapshot.
type moment struct {
	at     time.Time
	health map[string]int
	counts map[string]Counts
}

// Add takes a snapshot, later than those before, and returns what it tells together with them.
func (s *Sampler) Add(now Snapshot) Figures {
	before := s.last
	s.last = &now
	s.remember(now)

	f := Figures{
		At: now.At, Due: now.Bus.Due, Memory: now.Bus.Memory,
		// Never null in JSON:
		Jobs: append([]Jobs{}, now.Bus.Jobs...), Troubles: append([]string{}, now.Troubles...), Subscribers: []Subscriber{}, Topics: []Topic{},
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
	for name := range now.Bus.Counts { // also of those who are gone
		if lately, known := s.counted(name); known {
			f.Dropped = plus(f.Dropped, lately.Dropped)
		}
	}
	f.sumUp()
	return f
}

// perSecond is how fast a counter grows. It is not known of what was not there before, nor of what has begun anew.
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
		Trend: s.trend(sub), SinceAttempt: since(sub.AttemptedAt, now.At), timeout: sub.Timeout.Seconds(),
	}
	if lately, known := s.counted(sub.Name); known {
		shown.Failed, shown.Dropped = lately.failed(), plus(nil, lately.Dropped)
	}
	if batches, ok := now.Bus.Batches[sub.Name]; ok {
		shown.Batches = &batches
	}
	if sub.Queued > 0 { // the two are not read at the same moment
		shown.OldestAge = since(sub.OldestAt, now.At)
		if age, ok := now.Bus.OldestAge[sub.Name]; ok && age > 0 { // by the clock of the bus, which is the better one
			seconds := age.Seconds()
			shown.OldestAge = &seconds
		}
	}
	return shown
}

// since is the time that has passed since a time, in seconds; nil if that is not known.
func since(t, now time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := max(now.Sub(t), 0).Seconds()
	return &seconds
}

// trend is what a subscriber's health has changed by in the last minute.
func (s *Sampler) trend(sub SubscriberState) int {
	for _, m := range s.recent {
		if was, ok := m.health[sub.Name]; ok {
			return sub.Health - was
		}
	}
	return 0
}

// counted is what a subscriber's counts have grown by in the last minute. The bus may tell a count that is smaller than before:
// it has begun anew, or is that of another web, which has read it a moment earlier. Then what came before is left out.
func (s *Sampler) counted(name string) (lately Counts, known bool) {
	last := len(s.recent) - 1
	now, told := s.recent[last].counts[name]
	for _, m := range s.recent[:last] {
		was, ok := m.counts[name]
		if told && ok && was.Succeeded <= now.Succeeded && was.Failed <= now.Failed && was.Dropped <= now.Dropped {
			return Counts{now.Succeeded - was.Succeeded, now.Failed - was.Failed, now.Dropped - was.Dropped}, true
		}
	}
	return Counts{}, false
}

// failed is the share of the deliveries that failed, nil if there were none.
func (c Counts) failed() *float64 {
	if c.Succeeded+c.Failed == 0 {
		return nil
	}
	share := c.Failed / (c.Succeeded + c.Failed)
	return &share
}

// remember notes what the figures of the next minute need of a snapshot.
func (s *Sampler) remember(now Snapshot) {
	m := moment{at: now.At, health: make(map[string]int, len(now.Subscribers)), counts: now.Bus.Counts}
	for _, sub := range now.Subscribers {
		m.health[sub.Name] = sub.Health
	}
	s.recent = append(s.recent, m)
	for len(s.recent) > 2 && now.At.Sub(s.recent[0].at) > lately {
		s.recent = slices.Delete(s.recent, 0, 1)
	}
}

// plus adds to a sum that is not known to begin with.
func plus(sum *int64, events float64) *int64 {
	n := int64(events)
	if sum != nil {
		n += *sum
	}
	return &n
}

// sumUp fills in the figures of the whole bus. A rate that is not known counts as none.
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
