package bus

import (
	"net/http"
	"time"
)

// Bounds of a subscriber's health points. A new subscriber has [MaxHealth].
const (
	MinHealth = 0
	MaxHealth = 100
)

// Health returns a subscriber's health after points were added, within its bounds.
func Health(before, points int) int { return min(max(before+points, MinHealth), MaxHealth) }

// firstBackoff is the wait after the first failed attempt, before jitter.
const firstBackoff = 200 * time.Millisecond

// Backoff returns how long a batch waits after its attempts-th attempt failed: min(maxBackoff,
// 100 ms · 2^attempts), less up to half of it by chance, so that batches that failed together
// do not come back together. Chance is in [0, 1).
func Backoff(attempts int, maxBackoff time.Duration, chance float64) time.Duration {
	wait := firstBackoff
	for ; attempts > 1 && wait < maxBackoff; attempts-- {
		wait *= 2
	}
	wait = min(wait, maxBackoff)
	return wait - time.Duration(chance*float64(wait)/2)
}

// Throttle returns how long a subscriber is throttled after a failed attempt that took its
// health from before to after: maxThrottle · 2^(-after), which is next to nothing at first, and
// maxThrottle at health 0.
//
// From the second failure on it is at least 200 ms, so that an outage of a second does not cost
// a busy subscriber all its health. A single failure costs no time. The first failure after a
// success costs 200 ms at most: refused batches, which do not throttle, may have taken the
// health.
func Throttle(standing Standing, before, after int, maxThrottle time.Duration) time.Duration {
	throttle := maxThrottle >> min(max(after, MinHealth), 62)
	if before < MaxHealth {
		throttle = max(throttle, min(firstBackoff, maxThrottle))
	}
	if standing == Proven {
		throttle = min(throttle, firstBackoff)
	}
	return throttle
}

// Failure is the cause of a failed delivery.
type Failure int

const (
	// EndpointFailure means that the endpoint is unavailable: any other batch would fail too. The
	// subscriber is throttled.
	EndpointFailure Failure = iota + 1
	// BatchFailure means that the endpoint refuses this batch. It throttles the subscriber only
	// while no other batch succeeds: see [RefusalThrottle].
	BatchFailure
)

// FailureOf returns the cause of a failure by the status of a response that does not
// acknowledge a batch. It is the endpoint where RFC 9110, section 15, says so: a proxy's
// response, a wrong address, wrong credentials, or a limit. It is the batch where the
// subscriber's program has looked at it: 500, 501, and the rest of 4xx.
func FailureOf(status int) Failure {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusGone, http.StatusMisdirectedRequest,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return EndpointFailure
	}
	if status < http.StatusBadRequest || status >= http.StatusBadGateway {
		return EndpointFailure
	}
	return BatchFailure
}

// IsFinal reports whether a status refuses a batch for good: the subscriber's program has looked at
// it, and will not take it another time. RFC 9110, sections 15.5.14 and 15.5.21.
func IsFinal(status int) bool {
	return status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

// Refusals throttle a subscriber once there are this many, over this long. Until then each
// refused batch is retried by its own backoff, and the others are delivered at once.
const (
	freeRefusals       = 100
	freeRefusalPeriod  = time.Second
	minRefusalThrottle = 100 * time.Millisecond
)

// RefusalThrottle returns how long a subscriber is throttled after its endpoint has refused a
// number of batches in a row, over a period in which none succeeded: a tenth of the period, from
// 100 ms to maxThrottle, so that attempts become rarer. The first hundred refusals and all refusals
// within the first second throttle nothing: an endpoint that refuses everything looks like one that
// was sent many bad batches.
func RefusalThrottle(refusals int, period, maxThrottle time.Duration) time.Duration {
	if refusals < freeRefusals || period < freeRefusalPeriod {
		return 0
	}
	return min(max(period/10, minRefusalThrottle), maxThrottle)
}

// Standing is a subscriber's state after its last delivery, which predicts the next one. A higher
// standing promises more.
type Standing int

const (
	// Failing means that a delivery has failed since the last success.
	Failing Standing = iota
	// Untried means that no delivery has succeeded or failed since the client subscribed. It also
	// applies to a client that subscribed again after its last delivery had failed.
	Untried
	// Proven means that the last delivery succeeded.
	Proven
)
