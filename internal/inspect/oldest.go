package inspect

import (
	"context"
	"maps"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// oldestSearch finds when subscribers' oldest events were received: when their oldest batches were
// opened. It walks the index of all batches, oldest first, as far as it must. So that a long
// backlog of one subscriber does not make the list of all of them slow, it gives up after max
// batches; then the times it has not found are missing, and later than those it has.
type oldestSearch struct {
	stats *Inspector
	max   int64
	// next is the place in the index that comes next.
	next int64
	done bool
	// found is when the oldest batch found so far of each token was opened. It is zero for missing
	// tokens; missing is their number.
	found   map[bus.Token]time.Time
	missing int
	// known are batches that were met, also in other searches.
	known Batches
}

// Batches maps batches to their subscribers and to when they were opened.
type Batches map[string]batch

type batch struct {
	token    bus.Token
	openedAt time.Time
}

// FindOldest fills in when the oldest event of each backlog was received, as far as it is in the
// 2,000 oldest batches. It does not read batches in known, and adds the batches it reads. It fails
// with [bus.ErrUnavailable], or when the index is not of its type.
func (in *Inspector) FindOldest(ctx context.Context, backlogs []Backlog, known Batches) error {
	search := &oldestSearch{stats: in, max: snapshotSearches, known: known}
	return search.find(ctx, len(backlogs), func(i int) (bus.Token, int64, *time.Time) {
		return backlogs[i].Token, backlogs[i].Events, &backlogs[i].OldestAt
	})
}

// fill fills in when the oldest event of each of these was received.
func (o *oldestSearch) fill(ctx context.Context, subscribers []bus.Subscriber) error {
	return o.find(ctx, len(subscribers), func(i int) (bus.Token, int64, *time.Time) {
		return subscribers[i].Token, subscribers[i].Queued, &subscribers[i].OldestAt
	})
}

// find fills in when the oldest event was received of n subscribers: each returns the token of one,
// how many of its events wait, and where the time goes.
func (o *oldestSearch) find(ctx context.Context, n int, each func(i int) (bus.Token, int64, *time.Time)) error {
	if o.found == nil {
		o.found = make(map[bus.Token]time.Time, n)
	}
	o.missing = 0
	for i := range n {
		if token, queued, _ := each(i); queued > 0 && o.found[token].IsZero() {
			o.found[token] = time.Time{}
			o.missing++
		}
	}
	maps.DeleteFunc(o.known, func(_ string, b batch) bool {
		_, isHere := o.found[b.token] // else its batches have got another one
		return !isHere || len(o.known) > 2*snapshotSearches
	})
	for o.missing > 0 && !o.done {
		if err := o.walk(ctx); err != nil {
			return err
		}
	}
	for i := range n {
		if token, queued, oldest := each(i); queued > 0 {
			*oldest = o.found[token]
		}
	}
	return nil
}

// walk looks at the next batches. It does not ask for their scores, which cost Redis more than all
// else of the reply: a batch says itself when it was opened.
func (o *oldestSearch) walk(ctx context.Context) error {
	s := o.stats
	ids, err := s.redis.ZRange(ctx, s.keys.BatchesIndex(), o.next, o.next+batchesPerTrip-1).Result()
	if err != nil {
		return rdb.Wrap("list batches", err)
	}
	o.next += batchesPerTrip
	o.done = len(ids) == 0 || o.next >= o.max
	headers := make([]rdb.Reply[[]string], len(ids))
	err = s.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		for i, id := range ids {
			if _, isKnown := o.known[id]; !isKnown {
				headers[i] = pipe.LRange(ctx, s.keys.Batch(bus.BatchID(id)), 0, 1)
			}
		}
	})
	if err != nil {
		return err
	}
	for i, id := range ids {
		b := o.known[id]
		if headers[i] != nil {
			header := headers[i].Val()
			if len(header) < 2 || rdb.Integer(header[1], 0) <= 0 { // it is gone, or damaged
				continue
			}
			b = batch{bus.Token(header[0]), time.UnixMilli(rdb.Integer(header[1], 0))}
			if o.known != nil {
				o.known[id] = b
			}
		}
		if at, isHere := o.found[b.token]; at.IsZero() {
			o.found[b.token] = b.openedAt
			if isHere {
				o.missing--
			}
		}
	}
	return nil
}
