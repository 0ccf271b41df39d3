package worker

import (
	"context"
	"sync/atomic"
	"time"

	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// source is the queue of one partition. It has one connection that waits for a job, for all threads
// of a pool. When there is a job, it offers the job to them, and waits until one of them has tried
// to take it. Sources that offer take turns, so that one with many jobs does not keep all threads.
type source struct {
	*queue.Queue
	waiter *rdb.Waiter
	// offers is whether no thread has come for its job yet.
	offers atomic.Bool
	// acquired gets a value when the thread that came has tried to take the job.
	acquired chan struct{}
	// touched has a value when this process may have put off a job since the scheduler has asked
	// when the next is due.
	touched chan struct{}
}

func newSource(q *queue.Queue, waiter *rdb.Waiter) *source {
	return &source{Queue: q, waiter: waiter, acquired: make(chan struct{}), touched: make(chan struct{}, 1)}
}

// touch makes the scheduler ask when the next job is due.
func (s *source) touch() {
	select {
	case s.touched <- struct{}{}:
	default:
	}
}

// rest waits for some time, at least, and then until the source is touched, or for atMost in all.
func (s *source) rest(ctx context.Context, atLeast, atMost time.Duration) {
	pause(ctx, atLeast)
	timer := time.NewTimer(atMost - atLeast)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.touched:
	case <-ctx.Done():
	}
}

// awayTimeout is how long to wait for a source after an outage, until it is known to be back.
const awayTimeout = time.Millisecond

// offer offers the jobs of a source to the threads until the context is done. Once a source is
// available again after an outage, all threads ask it for a job: a Redis that was restarted, or
// replaced by another, may have forgotten its last replies, and so that a thread has completed its
// job. No other thread takes that job as long as the thread is alive.
func (p *pool) offer(ctx context.Context, s *source) {
	looked, failed := s.SteadySince(), false
	for ctx.Err() == nil {
		timeout, steady := p.config.AcquireTimeout, s.SteadySince()
		wasAway := failed || steady.After(looked) // others notice, too, while this does not wait
		if wasAway {
			timeout = awayTimeout
		}
		err := s.waiter.Wait(ctx, timeout)
		if err == nil && wasAway {
			err = s.RequireOpen(ctx) // all threads would wait for a partition that is held
		}
		if err != nil {
			p.report("wait", err)
			failed = true
			pause(ctx, retryInterval)
			continue
		}
		if wasAway {
			looked, failed = steady, false
			for _, t := range p.threads.list() {
				t.lookAgain(s)
			}
		}
		s.offers.Store(true)
		select {
		case p.offers <- s:
			s.offers.Store(false)
			<-s.acquired
		case <-ctx.Done():
		}
	}
}

// othersOffer reports whether another source than one offers a job.
func (p *pool) othersOffer(than *source) bool {
	for _, s := range p.sources {
		if s != than && s.offers.Load() {
			return true
		}
	}
	return false
}
