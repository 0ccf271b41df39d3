package delivery

import (
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// Policy decides the consequences of a delivery for its batch and its subscriber.
type Policy struct {
	// HealRate and DamageRate are added to the subscriber's health points on success and on
	// failure.
	HealRate, DamageRate int
	// MaxBackoff bounds every wait after a failure.
	MaxBackoff time.Duration
}

// throttle is how long the subscriber is throttled.
func (p Policy) throttle(batch *store.Delivery, result store.DeliveryResult, retryAfter time.Duration, now time.Time) time.Duration {
	if result.Failure == bus.BatchFailure { // Retry-After applies to this batch only
		return bus.RefusalThrottle(batch.Refusals+1, now.Sub(batch.RefusedSince), p.MaxBackoff)
	}
	health := bus.Health(batch.Health, result.Health)
	return max(bus.Throttle(batch.Standing, batch.Health, health, p.MaxBackoff), retryAfter)
}
