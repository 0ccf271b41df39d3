package overview

import (
	"slices"
	"time"
)

// counter is what a moment keeps of a thing that has a name.
type counter int

const (
	topicEvents counter = iota
	// Of subscribers:
	sent
	succeeded
	failed
	dropped
	health // is no count: it may fall
	// Of job types:
	typeSucceeded
	typeFailed
	typeExpired
	typeWaiting // no count
	typeOldest  // ms since the Unix epoch, negative if there is none
	// Of machines:
	moved
	stepsFailed
	unpublished // no count

	counters
)

// moment is what is kept of a sample: numbers by name.
type moment struct {
	at time.Time
	// partial is whether it lacks some that there were.
	partial bool
	numbers [counters]map[string]int64
}

func newMoment(now Sample) moment {
	m := moment{at: now.At}
	for i := range m.numbers {
		m.numbers[i] = map[string]int64{}
	}
	for _, t := range now.Topics {
		m.numbers[topicEvents][t.Name] = t.Events
	}
	for _, sub := range now.Subscribers {
		m.numbers[sent][sub.Name] = sub.Sent
		m.numbers[health][sub.Name] = int64(sub.Health)
		if now.Lacks(PartCounters) {
			continue // 0 would be a beginning anew, and all that was ever counted grow next
		}
		m.numbers[succeeded][sub.Name] = sub.Counts.Succeeded
		m.numbers[failed][sub.Name] = sub.Counts.Failed
		m.numbers[dropped][sub.Name] = sub.Counts.Dropped
	}
	for _, t := range now.JobTypes {
		m.numbers[typeSucceeded][t.Name] = t.Succeeded
		m.numbers[typeFailed][t.Name] = t.Failed
		m.numbers[typeExpired][t.Name] = t.Expired
		m.numbers[typeWaiting][t.Name] = t.Waiting
		m.numbers[typeOldest][t.Name] = t.OldestAt.UnixMilli()
	}
	for _, machine := range now.Machines {
		m.numbers[moved][machine.Name] = machine.Moved
		m.numbers[stepsFailed][machine.Name] = machine.Failed
		m.numbers[unpublished][machine.Name] = machine.Unpublished
	}
	return m
}

// remember keeps what the figures of the next minute need of a sample.
func (s *Sampler) remember(now moment) {
	s.recent = slices.DeleteFunc(s.recent, func(m moment) bool {
		return !m.at.Before(now.at) || now.at.Sub(m.at) > Lately
	})
	s.recent = append(s.recent, now)
}

// hasGaps reports whether rates are over a time of which only some are known.
func (s *Sampler) hasGaps() bool {
	return slices.ContainsFunc(s.recent[s.first(rateWindow):], func(m moment) bool { return m.partial })
}

// first returns the index of the oldest moment that a window reaches. If none but the last is in
// it, it is the one before that.
func (s *Sampler) first(over time.Duration) int {
	last := len(s.recent) - 1
	i := last
	for i > 0 && s.recent[last].at.Sub(s.recent[i-1].at) <= over {
		i--
	}
	if i == last {
		i = max(last-1, 0)
	}
	return i
}

// grown returns the growth of a counter in a window, and the time in which it grew. It is false
// if the counter is new or was reset in the last interval; if that was earlier, growth is counted
// from then.
func (s *Sampler) grown(over time.Duration, of counter, name string) (growth int64, in time.Duration, known bool) {
	last := len(s.recent) - 1
	now, ok := s.recent[last].numbers[of][name]
	was, i, first := now, last, s.first(over)
	for ; ok && i > first; i-- {
		before, found := s.recent[i-1].numbers[of][name]
		if !found || before > was {
			break
		}
		was = before
	}
	return now - was, s.recent[last].at.Sub(s.recent[i].at), ok && i < last
}

// growth returns the growth of a counter in a window, nil if it is not known.
func (s *Sampler) growth(over time.Duration, of counter, name string) *int64 {
	growth, _, known := s.grown(over, of, name)
	if !known {
		return nil
	}
	return &growth
}

// rate returns the growth of a counter by the second, nil if it is not known.
func (s *Sampler) rate(over time.Duration, of counter, name string) *float64 {
	growth, in, known := s.grown(over, of, name)
	if !known || in <= 0 {
		return nil
	}
	rate := float64(growth) / in.Seconds()
	return &rate
}

// trend returns the change of a subscriber's health in the last minute.
func (s *Sampler) trend(sub SubscriberState) int {
	for _, m := range s.recent[s.first(Lately):] {
		if was, ok := m.numbers[health][sub.Name]; ok {
			return sub.Health - int(was)
		}
	}
	return 0
}

// seconds is the time that rates are computed over.
func (s *Sampler) seconds() float64 {
	return s.recent[len(s.recent)-1].at.Sub(s.recent[s.first(rateWindow)].at).Seconds()
}

// agingSlope is how fast an age grows at least, in s/s, that is said to grow.
const agingSlope = 0.5

// heldFor is for how long figures of services have to be known to say that they have held.
const heldFor = 30 * time.Second

// least returns the least that a number was in the last minute, 0 if that is not known for long.
func (s *Sampler) least(of counter, name string) int64 {
	recent := s.recent[s.first(Lately):]
	now := recent[len(recent)-1]
	if now.at.Sub(recent[0].at) < heldFor {
		return 0
	}
	least := now.numbers[of][name]
	for _, m := range recent {
		least = min(least, m.numbers[of][name])
	}
	return least
}

// ages reports whether a time stood nearly still in the last minute: what came then grows old.
func (s *Sampler) ages(of counter, name string) bool {
	recent := s.recent[s.first(Lately):]
	first, now := recent[0], recent[len(recent)-1]
	took, was := now.at.Sub(first.at), first.numbers[of][name]
	moved := time.Duration(now.numbers[of][name]-was) * time.Millisecond
	return took >= heldFor && was > 0 && moved.Seconds() < (1-agingSlope)*took.Seconds()
}
