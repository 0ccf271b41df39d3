package delivery

import (
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/store"
)

// Policy decides what follows from a delivery for its batch and its subscriber.
type Policy struct {
	// HealRate and DamageRate are added to the subscriber's health points on success and on
	// failure.
	HealRate, DamageRate int
	// MaxBackoff bounds every wait after a failure.
	MaxBackoff time.Duration
}

// result is the result of a task after an attempt to deliver events. Chance, in [0, 1), spreads the
// retries.
func (p Policy) result(batch *store.Delivery, events int, attempt outbound.Attempt, now time.Time, chance float64) queue.Result {
	if attempt.Err == nil {
		return queue.Result{Detail: store.DeliveryResult{Health: p.HealRate, Delivered: events}}
	}
	result := store.DeliveryResult{Health: p.DamageRate, Failure: attempt.Failure()}
	if attempt.Gone() {
		result.Health = bus.MinHealth - bus.MaxHealth
	}
	retryAfter := min(attempt.RetryAfter, p.MaxBackoff)
	backoff := bus.Backoff(batch.Attempts, p.MaxBackoff, chance)
	if retryAfter > 0 {
		backoff = retryAfter
	}
	if throttle := p.throttle(batch, result, retryAfter, now); throttle >= time.Millisecond {
		result.ThrottledUntil = now.Add(throttle)
	}
	return queue.Result{RetryAt: now.Add(backoff), Detail: result}
}

// throttle is how long the subscriber is throttled.
func (p Policy) throttle(batch *store.Delivery, result store.DeliveryResult, retryAfter time.Duration, now time.Time) time.Duration {
	if result.Failure == bus.BatchFailure { // Retry-After applies to this batch only
		return bus.RefusalThrottle(batch.Refusals+1, now.Sub(batch.RefusedSince), p.MaxBackoff)
	}
	health := bus.Health(batch.Health, result.Health)
	return max(bus.Throttle(batch.Standing, batch.Health, health, p.MaxBackoff), retryAfter)
}
