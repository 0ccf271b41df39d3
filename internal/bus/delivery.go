package bus

import (
	"net/http"
	"time"
)

// Health points of a subscriber: it starts with the most there are.
const (
	MinHealth = 0
	MaxHealth = 100
)

// Health is a subscriber's health after points were added, within its bounds.
func Health(before, points int) int { return min(max(before+points, MinHealth), MaxHealth) }

// firstBackoff is the wait after the first failed attempt, before jitter.
const firstBackoff = 200 * time.Millisecond

// Backoff is how long a batch waits after its attempts-th attempt failed:
// min(most, 100 ms · 2^attempts), less up to half of it by chance, so that
// batches that failed together do not come back together. Chance is in [0, 1).
func Backoff(attempts int, most time.Duration, chance float64) time.Duration {
	wait := firstBackoff
	for ; attempts > 1 && wait < most; attempts-- {
		wait *= 2
	}
	wait = min(wait, most)
	return wait - time.Duration(chance*float64(wait)/2)
}

// Throttle is how long a subscriber is left alone after an attempt failed, and took its health from before to
// after: most · 2^(-after), which is next to nothing at first, and most when its health is 0. From the second
// failure on it is at least 200 ms, so that an outage of a second does not cost a busy subscriber all
// its health; a failure now and then costs it no time. Nor does one right after a success cost more than that: refused batches,
// which do not throttle, may have taken all its health.
func Throttle(standing Standing, before, after int, most time.Duration) time.Duration {
	alone := most >> min(max(after, MinHealth), 62)
	if before < MaxHealth {
		alone = max(alone, min(firstBackoff, most))
	}
	if standing == Proven {
		alone = min(alone, firstBackoff)
	}
	return alone
}

// Failure is what a failed delivery tells.
type Failure int

const (
	// EndpointFailure says that the endpoint is unavailable: whatever it is sent would fail. Its subscriber is throttled.
	EndpointFailure Failure = iota + 1
	// BatchFailure says that the endpoint refuses this batch. It throttles only while nothing else succeeds.
	BatchFailure
)

// FailureOf is what an answer that does not acknowledge a batch tells, by its status. It is about the endpoint where the status
// says so (RFC 9110, section 15): a proxy's word, a wrong address or wrong credentials, or a limit. It is about the batch
// where the subscriber's program has looked at it: 500, 501, and what is left of 4xx.
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

// When refusals alone throttle a subscriber. Until then each refused batch waits for itself, and the others follow at
// once, however many refused ones are among them.
const (
	freeRefusals   = 100
	freeRefusalFor = time.Second
	minRefusalWait = 100 * time.Millisecond
)

// RefusalThrottle is how long a subscriber is left alone after its endpoint has refused a number of batches, one after the
// other, while none succeeded for as long as lasted: a tenth of that, from 100 ms to most, so that it is tried less
// and less. The first hundred, and those of the first second, cost the others no time: an endpoint that refuses everything
// cannot be told from one that was sent many bad batches.
func RefusalThrottle(refusals int, lasted, most time.Duration) time.Duration {
	if refusals < freeRefusals || lasted < freeRefusalFor {
		return 0
	}
	return min(max(lasted/10, minRefusalWait), most)
}

// Standing is what a subscriber's last delivery says about its next.
type Standing int

const (
	// Failing says that a delivery has failed since the last that succeeded.
	Failing Standing = iota
	// Untried says that no delivery has succeeded yet, nor failed, since the client subscribed; if
	// it had subscribed before, that its last delivery failed.
	Untried
	// Proven says that the last delivery succeeded.
	Proven
)
