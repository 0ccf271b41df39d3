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

// faults explain what the bus may do only because of them.
type faults []*fault

// again returns the cause for which an acknowledged batch may be delivered again: the response was
// lost on its way, a worker was killed before it could settle the batch, or the machine stalled and
// a timeout came first. A worker that cannot reach Redis for a while settles later, so a kill
// explains more; the outage itself is not a cause. The cause is empty if there is none.
func (all faults) again(subscriber string, first *attempt) (cause string) {
	from, until := first.arrived.Add(-faultMargin), first.acknowledged.Add(faultMargin)
	if all.disturbed(subscriber, from, until) {
		return "a lost response"
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
		return "a stall"
	}
	return ""
}

// settled is when a worker at the latest has settled what it delivered between two times.
func (all faults) settled(worker string, from, until time.Time) time.Time {
	for _, f := range all { // in the order in which they began
		away := f.victim == "redis" || f.victim == proxyName(worker, "redis")
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
	return all.disturbed(subscriber, from, until) || all.stalled(from, until)
}

// disturbed reports whether the proxy of a subscriber had a fault between two times.
func (all faults) disturbed(subscriber string, from, until time.Time) bool {
	for _, f := range all {
		if f.victim == proxyName("workers", subscriber) && f.began.Before(until) && f.ended.Add(faultMargin).After(from) {
			return true
		}
	}
	return false
}

// proxyName names the proxy from one party to another.
func proxyName(from, to string) string { return from + " > " + to }
