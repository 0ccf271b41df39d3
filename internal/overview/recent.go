package overview

import (
	"time"
)

// Columns of a topic,
const topicEvents = 0

// of a subscriber,
const (
	sent = iota
	succeeded
	failed
	dropped
	health // is no count: it may fall
)

// of a job type,
const (
	typeSucceeded = iota
	typeFailed
	typeExpired
	typeWaiting // no count
	typeOldest  // ms since the Unix epoch, negative if there is none
)

// and of a machine.
const (
	moved = iota
	stepsFailed
	unpublished // no count
)

// recent holds the data of the last minute's samples that figures need.
type recent struct {
	Moments
	// rates and lately are the first moments in the windows of rates, and of the last minute.
	rates, lately int
}

// Things of a sampler.
func topic(name string) Thing      { return Thing{Kind: "topic", Name: name} }
func subscriber(name string) Thing { return Thing{Kind: "subscriber", Name: name} }
func jobType(name string) Thing    { return Thing{Kind: "job type", Name: name} }
func machine(name string) Thing    { return Thing{Kind: "machine", Name: name} }

// add adds a sample. Partial is whether it lacks some that there were.
func (r *recent) add(now Sample, partial bool) {
	r.Begin(now.At, Lately, partial)
	r.rates, r.lately = r.First(rateWindow), r.First(Lately)
	for _, t := range now.Topics {
		r.Put(topic(t.Name), t.Events)
	}
	for _, sub := range now.Subscribers {
		counts := sub.Counts
		if now.Lacks(PartCounters) { // 0 would be a beginning anew, and all that was ever counted grow next
			counts = Counts{unknownNumber, unknownNumber, unknownNumber}
		}
		r.Put(subscriber(sub.Name), sub.Sent, counts.Succeeded, counts.Failed, counts.Dropped, int64(sub.Health))
	}
	for _, t := range now.JobTypes {
		r.Put(jobType(t.Name), t.Succeeded, t.Failed, t.Expired, t.Waiting, t.OldestAt.UnixMilli())
	}
	for _, m := range now.Machines {
		r.Put(machine(m.Name), m.Moved, m.Failed, m.Unpublished)
	}
}

// trend returns the change of a subscriber's health in the last minute.
func (r *recent) trend(sub *Trace) int {
	was, _ := sub.First(r.lately, health)
	return int(sub.Now(health) - was)
}

// agingSlope is how fast an age grows at least, in s/s, that is said to grow.
const agingSlope = 0.5

// heldFor is how long figures of services must be known before they count as lasting.
const heldFor = 30 * time.Second

// least returns the least that a number was in the last minute, 0 if that is not known for long.
func (r *recent) least(of *Trace, number int) int64 {
	if r.Took(r.lately) < heldFor {
		return 0
	}
	return of.Least(r.lately, number)
}

// ages reports whether a time stood nearly still in the last minute, so that its age grows.
func (r *recent) ages(of *Trace, number int) bool {
	was, _ := of.At(r.lately, number)
	took, moved := r.Took(r.lately), time.Duration(of.Now(number)-was)*time.Millisecond
	return took >= heldFor && was > 0 && moved.Seconds() < (1-agingSlope)*took.Seconds()
}
