package runner

import (
	"sync"
	"time"

	"routemaster/internal/machines"
)

// A label that is put off waits for putOff. Of many, each waits for putOffSpacing longer, so that
// looking at them again leaves time for others, but none longer than maxPutOff.
const (
	putOff        = time.Second
	putOffSpacing = time.Millisecond
	maxPutOff     = time.Minute
)

// limiter keeps threads of a worker free for other states while the webhook or the feeds of one are
// slow, whether these fail or not: half of the threads at most are at one state.
type limiter struct {
	max int

	mu     sync.Mutex
	states map[stateID]*load
}

type stateID struct {
	machine machines.Name
	state   machines.StateName
}

// load is what a worker has to do for one state.
type load struct {
	inFlight int
	// putOff is until when the last label was put off.
	putOff time.Time
}

func newLimiter(threads int) *limiter {
	return &limiter{max: max(1, threads/2), states: map[stateID]*load{}}
}

// begin counts a label as in flight, until end is called. If the limit is reached, it does not, and
// returns when to try again.
func (l *limiter) begin(id stateID, now time.Time) (retryAt time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.states[id]
	if s == nil {
		s = &load{}
		l.states[id] = s
	}
	if s.inFlight < l.max {
		s.inFlight++
		return retryAt, true
	}
	soonest, latest := now.Add(putOff), now.Add(maxPutOff)
	if s.putOff = s.putOff.Add(putOffSpacing); s.putOff.Before(soonest) {
		s.putOff = soonest
	}
	if s.putOff.After(latest) {
		s.putOff = latest
	}
	return s.putOff, false
}

func (l *limiter) end(id stateID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[id].inFlight--
}
