package worker

import (
	"sync"

	"routemaster/internal/bus"
)

// slots keeps threads of a pool for subscribers whose last delivery succeeded, so that those that hang cannot hold all of
// them: at least a quarter is for these alone. A half at most serves subscribers that fail, so that one that has just
// subscribed need not wait for them either. A pool of one thread serves all.
type slots struct {
	maxFailing, maxUnproven int

	mu                sync.Mutex
	failing, unproven int // in use; unproven counts failing too
}

func newSlots(threads int) *slots {
	reserved := (threads + 3) / 4
	return &slots{maxFailing: max(1, threads/2), maxUnproven: max(1, threads-reserved)}
}

// reserve takes a slot for the next job, and returns the least standing that its subscriber may have.
func (s *slots) reserve() bus.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := bus.Proven
	if s.unproven < s.maxUnproven {
		least = bus.Untried
		if s.failing < s.maxFailing {
			least = bus.Failing
		}
	}
	s.add(least, 1)
	return least
}

// exchange returns a slot, and takes another where a job needs less than what was reserved for it.
func (s *slots) exchange(from, to bus.Standing) {
	if from == to {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(from, -1)
	s.add(to, 1)
}

// release returns a slot.
func (s *slots) release(of bus.Standing) { s.exchange(of, bus.Proven) }

func (s *slots) add(of bus.Standing, n int) {
	if of < bus.Proven {
		s.unproven += n
	}
	if of < bus.Untried {
		s.failing += n
	}
}
