package chaos

import (
	"slices"
	"strings"
	"time"

	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
)

// A fault explains only oddities close to it:
const (
	// faultMargin bounds the time from an action of one party until the other observes it, and the
	// time for which a fault has effects: bytes under way, connections that are found broken.
	faultMargin = 300 * time.Millisecond
	// callTimeout bounds one call to Redis, by the default of its client: while a node hangs, one
	// that succeeds may take as long.
	callTimeout = 3 * time.Second
)

// completeMargin is how long a worker may take to complete its jobs once it can reach Redis again:
// it tries every 200 ms, and the Redis client, after many failures, every second. On a busy host it
// takes some of that at any time, and with the race detector several times as much: there the
// daemons share it with the other tests.
func completeMargin() time.Duration {
	if rdbtest.RaceDetector {
		return 6 * time.Second
	}
	return 1200 * time.Millisecond
}

// faults explain behaviour of the bus that only they allow.
type faults []*fault

// again returns the cause for which an acknowledged batch may be delivered again: the response was
// lost on its way or came too late, a worker was killed before it could complete the batch, or the
// host stalled and a timeout came first. A worker that cannot reach Redis for a while completes
// later, so a kill explains more; the outage itself is not a cause. The cause is empty if there is
// none.
func (all faults) again(subscriber string, first *attempt) (cause string) {
	from, until := first.arrived.Add(-faultMargin), first.acknowledged.Add(faultMargin)
	if all.disturbed(subscriber, from, until) {
		return "a lost response"
	}
	ended := first.acknowledged.Add(completeMargin())
	if isTakenAhead(subscriber) { // it is completed with the batches delivered after it
		ended = ended.Add(queue.AheadTime + chaosTimeout)
	}
	last := ended
	for _, worker := range workers {
		completed := all.completed(worker, from, ended)
		if completed.After(last) {
			last = completed
		}
		for _, f := range all {
			if f.victim == worker && f.began.Before(completed) && f.died.After(from) {
				return "a killed worker"
			}
		}
	}
	if all.failedOver(subscriber, from, last) {
		return "a failover"
	}
	if all.stalled(from, last) {
		return "a stall"
	}
	return ""
}

// failedOver reports whether the master of a subscriber's partition in a cluster, or of any if
// there is no name, may have been followed by another one between two times. The new master may
// lack the last changes, unless replicas had to confirm them. They confirm that an event was
// published, and that it was carried to another partition, but not that it was delivered. And the
// old master takes some time to notice, if it comes back.
func (all faults) failedOver(subscriber string, from, until time.Time) bool {
	for _, f := range all {
		concerned := f.kind == masterChanged && (subscriber == "" || slices.Contains(f.concerns, subscriber))
		if concerned && f.began.Before(until) && f.ended.After(from) {
			return true
		}
	}
	return false
}

// changes returns when masters were found to have changed.
func (all faults) changes() (times []time.Time) {
	for _, f := range all {
		if f.kind == masterChanged {
			times = append(times, f.ended)
		}
	}
	return times
}

// isTakenAhead reports whether several batches of a subscriber may be taken at once: it has no
// options, and its batches are small.
func isTakenAhead(subscriber string) bool {
	for _, s := range subscribers {
		if s.name == subscriber {
			return s.options == "" && s.max < 29
		}
	}
	return false
}

// completed returns the latest time at which a worker completes the batches that it delivered
// between two times.
func (all faults) completed(worker string, from, until time.Time) time.Time {
	for _, f := range all { // in the order in which they began
		away := f.victim == redisVictim || strings.HasPrefix(f.victim, proxyName(worker, ""))
		back := f.ended.Add(f.refusing)
		if away && f.began.Before(until) && back.After(from) && back.Add(completeMargin()).After(until) {
			until = back.Add(completeMargin())
		}
	}
	return until
}

// late reports whether something explains that an event came after a later one of its publisher,
// although the subscriber had refused neither: a delivery was spoiled on its way, or timed out when
// the host stalled, so that those behind it passed.
func (all faults) late(subscriber string, event *publication, later *attempt) bool {
	from, until := event.sent, later.acknowledged.Add(faultMargin)
	return all.disturbed(subscriber, from, until) || all.stalled(from, until)
}

// disturbed reports whether the proxy of a subscriber had a fault between two times, or a response
// of the subscriber came too late.
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
