package worker

import (
	"sync"

	"routemaster/internal/bus"
)

// slots keeps threads of a pool free for subscribers whose last delivery succeeded, so that
// subscribers that hang cannot hold all of them. At least a quarter of the threads serves only the
// proven. At most half serves subscribers that fail, so that a new subscriber does not wait for
// these either. In a pool of one, the thread serves all.
type slots struct {
	maxFailing, maxUnproven int

	mu                sync.Mutex
	failing, unproven int // in use; unproven counts failing too
}

func newSlots(threads int) *slots {
	reserved := (threads + 3) / 4
	return &slots{maxFailing: max(1, threads/2), maxUnproven: max(1, threads-reserved)}
}

// reserve takes a slot for the next job, and returns the minimum standing of its subscriber.
func (s *slots) reserve() bus.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	minStanding := bus.Proven
	if s.unproven < s.maxUnproven {
		minStanding = bus.Untried
		if s.failing < s.maxFailing {
			minStanding = bus.Failing
		}
	}
	s.add(minStanding, 1)
	return minStanding
}

// swap returns a slot and takes another, when a job needs less than the reserved slot.
func (s *slots) swap(from, to bus.Standing) {
	if from == to {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(from, -1)
	s.add(to, 1)
}

// release returns a slot.
func (s *slots) release(of bus.Standing) { s.swap(of, bus.Proven) }

func (s *slots) add(of bus.Standing, n int) {
	if of < bus.Proven {
		s.unproven += n
	}
	if of < bus.Untried {
		s.failing += n
	}
}
