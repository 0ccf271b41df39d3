package chaos

import "time"

// A fault explains what is odd only close by:
const (
	// faultMargin is how far what one party did may lie from the moment at which the other saw it,
	// and how long a fault leaves traces: bytes under way, connections that are found broken.
	faultMargin = 300 * time.Millisecond
	// settleMargin is how long a worker may take to settle what it holds once it can reach Redis
	// again: it tries every 200 ms, and the Redis client, after many failures, every second.
	settleMargin = 1200 * time.Millisecond
)

// faults explain oddities.
type faults []*fault

// again says why a batch may come again that a subscriber had acknowledged: the answer was spoiled
// on its way, or a worker was killed before it could settle the batch. That a worker could not
// reach Redis for a while is no reason by itself: it only makes the time longer in which a kill is
// one. Or the machine stalled, and a timeout came first. The cause is empty if there is none.
func (all faults) again(subscriber string, first *attempt) (cause string) {
	from, until := first.arrived.Add(-faultMargin), first.acknowledged.Add(faultMargin)
	if all.spoiled(subscriber, from, until) {
		return "a spoiled answer"
	}
	last := until
	for _, worker := range workers {
		settled := all.settled(worker, from, until)
		if settled.After(last) {
			last = settled
		}
		for _, f := range all {
			if f.victim == worker && f.began.Before(settled) && f.died.After(from) {
				return "a killed worker"
			}
		}
	}
	if all.stalled(from, last) {
		return "a stalled machine"
	}
	return ""
}

// settled is when a worker at the latest has settled what it delivered between two times.
func (all faults) settled(worker string, from, until time.Time) time.Time {
	for _, f := range all { // in the order in which they began
		away := f.victim == "redis" || f.victim == linkName(worker, "redis")
		if away && f.began.Before(until) && f.ended.After(from) && f.ended.Add(settleMargin).After(until) {
			until = f.ended.Add(settleMargin)
		}
	}
	return until
}

// late reports whether something explains that an event came after a later one of its publisher,
// although the subscriber had refused neither: a delivery was spoiled on its way, or timed out when
// the machine stalled, so that those behind it passed.
func (all faults) late(subscriber string, event *publication, later *attempt) bool {
	from, until := event.sent, later.acknowledged.Add(faultMargin)
	return all.spoiled(subscriber, from, until) || all.stalled(from, until)
}

// spoiled reports whether a subscriber's link was faulty between two times.
func (all faults) spoiled(subscriber string, from, until time.Time) bool {
	for _, f := range all {
		if f.victim == linkName("workers", subscriber) && f.began.Before(until) && f.ended.Add(faultMargin).After(from) {
			return true
		}
	}
	return false
}

// linkName names the link from one party to another.
func linkName(from, to string) string { return from + " > " + to }
