package ingest

import (
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// limits bound the queue of a group commit, and one commit. Its units are events.
var limits = rdb.CommitLimits{Waiting: 4096, WaitingBytes: 16 << 20, Units: 2000, Bytes: 1 << 20}

// maxGroupEvents bounds how long one script keeps Redis from serving others: its time is
// proportional to events times subscribers.
const maxGroupEvents = 100

// request is the publication of one call.
type request struct {
	publication store.Publication
	size        rdb.CommitSize
	// traceparent is of the request's span, empty if it is not traced.
	traceparent string
	// err is the result. Until the request is committed, and if the store panics, it is
	// [bus.ErrUnavailable].
	err error
}

func newRequest(p store.Publication) *request {
	r := &request{publication: p, size: rdb.CommitSize{Units: len(p.Events)}, err: bus.ErrUnavailable}
	for _, event := range p.Events {
		r.size.Bytes += len(event)
	}
	return r
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
