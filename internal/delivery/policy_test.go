package delivery

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

var (
	now    = time.UnixMilli(1_700_000_000_000)
	policy = Policy{HealRate: 1, DamageRate: -2, MaxBackoff: time.Minute}
)

// answered is an attempt that was answered by a status other than 2xx.
func answered(status int, retryAfter time.Duration) outbound.Attempt {
	return outbound.Attempt{Err: errors.New(http.StatusText(status)), Status: status, RetryAfter: retryAfter}
}

// decide decides about an attempt to deliver all of a batch, of a number of events.
func decide(batch *store.Delivery, events int, attempt outbound.Attempt, now time.Time, chance float64) queue.Result {
	batch.Events = make([]wire.PackedEvent, events)
	s := &slice{batch: batch, compiled: noOptions, payload: payload{events: batch.Events, taken: events}}
	return policy.decide(s, attempt, now, chance).result()
}

func TestAnAcknowledgementHeals(t *testing.T) {
	result := decide(&store.Delivery{Attempts: 3, Health: 50}, 7, outbound.Attempt{Status: 200, RetryAfter: time.Second}, now, 0)
	one := 1 // since it took no time
	assert.Equal(t, queue.Result{Detail: store.DeliveryResult{Health: 1, Delivered: 7, Ahead: &one}}, result)
}

// TestBackoff has the third attempt fail: its batch waits for 800 ms, less up to half of it.
func TestBackoff(t *testing.T) {
	unavailable := outbound.Attempt{Err: errors.New("connection refused")}
	for _, c := range []struct {
		attempt outbound.Attempt
		chance  float64
		backoff time.Duration
	}{
		{unavailable, 0, 800 * time.Millisecond},
		{unavailable, 0.5, 600 * time.Millisecond},
		{answered(500, 0), 0, 800 * time.Millisecond},
		{answered(500, 7*time.Second), 0, 7 * time.Second},
		{answered(503, 7*time.Second), 0.5, 7 * time.Second},
		{answered(503, time.Hour), 0, time.Minute},
		{answered(503, time.Millisecond), 0, 800 * time.Millisecond},
	} {
		result := decide(&store.Delivery{Attempts: 3, Health: 100}, 1, c.attempt, now, c.chance)
		assert.Equal(t, now.Add(c.backoff), result.RetryAt, "%+v", c)
		assert.Zero(t, detailOf(result).Delivered)
	}
}

func TestDamage(t *testing.T) {
	for _, c := range []struct {
		attempt outbound.Attempt
		health  int
		failure bus.Failure
	}{
		{outbound.Attempt{Err: errors.New("connection refused")}, -2, bus.EndpointFailure},
		{answered(503, 0), -2, bus.EndpointFailure},
		{answered(500, 0), -2, bus.BatchFailure},
		{answered(http.StatusGone, 0), -100, bus.EndpointFailure},
	} {
		result := decide(&store.Delivery{Attempts: 1, Health: 100}, 1, c.attempt, now, 0)
		assert.Equal(t, c.health, detailOf(result).Health, "%+v", c)
		assert.Equal(t, c.failure, detailOf(result).Failure, "%+v", c)
	}
}

// requireThrottle checks for how long a result throttles its subscriber.
func requireThrottle(t *testing.T, want time.Duration, result queue.Result, c any) {
	t.Helper()
	if want == 0 {
		assert.Zero(t, detailOf(result).ThrottledUntil, "%+v", c)
	} else {
		assert.Equal(t, now.Add(want), detailOf(result).ThrottledUntil, "%+v", c)
	}
}

func TestAnUnavailableEndpointIsThrottled(t *testing.T) {
	for _, c := range []struct {
		health     int
		standing   bus.Standing
		retryAfter time.Duration
		throttle   time.Duration
	}{
		{100, bus.Failing, 0, 0},
		{98, bus.Failing, 0, 200 * time.Millisecond},
		{3, bus.Failing, 0, 30 * time.Second},
		{2, bus.Failing, 0, time.Minute},
		{0, bus.Failing, 0, time.Minute},
		{0, bus.Proven, 0, 200 * time.Millisecond},
		{100, bus.Failing, 7 * time.Second, 7 * time.Second},
		{3, bus.Failing, 7 * time.Second, 30 * time.Second},
		{100, bus.Failing, time.Hour, time.Minute},
	} {
		batch := &store.Delivery{Attempts: 3, Health: c.health, Standing: c.standing}
		result := decide(batch, 1, answered(503, c.retryAfter), now, 0)
		requireThrottle(t, c.throttle, result, c)
	}
}

// TestARetryAfterOfLessThanASecondBacksOff has an endpoint ask for next to no time, ever again.
func TestARetryAfterOfLessThanASecondBacksOff(t *testing.T) {
	for attempts, want := range map[int]time.Duration{
		1: 500 * time.Millisecond, 2: 500 * time.Millisecond, 3: 800 * time.Millisecond, 6: 6400 * time.Millisecond, 40: time.Minute,
	} {
		result := decide(&store.Delivery{Attempts: attempts, Health: 100}, 1, answered(503, 500*time.Millisecond), now, 0)
		assert.Equal(t, want, result.RetryAt.Sub(now), attempts)
	}
}

// TestARefusedBatchCostsOnlyItself throttles a subscriber only after it has refused many batches,
// for long. Retry-After is then for the batch.
func TestARefusedBatchCostsOnlyItself(t *testing.T) {
	for _, c := range []struct {
		health, refusals int
		lasted           time.Duration
		retryAfter       time.Duration
		throttle         time.Duration
	}{
		{100, 0, 0, 0, 0},
		{0, 0, 0, 0, 0},
		{0, 98, time.Hour, 0, 0},
		{0, 99, time.Millisecond, 0, 0},
		{0, 99, 20 * time.Second, 0, 2 * time.Second},
		{100, 99, time.Hour, 0, time.Minute},
		{0, 0, 0, 7 * time.Second, 0},
	} {
		batch := &store.Delivery{Attempts: 1, Health: c.health, Refusals: c.refusals}
		if c.refusals > 0 {
			batch.RefusedSince = now.Add(-c.lasted)
		}
		result := decide(batch, 1, answered(500, c.retryAfter), now, 0)
		requireThrottle(t, c.throttle, result, c)
	}
}

// detailOf is the detail of a result.
func detailOf(r queue.Result) store.DeliveryResult { return r.Detail.(store.DeliveryResult) }
