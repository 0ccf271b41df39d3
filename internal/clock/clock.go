// Package clock has the time of a process, which follows Redis's clock where the process's own is
// wrong.
//
// Processes compare each other's times: `web` decides when a batch is due, and a worker finds it
// due by its own time. So all of them follow one reference, Redis's clock, if their own differs
// from it by more than [Tolerance]. Between two measurements a clock follows the monotonic clock of
// the host: setting the host's time of day changes nothing.
package clock

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Tolerance is how far a process's clock may be from Redis' clock. Within it, the process goes by
// its own.
const Tolerance = 5 * time.Second

const (
	// maxTrip is the longest round trip whose response is used as Redis's time.
	maxTrip = 2 * time.Second
	// agreedFor is how long clocks must have agreed before others' silence counts. It is longer than
	// the intervals of heartbeats and of measurements, so that others have noticed the same.
	agreedFor = 10 * time.Second
	// agreesFor is how long a measurement is good. It is several intervals of measurements.
	agreesFor = 30 * time.Second
)

// Clock is the time of a process. It is safe for concurrent use.
type Clock struct {
	wall func() time.Time
	mono func() time.Duration
	log  *slog.Logger
	// from is where the time goes on from; nil before the first measurement.
	from atomic.Pointer[anchor]

	mu   sync.Mutex
	last *sample // the last measurement that counts
	// agreed is since when the host's clock has been within the tolerance, by the monotonic clock, if
	// it is.
	agrees bool
	agreed time.Duration
	state  state
}

// anchor is a time, and the monotonic clock's reading at that time.
type anchor struct {
	at   time.Time
	mono time.Duration
}

// sample has the readings of three clocks at the same time.
type sample struct {
	wall, redis time.Time
	mono        time.Duration
}

// state is the last state logged.
type state int

const (
	agreeing  state = iota // with the clock of Redis
	corrected              // the clock goes by Redis' clock
	kept                   // the clock of Redis was set, and this one goes on as before
)

// New makes a clock of the host's clock, which it logs about. It goes by the host's until it is
// measured.
func New(wall func() time.Time, log *slog.Logger) *Clock {
	start := time.Now()
	return newClock(wall, func() time.Duration { return time.Since(start) }, log)
}

func newClock(wall func() time.Time, mono func() time.Duration, log *slog.Logger) *Clock {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Clock{wall: wall, mono: mono, log: log}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	if from := c.from.Load(); from != nil {
		return from.at.Add(c.mono() - from.mono)
	}
	return c.wall()
}

// Wall is the host's clock.
func (c *Clock) Wall() time.Time { return c.wall() }

// Ahead is how far the host's clock was ahead of Redis' clock when it was measured last; 0 before.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		return 0
	}
	return c.last.wall.Sub(c.last.redis)
}

// Agrees reports whether the host's clock is known to be within the tolerance from Redis' clock,
// and has been for so long that other processes' times can be relied on.
func (c *Clock) Agrees() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.mono()
	return c.agrees && now-c.agreed >= agreedFor && now-c.last.mono <= agreesFor
}

// Measure compares the clock with Redis' clock, which ask returns in one round trip. It returns
// the error of ask. Reading the clock does not wait for Redis.
func (c *Clock) Measure(ask func() (time.Time, error)) error {
	wall, began := c.wall(), c.mono()
	redis, err := ask()
	if err != nil {
		return err
	}
	trip := c.mono() - began
	if trip > maxTrip { // it says little
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &sample{wall: wall.Round(0).Add(trip / 2), redis: redis, mono: began + trip/2}
	if c.last == nil || s.mono >= c.last.mono { // else another has come first
		c.take(s)
	}
	return nil
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= Tolerance }

// take goes on by a measurement.
func (c *Clock) take(s *sample) {
	last, isRight := c.last, near(s.wall, s.redis)
	c.last = s
	// Now is not taken: it would be some moments later.
	now := s.wall
	if from := c.from.Load(); from != nil {
		now = from.at.Add(s.mono - from.mono)
	}
	next, follow := corrected, s.redis
	switch {
	case isRight:
		next, follow = agreeing, s.wall
	case last == nil || near(now, s.redis) || slept(last, s):
	default:
		next, follow = kept, now
	}
	if !c.agrees || !near(now, follow) {
		c.agreed = s.mono
	}
	c.agrees = isRight
	c.from.Store(&anchor{follow, s.mono})
	c.say(next, s.wall.Sub(s.redis))
}

// slept reports whether both the host's and Redis's clock have advanced by more than the monotonic
// clock since the last measurement: a suspended host stops the monotonic clock.
func slept(last, s *sample) bool {
	wall, redis, mono := s.wall.Sub(last.wall), s.redis.Sub(last.redis), s.mono-last.mono
	return wall-mono > Tolerance && (wall-redis).Abs() <= Tolerance
}

// say logs a change of the state.
func (c *Clock) say(next state, ahead time.Duration) {
	if next == c.state {
		return
	}
	c.state = next
	by := slog.Duration("ahead", ahead.Round(time.Millisecond))
	switch next {
	case corrected:
		c.log.Error("the clock of this host is off from redis' clock: this process goes by redis' clock, "+
			"and requeues no jobs of dead workers; synchronize the clocks", by)
	case kept:
		c.log.Error("the clock of redis was set, or another redis with another clock took over: this process goes on "+
			"by its own, and requeues no jobs of dead workers; synchronize the clocks before you start it again", by)
	case agreeing:
		c.log.Info("the clock of this host agrees with redis' clock again", by)
	}
}
