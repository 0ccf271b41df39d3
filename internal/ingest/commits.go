package ingest

import (
	"slices"
	"sync"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// What may wait at most, so that memory is bounded when Redis is slower than the publishers, and what one commit takes at
// most, so that it does not take long. One request is always taken, however large.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 16 << 20
	maxCommitEvents = 2000
	maxCommitBytes  = 1 << 20
	// maxGroupEvents bounds how long one script keeps Redis from serving others, whose time is proportional to
	// events times subscribers.
	maxGroupEvents = 100
)

// request is the publication of one call.
type request struct {
	publication store.Publication
	bytes       int
	// origin is the request's span, if it is traced.
	origin string
	// woken says that the call is to lead the next commit, or that it has been committed.
	woken chan struct{}
	leads bool
	err   error
}

func newRequest(p store.Publication) *request {
	r := &request{publication: p, woken: make(chan struct{}, 1)}
	for _, event := range p.Events {
		r.bytes += len(event)
	}
	return r
}

// commits is the queue of what is to be committed. One call at a time leads: it commits what is waiting, itself included, and
// then wakes the first of those who came meanwhile to lead the next. So there is no goroutine beside the calls', and a
// call that comes alone needs no other.
type commits struct {
	mu sync.Mutex
	// waiting is in order of arrival. It begins with the leader until that has taken its commit.
	waiting []*request
	bytes   int
	// led is whether some call leads.
	led bool
}

// join queues a request, and reports whether it leads. It fails with [bus.ErrOverloaded].
func (c *commits) join(r *request) (leads bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxWaiting || c.bytes >= maxWaitingBytes {
		return false, bus.ErrOverloaded
	}
	c.waiting = append(c.waiting, r)
	c.bytes += r.bytes
	r.leads, c.led = !c.led, true
	return r.leads, nil
}

// leave takes out a request whose caller has gone. It reports whether it still could: not when it leads, or is being
// committed.
func (c *commits) leave(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, r)
	if i < 0 || r.leads {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.bytes -= r.bytes
	return true
}

// take takes the requests of one commit from those waiting.
func (c *commits) take() []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, events, bytes := 0, 0, 0
	for _, r := range c.waiting {
		events += len(r.publication.Events)
		bytes += r.bytes
		if n > 0 && (events > maxCommitEvents || bytes > maxCommitBytes) {
			bytes -= r.bytes
			break
		}
		n++
	}
	taken := c.waiting[:n]
	c.waiting = slices.Clone(c.waiting[n:])
	c.bytes -= bytes
	return taken
}

// handOver wakes the next leader, if anybody waits.
func (c *commits) handOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.led = len(c.waiting) > 0; c.led {
		c.waiting[0].leads = true
		c.waiting[0].woken <- struct{}{}
	}
}

// grouped is requests that are stored by one script.
type grouped struct {
	publication store.Publication
	requests    []*request
}

// group joins requests of one publisher to one topic, as long as the topic's events stay in order of arrival. One
// with an idempotency key stays alone.
func group(requests []*request) []*grouped {
	var groups []*grouped
	last := map[bus.TopicName]*grouped{}
	for _, r := range requests {
		p := r.publication
		g := last[p.Topic]
		if g != nil && g.publication.Publisher == p.Publisher && g.publication.IdempotencyKey == nil && p.IdempotencyKey == nil &&
			len(g.publication.Events)+len(p.Events) <= maxGroupEvents {
			if len(g.requests) == 1 { // its events are the caller's
				g.publication.Events = slices.Clip(g.publication.Events)
			}
			g.publication.Events = append(g.publication.Events, p.Events...)
			g.requests = append(g.requests, r)
			continue
		}
		g = &grouped{p, []*request{r}}
		last[p.Topic] = g
		groups = append(groups, g)
	}
	return groups
}
