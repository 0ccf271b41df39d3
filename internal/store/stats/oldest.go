package stats

import (
	"context"
	"maps"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// What a search for the oldest batches asks of Redis in one round trip, and in all.
const (
	batchesPerTrip  = 500
	batchesSearched = 20_000
)

// oldestSearch finds when subscribers' oldest events were received: when their oldest batches were
// opened. It walks the index of all batches, oldest first, as far as it must. So that a long
// backlog of one subscriber does not make the list of all of them slow, it gives up after max
// batches; then the times it has not found are missing, and later than those it has.
type oldestSearch struct {
	stats *Stats
	max   int64
	// next is the place in the index that comes next.
	next int64
	done bool
	// found is when the oldest batch of each token was opened that has been come upon.
	found map[bus.Token]time.Time
	// known are the owners of batches that another search has met, met those of this one's.
	known, met Owners
}

// Owners are the subscribers of batches.
type Owners map[string]bus.Token

// FindOldest fills in when the oldest event of each backlog was received, as far as it is in the
// 2,000 oldest batches. It returns the owners of those that it has looked at, so that the next
// search need not ask for them again. It fails with [bus.ErrUnavailable], or when the index is not
// of its type.
func (s *Stats) FindOldest(ctx context.Context, backlogs []Backlog, known Owners) (Owners, error) {
	waiting, isOwner := make([]bus.Subscriber, len(backlogs)), make(map[bus.Token]bool, len(backlogs))
	for i, b := range backlogs {
		waiting[i], isOwner[b.Token] = bus.Subscriber{Token: b.Token, Queued: b.Events}, true
	}
	// One that is no longer here has got another token, and its batches with it.
	maps.DeleteFunc(known, func(_ string, owner bus.Token) bool { return !isOwner[owner] })
	search := &oldestSearch{stats: s, max: snapshotSearches, known: known, met: make(Owners, len(known))}
	err := search.fill(ctx, waiting)
	for i := range backlogs {
		backlogs[i].OldestAt = waiting[i].OldestAt
	}
	return search.met, err
}

// fill fills in when the oldest event of each of these was received.
func (o *oldestSearch) fill(ctx context.Context, subscribers []bus.Subscriber) error {
	if o.found == nil {
		o.found = make(map[bus.Token]time.Time, len(subscribers))
	}
	missing := make(map[bus.Token]bool, len(subscribers))
	for i := range subscribers {
		if _, known := o.found[subscribers[i].Token]; !known && subscribers[i].Queued > 0 {
			missing[subscribers[i].Token] = true
		}
	}
	for len(missing) > 0 && !o.done {
		if err := o.walk(ctx, missing); err != nil {
			return err
		}
	}
	for i := range subscribers {
		if sub := &subscribers[i]; sub.Queued > 0 {
			sub.OldestAt = o.found[sub.Token]
		}
	}
	return nil
}

// walk looks at the next batches, and takes those whose batches it finds out of missing.
func (o *oldestSearch) walk(ctx context.Context, missing map[bus.Token]bool) error {
	s := o.stats
	batches, err := s.redis.ZRangeWithScores(ctx, s.keys.BatchesIndex(), o.next, o.next+batchesPerTrip-1).Result()
	if err != nil {
		return rdb.Wrap("list batches", err)
	}
	o.next += batchesPerTrip
	o.done = len(batches) == 0 || o.next >= o.max
	owners := make([]rdb.Reply[string], len(batches))
	err = s.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		for i, batch := range batches {
			if bid := batch.Member.(string); o.known[bid] == "" {
				owners[i] = pipe.LIndex(ctx, s.keys.Batch(bus.BatchID(bid)), 0)
			}
		}
	})
	if err != nil {
		return err
	}
	for i, batch := range batches {
		bid := batch.Member.(string)
		token := o.known[bid]
		if owners[i] != nil {
			token = bus.Token(owners[i].Val()) // empty if it has been delivered meanwhile
		}
		if o.met != nil && token != "" {
			o.met[bid] = token
		}
		if _, known := o.found[token]; !known {
			o.found[token] = time.UnixMilli(int64(batch.Score))
			delete(missing, token)
		}
	}
	return nil
}
