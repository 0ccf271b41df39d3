package stats

import (
	"cmp"
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
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

// Holder returns the token that holds a client's subscription: see [store.Store.Holder]. It fails
// with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Stats) Holder(ctx context.Context, token bus.Token) (holder bus.Token, err error) {
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

// Detail reads one subscriber, by whichever of its tokens while that is being changed. It fails
// with [bus.ErrNotSubscribed] or [bus.ErrUnavailable], or when a key is not of its type.
func (s *Stats) Detail(ctx context.Context, token bus.Token, now time.Time) (Detail, error) {
	token, err := s.store.Holder(ctx, token)
	if err != nil {
		return Detail{}, err
	}
	found, _, err := s.subscribers(ctx, []rdb.Member{{Name: string(token), Value: string(token)}})
	if err != nil {
		return Detail{}, err
	}
	if len(found) == 0 {
		return Detail{}, bus.ErrNotSubscribed
	}
	d := Detail{Subscriber: found[0]}
	if d.Options, err = s.store.Options(ctx, token); err != nil {
		return Detail{}, err
	}
	if d.DeadLetters, err = s.deadLetters(ctx, token); err != nil {
		return Detail{}, err
	}
	if d.Gap, err = s.gap(ctx, token); err != nil {
		return Detail{}, err
	}
	all, err := lanes.Read(ctx, s.redis, token)
	if err != nil {
		return Detail{}, err
	}
	d.Fence = all.Fence()
	if d.Options.Options.StrictOrder {
		if d.Blocked, err = s.readBlocked(ctx, token, all); err != nil {
			return Detail{}, err
		}
	}
	err = s.readWaits(ctx, &d, all, now)
	return d, err
}

func (s *Stats) gap(ctx context.Context, token bus.Token) (*Gap, error) {
	told, err := s.redis.HGetAll(ctx, s.keys.Gaps(token)).Result()
	if err != nil || len(told) == 0 {
		return nil, rdb.Wrap("read gap", err)
	}
	figure := func(name string) int64 { return rdb.Integer(told[name], 0) }
	return &Gap{
		Events: figure("events"), Batches: figure("batches"), Since: time.UnixMilli(figure("since")),
		Until: time.UnixMilli(figure("until")), Reason: bus.LossReason(told["reason"]),
	}, nil
}

func (s *Stats) deadLetters(ctx context.Context, token bus.Token) (found DeadLetters, err error) {
	oldest, err := s.redis.ZRangeWithScores(ctx, s.keys.DeadLetters(token), 0, 0).Result()
	if err != nil || len(oldest) == 0 {
		return found, rdb.Wrap("read dead letters", err)
	}
	found.OldestAt = time.UnixMilli(int64(oldest[0].Score))
	var letters rdb.Reply[int64]
	var events, bytes rdb.Reply[string]
	err = s.redis.Reads(ctx, "read dead letters", func(pipe rdb.Commands) {
		letters = pipe.ZCard(ctx, s.keys.DeadLetters(token))
		events = pipe.HGet(ctx, s.keys.DeadLetterEvents(), string(token))
		bytes = pipe.HGet(ctx, s.keys.DeadLetterBytes(), string(token))
	})
	found.Letters, found.Events, found.Bytes = letters.Val(), rdb.Integer(events.Val(), 0), rdb.Integer(bytes.Val(), 0)
	return found, err
}
