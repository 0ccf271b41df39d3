package rdb

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// ErrFull says that too much waits already.
var ErrFull = errors.New("too many calls wait for a commit")

// CommitLimits bound the waiting calls, so that memory is bounded when the work is slower than the
// callers, and one commit, so that it is short. A single call is always accepted, however large it
// is.
type CommitLimits struct {
	// Waiting is how many calls may wait, and WaitingBytes the bytes of all of them.
	Waiting, WaitingBytes int
	// Units and Bytes bound the calls of one commit, together.
	Units, Bytes int
}

// CommitSize is a call's share of the limits.
type CommitSize struct{ Units, Bytes int }

// CommitQueue commits calls that arrive during a commit together in the next, as databases do with
// their log. It has no timer and no goroutine: a single call is committed at once.
//
// It holds the calls that wait for a commit. One caller at a time is the leader: it commits the
// queued calls, including its own, and then promotes the first that arrived meanwhile. It is safe
// for concurrent use.
type CommitQueue[T any] struct {
	limits CommitLimits
	commit func(ctx context.Context, calls []T) error

	mu sync.Mutex
	// waiting is in order of arrival. The leader's call is the first until its commit is taken.
	waiting []*queuedCall[T]
	bytes   int
	// leader is nil while the queue is idle.
	leader *queuedCall[T]
}

type queuedCall[T any] struct {
	item T
	size CommitSize
	// deadline is the caller's, zero if it has none.
	deadline time.Time
	// next receives the steps of the call, and none after a promotion. A call that leads at once
	// has no channel.
	next chan commitStep
	// err is why the call fails without a commit, if it does, from when next receives on.
	err error
}

// commitStep is a step of a waiting call. It has no pointer: a channel of pointers takes two
// allocations.
type commitStep int8

const (
	// done means that the call was committed, or failed.
	done commitStep = iota
	// promoted means that the call is the leader of the next commit.
	promoted
)

// NewCommitQueue makes a queue. Commit runs calls in order of arrival, and stores their results in
// them; it runs once at a time. If it returns an error, calls that have arrived meanwhile would
// fail as well, so they fail with it at once. Its context is the leader's, but does not end before
// the last deadline of all its callers.
func NewCommitQueue[T any](limits CommitLimits, commit func(ctx context.Context, calls []T) error) *CommitQueue[T] {
	return &CommitQueue[T]{limits: limits, commit: commit}
}

// Do returns nil once a call was committed. Otherwise it was not, and never will be: it fails with
// [ErrFull], with the context's cause if that is done while the call waits, or with the error of
// the commit before. If a commit panics, its other calls return as if they were committed.
func (q *CommitQueue[T]) Do(ctx context.Context, item T, size CommitSize) error {
	c := &queuedCall[T]{item: item, size: size}
	c.deadline, _ = ctx.Deadline()
	isLeader, err := q.join(c)
	if err == nil && !isLeader {
		isLeader, err = q.wait(ctx, c)
	}
	if err == nil && isLeader {
		q.lead(ctx, c)
	}
	return err
}

// Waiting is how many calls wait while another is committed: -1 if none is.
func (q *CommitQueue[T]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leader == nil {
		return -1
	}
	return len(q.waiting)
}

// join adds a call, and reports whether it is the leader.
func (q *CommitQueue[T]) join(c *queuedCall[T]) (isLeader bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= q.limits.Waiting || q.bytes >= q.limits.WaitingBytes {
		return false, ErrFull
	}
	q.waiting = append(q.waiting, c)
	q.bytes += c.size.Bytes
	if q.leader == nil {
		q.leader = c
		return true, nil
	}
	c.next = make(chan commitStep, 1)
	return false, nil
}

// wait returns when a call is committed, or promoted to leader.
func (q *CommitQueue[T]) wait(ctx context.Context, c *queuedCall[T]) (isLeader bool, err error) {
	var next commitStep
	select {
	case next = <-c.next:
	case <-ctx.Done():
		if q.leave(c) {
			return false, context.Cause(ctx)
		}
		next = <-c.next // it is in a commit that has begun
	}
	return next == promoted, c.err
}

// leave removes a call whose caller has gone, and reports true. It reports false if that is the
// leader, or is being committed.
func (q *CommitQueue[T]) leave(c *queuedCall[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i < 0 || c == q.leader {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.bytes -= c.size.Bytes
	return true
}

// lead commits the queued calls, and promotes the next leader.
func (q *CommitQueue[T]) lead(ctx context.Context, leader *queuedCall[T]) {
	// Let calls that are about to join do so. Under load this makes commits larger; without load it
	// costs nothing.
	runtime.Gosched()
	calls := q.take()
	var err error
	defer func() { // even if the commit panics, or calls would wait for ever
		q.promote(err)
		for _, c := range calls {
			if c != leader {
				c.next <- done
			}
		}
	}()
	ctx, cancel := contextOf(ctx, calls)
	defer cancel()
	items := make([]T, len(calls))
	for i, c := range calls {
		items[i] = c.item
	}
	err = q.commit(ctx, items)
}

// contextOf returns the context of a commit: the leader's, but it ends at the last deadline of all
// callers.
func contextOf[T any](leader context.Context, calls []*queuedCall[T]) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(leader)
	var last time.Time
	for _, c := range calls {
		if c.deadline.IsZero() {
			return ctx, func() {}
		}
		if c.deadline.After(last) {
			last = c.deadline
		}
	}
	return context.WithDeadline(ctx, last)
}

// take removes the calls of one commit from the queue, and returns them.
func (q *CommitQueue[T]) take() []*queuedCall[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, units, bytes := 0, 0, 0
	for _, c := range q.waiting {
		units += c.size.Units
		bytes += c.size.Bytes
		if n > 0 && (units > q.limits.Units || bytes > q.limits.Bytes) {
			bytes -= c.size.Bytes
			break
		}
		n++
	}
	taken, left := q.waiting[:n], q.waiting[n:]
	q.waiting = append(make([]*queuedCall[T], 0, len(q.waiting)), left...) // as many may come during this commit
	q.bytes -= bytes
	return taken
}

// promote makes the first call that waits the leader, if there is one. After an error, all that
// wait fail instead.
func (q *CommitQueue[T]) promote(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leader = nil
	if err != nil {
		for _, c := range q.waiting {
			c.err = err
			c.next <- done
		}
		q.waiting, q.bytes = nil, 0
	}
	if len(q.waiting) > 0 {
		q.leader = q.waiting[0]
		q.leader.next <- promoted
	}
}
