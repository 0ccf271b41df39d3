package stats

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/byname"
	"routemaster/internal/store"
	"routemaster/internal/store/lanes"
)

// Detail is what there is to know of one subscriber.
type Detail struct {
	// Subscriber is without OldestAt.
	bus.Subscriber
	Options     store.OptionsRecord
	DeadLetters DeadLetters
	// Holds has the times to come only; the others are zero.
	Holds Holds
	// NextDeliveryAt is when the next delivery can begin at the earliest, in the past if it can
	// now; zero if nothing is queued.
	NextDeliveryAt time.Time
	// Gap is what a gap notice tells that has not been tried with it yet; nil if there is none.
	Gap *Gap
	// Fence is how many batches have to be delivered before those that were opened since the lanes
	// were changed.
	Fence int64
	// Blocked is how many lanes a failed batch holds up; zero unless the order is strict.
	Blocked int
}

// Gap is events that a subscriber has lost.
type Gap struct {
	Events, Batches int64
	// Since and Until are when the first and the last of the batches were created.
	Since, Until time.Time
	// Reason is that of the last loss.
	Reason bus.LossReason
}

// DeadLetters is how much there is of a subscriber's dead letters.
type DeadLetters struct {
	// Bytes are those of the packed events.
	Letters, Events, Bytes int64
	// OldestAt is when the oldest one died; zero if there is none.
	OldestAt time.Time
}

// foundHolders is the key of the holders that were found in a context, by token.
type foundHolders struct{}

// WithFoundHolders returns a context in which [Stats.Holder] finds each holder once: for reads that
// make up one page.
func WithFoundHolders(ctx context.Context) context.Context {
	return context.WithValue(ctx, foundHolders{}, &sync.Map{})
}

// Holder returns the token that holds a client's subscription: see [store.Store.Holder]. It fails
// with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Stats) Holder(ctx context.Context, token bus.Token) (bus.Token, error) {
	found, _ := ctx.Value(foundHolders{}).(*sync.Map)
	if found == nil {
		return s.findHolder(ctx, token)
	}
	if known, ok := found.Load(token); ok {
		return known.(bus.Token), nil
	}
	holder, err := s.findHolder(ctx, token)
	if err == nil {
		found.Store(token, holder)
	}
	return holder, err
}

func (s *Stats) findHolder(ctx context.Context, token bus.Token) (holder bus.Token, err error) {
	var heir, callback rdb.Reply[string]
	err = s.redis.Reads(ctx, "find subscriber", func(pipe rdb.Commands) {
		heir = pipe.HGet(ctx, s.keys.Rotations(), string(token))
		callback = pipe.HGet(ctx, s.keys.Subscriber(token), "callback")
	})
	if holder = token; err == nil && heir.Val() != "" {
		holder = bus.Token(heir.Val())
		callback = s.redis.HGet(ctx, s.keys.Subscriber(holder), "callback")
	}
	err = cmp.Or(err, rdb.Wrap("find subscriber", heir.Err()), rdb.Wrap("find subscriber", callback.Err()))
	if err == nil && callback.Val() == "" {
		err = bus.ErrNotSubscribed
	}
	return holder, err
}

// Detail reads one subscriber, by the token that [Stats.Holder] has found. It fails with
// [bus.ErrNotSubscribed] or [bus.ErrUnavailable], or when a key is not of its type.
func (s *Stats) Detail(ctx context.Context, holder bus.Token, now time.Time) (Detail, error) {
	name := string(publicToken(holder, "")) // it may be logged
	found, damaged, err := s.subscribers(ctx, []byname.Member{{Name: name, Value: string(holder)}})
	switch {
	case err != nil:
		return Detail{}, err
	case len(damaged) > 0:
		return Detail{}, fmt.Errorf("read subscriber: not of its type: %s", strings.Join(damaged, ", "))
	case len(found) == 0:
		return Detail{}, bus.ErrNotSubscribed
	}
	d := Detail{Subscriber: found[0]}
	r, err := s.readRecords(ctx, &d)
	if err != nil {
		return Detail{}, err
	}
	d.Fence = r.lanes.Fence()
	if d.Options.Options.StrictOrder {
		if d.Blocked, err = s.readBlocked(ctx, holder, r.lanes); err != nil {
			return Detail{}, err
		}
	}
	d.Holds = r.holds.after(now)
	d.NextDeliveryAt, err = s.nextDelivery(ctx, holder, r, now)
	return d, err
}

// records are what there is of a subscriber's queue besides its batches: how many there are, by the
// gauge, what holds them up, and its lanes.
type records struct {
	batches int64
	holds   Holds
	lanes   lanes.Generations
}

// readRecords reads the options of a subscriber, its gap, how much there is of its dead letters,
// and the records of its queue.
func (s *Stats) readRecords(ctx context.Context, d *Detail) (r records, err error) {
	var options, gap rdb.Reply[map[string]string]
	var letters rdb.Reply[int64]
	var events, bytes, batches rdb.Reply[string]
	var state rdb.Reply[[]any]
	err = s.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		options = pipe.HGetAll(ctx, s.keys.Options(d.Token))
		gap = pipe.HGetAll(ctx, s.keys.Gaps(d.Token))
		letters = pipe.ZCard(ctx, s.keys.DeadLetters(d.Token))
		events = pipe.HGet(ctx, s.keys.DeadLetterEvents(), string(d.Token))
		bytes = pipe.HGet(ctx, s.keys.DeadLetterBytes(), string(d.Token))
		batches = pipe.HGet(ctx, s.keys.BatchGauge(), string(d.Token))
		state = pipe.HMGet(ctx, s.keys.Delivery(d.Token), HoldFields...)
	})
	err = cmp.Or(err, rdb.Wrap("read options", options.Err()), rdb.Wrap("read gap", gap.Err()),
		rdb.Wrap("read dead letters", letters.Err()))
	if err != nil {
		return r, err
	}
	d.Options, d.Gap = store.ReadOptions(options.Val()), readGap(gap.Val())
	if letters.Val() > 0 {
		d.DeadLetters = DeadLetters{Letters: letters.Val(), Events: rdb.Integer(events.Val(), 0), Bytes: rdb.Integer(bytes.Val(), 0)}
		d.DeadLetters.OldestAt, err = s.oldestLetter(ctx, d.Token)
	}
	return records{rdb.Integer(batches.Val(), 0), ParseHolds(state.Val()), lanes.Of(options.Val())}, err
}

// oldestLetter returns when the oldest dead letter died, zero if there is none.
func (s *Stats) oldestLetter(ctx context.Context, token bus.Token) (at time.Time, err error) {
	oldest, err := s.redis.ZRangeWithScores(ctx, s.keys.DeadLetters(token), 0, 0).Result()
	if len(oldest) > 0 {
		at = time.UnixMilli(int64(oldest[0].Score))
	}
	return at, rdb.Wrap("read dead letters", err)
}

// readGap reads the hash of what a gap notice tells; nil if it is empty.
func readGap(told map[string]string) *Gap {
	if len(told) == 0 {
		return nil
	}
	figure := func(name string) int64 { return rdb.Integer(told[name], 0) }
	return &Gap{
		Events: figure("events"), Batches: figure("batches"), Since: time.UnixMilli(figure("since")),
		Until: time.UnixMilli(figure("until")), Reason: bus.LossReason(told["reason"]),
	}
}
