package inspect

import (
	"cmp"
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Detail is everything about one subscriber.
type Detail struct {
	// Subscriber is without OldestAt.
	bus.Subscriber
	Options     store.OptionsRecord
	DeadLetters DeadLetters
	// Holds has only times in the future; the others are zero.
	Holds Holds
	// NextDeliveryAt is when the next delivery can begin at the earliest, in the past if it can
	// now; zero if nothing is queued.
	NextDeliveryAt time.Time
	// Gap is the content of a gap notice that has not been tried with it yet; nil if there is none.
	Gap *Gap
	// Blocked is how many lanes a failed batch holds up; zero unless the order is strict.
	Blocked int
	// Replays is the number of replays; some of them may have expired.
	Replays int64
}

// Gap is events that a subscriber has lost.
type Gap struct {
	Events, Batches int64
	// Since and Until are when the first and the last of the batches were created.
	Since, Until time.Time
	// Reason is the reason of the last loss.
	Reason bus.LossReason
}

// DeadLetters is the amount of a subscriber's dead letters.
type DeadLetters struct {
	// Bytes is the size of the packed events.
	Letters, Events, Bytes int64
	// OldestAt is when the oldest one died; zero if there is none.
	OldestAt time.Time
}

// Holder returns the token that holds a client's subscription: see [store.Store.Holder]. It fails
// with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (in *Inspector) Holder(ctx context.Context, token bus.Token) (holder bus.Token, err error) {
	var heir, callback rdb.Reply[string]
	err = in.redis.Reads(ctx, "find subscriber", func(pipe rdb.Commands) {
		heir = pipe.HGet(ctx, in.keys.Rotations(), string(token))
		callback = pipe.HGet(ctx, in.keys.Subscriber(token), "callback")
	})
	if holder = token; err == nil && heir.Val() != "" {
		holder = bus.Token(heir.Val())
		callback = in.redis.HGet(ctx, in.keys.Subscriber(holder), "callback")
	}
	err = cmp.Or(err, rdb.Wrap("find subscriber", heir.Err()), rdb.Wrap("find subscriber", callback.Err()))
	if err == nil && callback.Val() == "" {
		err = bus.ErrNotSubscribed
	}
	return holder, err
}

// Detail reads the subscriber that a client's subscription belongs to, as [Inspector.Holder] finds
// it. It fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable], or when a key is not of its
// type.
func (in *Inspector) Detail(ctx context.Context, client bus.Token, now time.Time) (d Detail, err error) {
	r, err := in.readRecords(ctx, client)
	if err == nil && r.heir.Val() != "" {
		r, err = in.readRecords(ctx, bus.Token(r.heir.Val()))
	}
	if err = cmp.Or(err, r.err()); err != nil {
		return d, err
	}
	d = Detail{
		Subscriber: parseSubscriber(r.subscriber.Val(), r.sent.Val()), Options: store.ReadOptions(r.options.Val()),
		Holds: r.holds.after(now), Gap: readGap(r.gap.Val()),
	}
	d.Token, d.Queued, d.Replays = r.token, rdb.Integer(r.events.Val(), 0), r.replays.Val()
	if n := r.letters.Val(); n > 0 {
		d.DeadLetters = DeadLetters{Letters: n, Events: rdb.Integer(r.deadEvents.Val(), 0), Bytes: rdb.Integer(r.deadBytes.Val(), 0)}
	}
	for _, oldest := range r.oldest.Val() {
		d.DeadLetters.OldestAt = time.UnixMilli(int64(oldest.Score))
	}
	if d.Topics, err = in.topicNames(ctx, string(r.token), r.topics); err == nil {
		err = in.readQueue(ctx, &d, r, now)
	}
	return d, err
}

// records are the replies about a token from one round trip: the token that holds its subscription
// if that is another one, and its own data, except lanes other than the first.
type records struct {
	token                    bus.Token
	heir                     rdb.Reply[string]
	subscriber, options, gap rdb.Reply[map[string]string]
	topics                   rdb.PageReply
	letters, replays         rdb.Reply[int64]
	oldest                   rdb.ScoredReply
	deadEvents, deadBytes    rdb.Reply[string]
	sent, events, batches    rdb.Reply[string]
	standing                 laneReplies
	holds                    Holds
	lanes                    laneCounts
}

func (in *Inspector) readRecords(ctx context.Context, token bus.Token) (r records, err error) {
	var holds rdb.Reply[[]any]
	err = in.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		r = records{
			token:      token,
			heir:       pipe.HGet(ctx, in.keys.Rotations(), string(token)),
			subscriber: pipe.HGetAll(ctx, in.keys.Subscriber(token)),
			options:    pipe.HGetAll(ctx, in.keys.Options(token)),
			gap:        pipe.HGetAll(ctx, in.keys.Gaps(token)),
			topics:     rdb.Page(ctx, pipe, in.keys.SubscriberTopics(token), rdb.Set, 0),
			letters:    pipe.ZCard(ctx, in.keys.DeadLetters(token)),
			replays:    pipe.SCard(ctx, in.keys.Replays(token)),
			oldest:     pipe.ZRangeWithScores(ctx, in.keys.DeadLetters(token), 0, 0),
			deadEvents: pipe.HGet(ctx, in.keys.DeadLetterEvents(), string(token)),
			deadBytes:  pipe.HGet(ctx, in.keys.DeadLetterBytes(), string(token)),
			sent:       pipe.HGet(ctx, in.keys.Delivery(token), "events_sent"),
			events:     pipe.HGet(ctx, in.keys.EventGauge(), string(token)),
			batches:    pipe.HGet(ctx, in.keys.BatchGauge(), string(token)),
			standing:   in.askLanes(ctx, pipe, token, 1),
		}
		holds = pipe.HMGet(ctx, in.keys.Delivery(token), HoldFields...)
	})
	options := r.options.Val()
	r.holds, r.lanes = ParseHolds(holds.Val()), readLaneCounts([]any{options["lanes"], options["past_lanes"]})
	return r, err
}

// err returns the error that prevents the records from describing a subscriber.
func (r records) err() error {
	err := cmp.Or(rdb.Wrap("find subscriber", r.heir.Err()), rdb.Wrap("read subscriber", r.subscriber.Err()))
	if err == nil && r.subscriber.Val()["callback"] == "" {
		return bus.ErrNotSubscribed
	}
	return cmp.Or(err, rdb.Wrap("read topics", r.topics.Err()), rdb.Wrap("read gauges", r.events.Err()),
		rdb.Wrap("read options", r.options.Err()), rdb.Wrap("read gap", r.gap.Err()), rdb.Wrap("read dead letters", r.letters.Err()),
		rdb.Wrap("count replays", r.replays.Err()))
}

// readGap reads the hash of a gap notice's content; nil if it is empty.
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
