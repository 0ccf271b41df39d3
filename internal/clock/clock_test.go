package clock

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hosts are the hosts of a process and of Redis. The test sets their clocks.
type hosts struct {
	t           *testing.T
	wall, redis time.Time
	mono, trip  time.Duration
	log         bytes.Buffer
	clock       *Clock
}

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// newHosts has a process's clock that is ahead of Redis' clock, and was measured so often as
// others' times need.
func newHosts(t *testing.T, ahead time.Duration) *hosts {
	h := &hosts{t: t, wall: noon.Add(ahead), redis: noon}
	h.clock = newClock(func() time.Time { return h.wall }, func() time.Duration { return h.mono }, slog.New(slog.NewTextHandler(&h.log, nil)))
	h.measure()
	h.beat(2)
	return h
}

// pass lets time pass.
func (h *hosts) pass(d time.Duration) {
	h.wall, h.redis, h.mono = h.wall.Add(d), h.redis.Add(d), h.mono+d
}

func (h *hosts) measure() {
	require.NoError(h.t, h.clock.Measure(func() (time.Time, error) {
		h.pass(h.trip / 2)
		redis := h.redis
		h.pass(h.trip - h.trip/2)
		return redis, nil
	}))
}

// beat measures at intervals.
func (h *hosts) beat(times int) {
	for range times {
		h.pass(5 * time.Second)
		h.measure()
	}
}

// require requires how far the clock is ahead of Redis now.
func (h *hosts) require(ahead time.Duration, agrees bool) {
	h.t.Helper()
	assert.InDelta(h.t, ahead.Seconds(), h.clock.Now().Sub(h.redis).Seconds(), 0.01)
	assert.Equal(h.t, agrees, h.clock.Agrees())
}

// logged returns how many lines say something, and forgets them.
func (h *hosts) logged(text string) int {
	defer h.log.Reset()
	return strings.Count(h.log.String(), text)
}

func TestWithinTheToleranceTheHostsClockCounts(t *testing.T) {
	for _, ahead := range []time.Duration{0, 4900 * time.Millisecond, -4900 * time.Millisecond} {
		h := newHosts(t, ahead)
		h.require(ahead, true)
		assert.Equal(t, ahead, h.clock.Ahead())
		assert.Empty(t, h.log.String())
	}
}

func TestBeyondTheToleranceThatOfRedisCounts(t *testing.T) {
	for _, ahead := range []time.Duration{5100 * time.Millisecond, -5100 * time.Millisecond, time.Hour, -time.Hour} {
		h := newHosts(t, ahead)
		h.require(0, false)
		assert.Equal(t, ahead, h.clock.Ahead())
		h.beat(10)
		h.require(0, false)
		assert.Equal(t, 1, h.logged("this process goes by redis' clock"), "once a change")

		h.wall = h.redis // it is synchronized
		h.require(0, false)
		h.measure()
		assert.Equal(t, 1, h.logged("agrees with redis' clock again"))
		h.pass(9 * time.Second)
		h.require(0, false)
		h.pass(time.Second)
		h.require(0, true)
	}
}

func TestBeforeTheFirstMeasurementTheHostsClockCounts(t *testing.T) {
	c := New(func() time.Time { return noon }, nil)
	assert.Equal(t, noon, c.Now())
	assert.False(t, c.Agrees())
	assert.Zero(t, c.Ahead())
	assert.Error(t, c.Measure(func() (time.Time, error) { return time.Time{}, errors.New("away") }))
	assert.Equal(t, noon, c.Now())
}

// TestAHostsClockIsSet while the process runs: its time goes on, from the moment on and later.
func TestAHostsClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		h := newHosts(t, 0)
		h.wall = h.wall.Add(by)
		h.require(0, true)
		h.beat(1)
		h.require(0, false)
		assert.Equal(t, 1, h.logged("this process goes by redis' clock"))
		h.wall = h.wall.Add(-by)
		h.beat(3)
		h.require(0, true)
	}
}

// TestAnotherRedisTakesOver replaces Redis by one whose clock is wrong: all processes go on by
// their own clocks, and take no other for dead.
func TestAnotherRedisTakesOver(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		h := newHosts(t, 0)
		h.redis = h.redis.Add(by)
		h.beat(20)
		h.require(-by, false)
		assert.Equal(t, 1, h.logged("another redis with another clock took over"))
		h.redis = h.redis.Add(-by)
		h.beat(3)
		h.require(0, true)
	}
	h := newHosts(t, time.Hour) // by the clock of the first
	h.redis = h.redis.Add(-time.Hour)
	h.beat(3)
	h.require(time.Hour, false)
	h.wall = h.redis
	h.beat(3)
	h.require(0, true)
}

func TestAHostSleeps(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour} {
		h := newHosts(t, ahead)
		h.wall, h.redis = h.wall.Add(time.Hour), h.redis.Add(time.Hour)
		h.require(-time.Hour, ahead == 0)
		h.measure()
		h.require(0, false)
		h.beat(2)
		h.require(0, ahead == 0)
	}
}

func TestRedisIsSlowOrAway(t *testing.T) {
	h := newHosts(t, 0)
	h.trip = 20 * time.Second
	h.wall = h.wall.Add(time.Hour)
	h.measure()
	h.require(0, true)
	assert.Empty(t, h.log.String(), "a slow answer says little")
	h.trip = 0
	h.pass(10 * time.Second)
	h.require(0, true)
	h.pass(time.Millisecond)
	h.require(0, false)

	first := &hosts{t: t, wall: noon.Add(12 * time.Second), redis: noon, trip: 20 * time.Second}
	first.clock = newClock(func() time.Time { return first.wall }, func() time.Duration { return first.mono }, nil)
	first.measure()
	first.require(12*time.Second, false)
	first.trip = 0
	first.beat(1)
	first.require(0, false)
}

// TestReadingAClockDoesNotWaitForRedis asks the clock for everything while Redis is silent.
func TestReadingAClockDoesNotWaitForRedis(t *testing.T) {
	h := newHosts(t, 0)
	require.NoError(t, h.clock.Measure(func() (time.Time, error) {
		read := make(chan struct{})
		go func() {
			h.clock.Now()
			h.clock.Ahead()
			h.clock.Agrees()
			close(read)
		}()
		<-read
		return h.redis, nil
	}))
}

// TestALateMeasurementCountsForNothing ends one after another that began later.
func TestALateMeasurementCountsForNothing(t *testing.T) {
	h := newHosts(t, 0)
	require.NoError(t, h.clock.Measure(func() (time.Time, error) {
		redis := h.redis.Add(-time.Hour)
		h.pass(time.Second)
		h.measure()
		return redis, nil
	}))
	h.require(0, true)
}
