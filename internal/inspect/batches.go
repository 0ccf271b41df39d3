package inspect

import (
	"context"
	"encoding/json"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// State is the state of a queued batch.
type State string

// The states of a batch.
const (
	// Current is a batch that still takes in events.
	Current State = "current"
	// Waiting is one that was not tried yet and waits for its time or its turn.
	Waiting State = "waiting"
	// Delivering is one in flight.
	Delivering State = "delivering"
	// Retrying is one that was tried and is to be tried again.
	Retrying State = "retrying"
)

// Batch is a queued batch, without its events.
type Batch struct {
	ID        bus.BatchID
	CreatedAt time.Time
	// Attempts counts the deliveries begun; Events counts the events still to be acknowledged.
	Attempts, Events int
	State            State
	// NextAt is when the next delivery may begin, as far as known: zero while the batch is in flight,
	// waits for others to be delivered before it, or is paused without an end.
	NextAt time.Time
	// Lane is the lane of its subscriber that it is in, from 0 on. There may be fewer by now.
	Lane int
	// Replay is the replay that the batch belongs to, or empty.
	Replay bus.ReplayID
}

// How much of the index of all batches one call looks at, and one round trip of it. Redis takes
// less than a millisecond for a trip.
const (
	batchesSearched = 20_000
	batchesPerTrip  = 500
)

// Batches returns queued batches of a subscriber, oldest first, and the value of After for the next
// page, empty if there is none. If the subscriber's own queue does not show all of them, it looks
// among the 20,000 oldest of the whole bus. It fails with a [bus.Invalid] if After is malformed, or
// with [bus.ErrUnavailable].
func (in *Inspector) Batches(
	ctx context.Context, token bus.Token, p Page, now time.Time,
) (some []Batch, next string, err error) {
	after, err := parsePlace(p.After)
	if err != nil {
		return nil, "", err
	}
	var queue queueReplies
	var own ownReplies
	err = in.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		queue, own = in.askQueue(ctx, pipe, token), in.askOwn(ctx, pipe, token)
	})
	if err != nil {
		return nil, "", err
	}
	found, isAll, err := in.own(ctx, token, own, queue.options)
	if err == nil && !isAll {
		found, err = in.search(ctx, token, after, p.Limit+1)
	}
	if err != nil {
		return nil, "", rdb.Wrap("list batches", err)
	}
	found = behind(after, found)
	isEnd := isAll || len(found) <= p.Limit
	// Some may be gone, or have another token while theirs is rotated: then others fill the page.
	for len(found) > 0 && len(some) < p.Limit {
		chunk := found[:min(p.Limit-len(some), len(found))]
		ids := make([]bus.BatchID, len(chunk))
		for at, batch := range chunk {
			ids[at] = bus.BatchID(batch.Member)
		}
		looked, err := in.look(ctx, token, queue, ids, now)
		if err != nil {
			return nil, "", err
		}
		some, found, next = append(some, looked...), found[len(chunk):], chunk[len(chunk)-1].Place()
	}
	if len(found) == 0 && isEnd {
		next = ""
	}
	return some, next, nil
}

// search finds a subscriber's batches in the index of all: at most limit of them, behind a place.
// Entries that come or go meanwhile neither repeat nor hide others, since each trip begins where
// the one before ended.
func (in *Inspector) search(ctx context.Context, token bus.Token, after rdb.Scored, limit int) (found []rdb.Scored, err error) {
	index := in.keys.BatchesIndex()
	before, err := in.redis.ZCount(ctx, index, "-inf", "("+rdb.FormatScore(after.Score)).Result()
	if err != nil {
		return nil, err
	}
	for offset := int64(0); before < batchesSearched; {
		trip, err := in.redis.MembersFrom(ctx, index, after.Score, offset, batchesPerTrip)
		if err != nil {
			return nil, err
		}
		unseen := behind(after, trip)
		if len(unseen) == 0 { // more batches of one millisecond than fit in a trip
			offset += batchesPerTrip
		} else {
			after, offset = unseen[len(unseen)-1], 0
		}
		before += int64(len(unseen))
		own, err := in.ownedBy(ctx, token, unseen)
		if err != nil {
			return nil, err
		}
		if found = append(found, own...); len(found) >= limit {
			return found[:limit], nil
		}
		if len(trip) < batchesPerTrip {
			break
		}
	}
	return found, nil
}

