package ingest

import (
	"context"
	"slices"
	"sync"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// Bounds of the queue, so that memory is bounded when Redis is slower than the publishers, and of
// one group commit, so that it is short. A single request is always accepted, however large it is.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 16 << 20
	maxCommitEvents = 2000
	maxCommitBytes  = 1 << 20
	// maxGroupEvents bounds how long one script keeps Redis from serving others: its time is
	// proportional to events times subscribers.
	maxGroupEvents = 100
)

// request is the publication of one call.
type request struct {
	publication store.Publication
	bytes       int
	// traceparent is of the request's span, empty if it is not traced.
	traceparent string
	// ready receives the waiting call's next step, and nothing more after a promotion. A call that
	// becomes the leader at once receives nothing.
	ready chan signal
	// err is the result, once the request is committed.
	err error
}

// signal is the next step of a waiting call.
type signal int

const (
	// promoted means that the call is the leader of the next group commit.
	promoted signal = iota + 1
	// committed means that the request has its result.
	committed
)

func newRequest(p store.Publication) *request {
	r := &request{publication: p, ready: make(chan signal, 1)}
	for _, event := range p.Events {
		r.bytes += len(event)
	}
	return r
}

// queue holds the requests that wait for a group commit. One call at a time is the leader: it
// commits the queued requests, its own included, and then promotes the first call that arrived
// meanwhile. So no goroutine is needed besides the calls', and a single call waits for no other.
type queue struct {
	mu sync.Mutex
	// waiting is in order of arrival. The leader's request is the first until its group is taken.
	waiting []*request
	bytes   int
	// leader is the request of the leader; nil while nothing is published.
	leader *request
}

// join adds a request, and reports whether its call is the leader. It fails with
// [bus.ErrOverloaded].
func (q *queue) join(r *request) (isLeader bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxWaiting || q.bytes >= maxWaitingBytes {
		return false, bus.ErrOverloaded
	}
	q.waiting = append(q.waiting, r)
	q.bytes += r.bytes
	if q.leader != nil {
		return false, nil
	}
	q.leader = r
	return true, nil
}

// wait returns when a request is committed, or its call is promoted to leader. If the context
// is done while the request is queued, the request is removed and wait fails with the context's
// cause.
func (q *queue) wait(ctx context.Context, r *request) (isLeader bool, err error) {
	select {
	case next := <-r.ready:
		return next == promoted, nil
	case <-ctx.Done():
		if q.leave(r) {
			return false, context.Cause(ctx)
		}
		return <-r.ready == promoted, nil // it is in a commit that has begun
	}
}

// leave removes a request whose caller has gone, and reports true. It reports false if the call is
// the leader, or the request is being committed.
func (q *queue) leave(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 || r == q.leader {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.bytes -= r.bytes
	return true
}

// take removes the requests of one group commit from the queue, and returns them.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, events, bytes := 0, 0, 0
	for _, r := range q.waiting {
		events += len(r.publication.Events)
		bytes += r.bytes
		if n > 0 && (events > maxCommitEvents || bytes > maxCommitBytes) {
			bytes -= r.bytes
			break
		}
		n++
	}
	taken := q.waiting[:n]
	q.waiting = slices.Clone(q.waiting[n:])
	q.bytes -= bytes
	return taken
}

// promote makes the first call that waits the leader, if there is one.
func (q *queue) promote() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leader = nil
	if len(q.waiting) > 0 {
		q.leader = q.waiting[0]
		q.leader.ready <- promoted
	}
}

// group is requests that one script stores.
type group struct {
	publication store.Publication
	requests    []*request
	// receipt is their result. Until they are stored, and if the store panics, its error is
	// [bus.ErrUnavailable].
	receipt store.Receipt
}

func newGroup(p store.Publication, requests []*request) *group {
	return &group{p, requests, store.Receipt{Err: bus.ErrUnavailable}}
}

// groupRequests joins requests of one publisher to one topic, as long as the topic's events
// stay in order of arrival. A request with an idempotency key is a group of its own.
func groupRequests(requests []*request) []*group {
	var groups []*group
	last := map[bus.TopicName]*group{}
	for _, r := range requests {
		p := r.publication
		if g := last[p.Topic]; g != nil && g.accepts(p) {
			if len(g.requests) == 1 { // its events are the caller's
				g.publication.Events = slices.Clip(g.publication.Events)
			}
			g.publication.Events = append(g.publication.Events, p.Events...)
			g.requests = append(g.requests, r)
			continue
		}
		g := newGroup(p, []*request{r})
		last[p.Topic] = g
		groups = append(groups, g)
	}
	return groups
}

// accepts reports whether a publication to the same topic may join the group.
func (g *group) accepts(p store.Publication) bool {
	return g.publication.Publisher == p.Publisher &&
		g.publication.IdempotencyKey == nil && p.IdempotencyKey == nil &&
		len(g.publication.Events)+len(p.Events) <= maxGroupEvents
}