// ownedBy returns the batches that belong to a subscriber.
func (in *Inspector) ownedBy(ctx context.Context, token bus.Token, batches []rdb.Scored) (own []rdb.Scored, err error) {
	owners := make([]rdb.Reply[string], len(batches))
	err = in.redis.Reads(ctx, "list batches", func(pipe rdb.Commands) {
		for at, batch := range batches {
			owners[at] = pipe.LIndex(ctx, in.keys.Batch(bus.BatchID(batch.Member)), 0)
		}
	})
	if err != nil {
		return nil, err
	}
	for at, batch := range batches {
		if bus.Token(owners[at].Val()) == token {
			own = append(own, batch)
		}
	}
	return own, nil
}

// EventsPerPage is how many events [Inspector.Batch] returns at most.
const EventsPerPage = 1000

// Batch returns a queued batch of a subscriber and, from an index on, its events as
// [wire.ShowFirst] shows them, at most [EventsPerPage]. It fails with [ErrUnknownBatch] or
// [bus.ErrUnavailable].
func (in *Inspector) Batch(
	ctx context.Context, token bus.Token, id bus.BatchID, from int, now time.Time,
) (Batch, []json.RawMessage, error) {
	first := int64(store.BatchHeader + max(from, 0))
	var events rdb.Reply[[]string]
	var queue queueReplies
	err := in.redis.Reads(ctx, "show batch", func(pipe rdb.Commands) {
		events = pipe.LRange(ctx, in.keys.Batch(id), first, first+EventsPerPage-1)
		queue = in.askQueue(ctx, pipe, token)
	})
	if err != nil {
		return Batch{}, nil, err
	}
	found, err := in.look(ctx, token, queue, []bus.BatchID{id}, now)
	if err != nil {
		return Batch{}, nil, err
	}
	if len(found) == 0 {
		return Batch{}, nil, ErrUnknownBatch
	}
	return found[0], wire.ShowFirst(events.Val()), nil
}

// Removed is the result of removing a batch.
type Removed struct {
	// Events is how many events it had.
	Events int
	// Letter is whether they are a dead letter now.
	Letter bool
	// Lost is how many of the events are lost: none of a dead letter, of a test event, or of a gap
	// notice.
	Lost int
}

// Remove removes a queued batch of a subscriber. Its events become a dead letter if the subscriber
// keeps dead letters, else they are lost. It fails with [ErrUnknownBatch], [ErrInFlight] or
// [bus.ErrUnavailable].
func (in *Inspector) Remove(ctx context.Context, token bus.Token, id bus.BatchID, now time.Time) (Removed, error) {
	change := in.redis.Change(ctx, scriptBatchRemove, string(token), string(id), now.UnixMilli(), bus.NewBatchSeed())
	switch {
	case change.Err != nil:
		return Removed{}, rdb.Wrap("remove batch", change.Err)
	case change.Changed:
		events, _ := change.Results[0].(int64)
		lost, _ := change.Results[2].(int64)
		return Removed{int(events), change.Results[1] == int64(1), int(lost)}, nil
	case change.Text(0) == "in flight":
		return Removed{}, ErrInFlight
	}
	return Removed{}, ErrUnknownBatch
}

// parsePlace reads the place of a batch in the index of all; an empty text is the beginning.
func parsePlace(text string) (rdb.Scored, error) {
	if text == "" {
		return rdb.Scored{}, nil
	}
	return rdb.ParsePlace(text)
}

// behind returns the entries, which are in order, that come after a place.
func behind(place rdb.Scored, entries []rdb.Scored) []rdb.Scored {
	for at, entry := range entries {
		if entry.Compare(place) > 0 {
			return entries[at:]
		}
	}
	return nil
}
