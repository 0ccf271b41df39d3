package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Subscribe makes a client a subscriber of exactly the given topics, in one atomic step. Topics
// that do not exist are created, without a publisher. It fails with [bus.ErrTokenUnknown] or
// [bus.ErrUnavailable].
func (s *Store) Subscribe(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	var fields []any
	if sub.UUID != nil {
		fields = append(fields, "uuid", *sub.UUID)
	}
	if sub.Timeout != nil {
		fields = append(fields, "timeout", sub.Timeout.Milliseconds())
	}
	if sub.MaxEvents != nil {
		fields = append(fields, "max_events", *sub.MaxEvents)
	}
	args := []any{
		string(token), sub.Callback,
		bus.DefaultMaxEvents, bus.DefaultTimeout.Milliseconds(), now.UnixMilli(), len(fields) / 2,
	}
	args = append(args, fields...)
	for _, name := range sub.Topics {
		args = append(args, string(name))
	}
	stored, err := s.change(ctx, call{scriptSubscriberPut, args}).Int()
	switch {
	case err != nil:
		return wrap("subscribe", err)
	case stored == 0:
		return bus.ErrTokenUnknown
	}
	return nil
}

// Unsubscribe ends one subscription. It fails with [bus.ErrTopicUnknown], [bus.ErrNotSubscribed]
// or [bus.ErrUnavailable].
func (s *Store) Unsubscribe(ctx context.Context, token bus.Token, name bus.TopicName) error {
	ended, err := s.change(ctx, call{scriptSubscriberUnsubscribe, []any{string(token), string(name)}}).Int()
	switch {
	case err != nil:
		return wrap("unsubscribe", err)
	case ended < 0:
		return bus.ErrTopicUnknown
	case ended == 0:
		return bus.ErrNotSubscribed
	}
	return nil
}

// DeleteSubscriber removes a subscriber and its subscriptions. Its batches are dropped as they
// come up. It fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Store) DeleteSubscriber(ctx context.Context, token bus.Token) error {
	deleted, err := s.change(ctx, call{scriptSubscriberDelete, []any{string(token)}}).Int()
	switch {
	case err != nil:
		return wrap("delete subscriber", err)
	case deleted == 0:
		return bus.ErrNotSubscribed
	}
	return nil
}

// subscribersPerTrip bounds what one round trip asks of Redis.
const subscribersPerTrip = 200

// Subscribers lists all subscribers, ordered by token. Those with a key that is not of its type, because something else has written
// to it, are left out. Damaged are these keys; they show clients by name, never a token.
func (s *Store) Subscribers(ctx context.Context) (subscribers []bus.Subscriber, damaged []string, err error) {
	tokens, err := s.redis.SMembers(ctx, s.keys.subscribers()).Result()
	if err != nil {
		return nil, nil, wrap("list subscribers", err)
	}
	slices.Sort(tokens)
	subscribers = make([]bus.Subscriber, 0, len(tokens))
	for some := range slices.Chunk(tokens, subscribersPerTrip) {
		found, unreadable, err := s.subscribers(ctx, some)
		if err != nil {
			return nil, nil, err
		}
		subscribers, damaged = append(subscribers, found...), append(damaged, unreadable...)
	}
	return subscribers, damaged, s.findOldest(ctx, subscribers, batchesSearched)
}

// What a search for the oldest batches asks of Redis in one round trip, and in all.
const (
	batchesPerTrip  = 500
	batchesSearched = 20_000
)

// findOldest fills in when each subscriber's oldest event was received: when its oldest batch was opened. It walks
// the index of all batches, oldest first, until it has found everybody's. So that a long backlog of one
// subscriber does not make the list of all of them slow, it gives up after most batches; then
// the times it has not found are missing, and later than those it has.
func (s *Store) findOldest(ctx context.Context, subscribers []bus.Subscriber, most int64) error {
	missing := map[bus.Token]*bus.Subscriber{}
	for i := range subscribers {
		if subscribers[i].Queued > 0 {
			missing[subscribers[i].Token] = &subscribers[i]
		}
	}
	for start := int64(0); len(missing) > 0 && start < most; start += batchesPerTrip {
		batches, err := s.redis.ZRangeWithScores(ctx, s.keys.batchesIndex(), start, start+batchesPerTrip-1).Result()
		if err != nil || len(batches) == 0 {
			return wrap("list batches", err)
		}
		owners := make([]*redis.StringCmd, len(batches))
		err = s.pipelinedReads(ctx, "list batches", func(pipe redis.Pipeliner) {
			for i, batch := range batches {
				owners[i] = pipe.LIndex(ctx, s.keys.batch(bus.BatchID(batch.Member.(string))), 0)
			}
		})
		if err != nil {
			return err
		}
		for i, batch := range batches {
			token := bus.Token(owners[i].Val()) // empty if it has been delivered meanwhile
			if sub := missing[token]; sub != nil {
				sub.OldestAt = time.UnixMilli(int64(batch.Score))
				delete(missing, token)
			}
		}
	}
	return nil
}

// subscribers reads the subscribers of some tokens. One deleted in the meantime is left out.
func (s *Store) subscribers(ctx context.Context, tokens []string) (found []bus.Subscriber, damaged []string, err error) {
	hashes := make([]*redis.MapStringStringCmd, len(tokens))
	topics := make([]*redis.StringSliceCmd, len(tokens))
	var queued, names *redis.SliceCmd
	err = s.pipelinedReads(ctx, "list subscribers", func(pipe redis.Pipeliner) {
		for i, token := range tokens {
			hashes[i] = pipe.HGetAll(ctx, s.keys.subscriber(bus.Token(token)))
			topics[i] = pipe.SMembers(ctx, s.keys.subscriberTopics(bus.Token(token)))
		}
		queued, names = pipe.HMGet(ctx, s.keys.eventGauge(), tokens...), pipe.HMGet(ctx, s.keys.tokens(), tokens...)
	})
	if err == nil { // these are everybody's
		err = wrap("list subscribers", errors.Join(queued.Err(), names.Err()))
	}
	if err != nil {
		return nil, nil, err
	}
	for i, token := range tokens {
		name := publicToken(bus.Token(token), text(names.Val()[i]))
		if hashes[i].Err() != nil {
			damaged = append(damaged, keys{}.subscriber(name))
		}
		if topics[i].Err() != nil {
			damaged = append(damaged, keys{}.subscriberTopics(name))
		}
		if hashes[i].Err() != nil || topics[i].Err() != nil || len(hashes[i].Val()) == 0 {
			continue
		}
		sub := parseSubscriber(hashes[i].Val())
		sub.Token = bus.Token(token)
		for _, name := range topics[i].Val() {
			sub.Topics = append(sub.Topics, bus.TopicName(name))
		}
		slices.Sort(sub.Topics)
		sub.Queued = integer(text(queued.Val()[i]), 0)
		found = append(found, sub)
	}
	return found, damaged, nil
}

// publicToken stands for a token where a key is shown: it is the client's name.
func publicToken(token bus.Token, name string) bus.Token {
	return bus.Token(bus.PublicName(token, bus.ClientName(name)))
}

func parseSubscriber(hash map[string]string) bus.Subscriber {
	sub := bus.Subscriber{
		Callback:  hash["callback"],
		UUID:      hash["uuid"],
		Timeout:   time.Duration(integer(hash["timeout"], bus.DefaultTimeout.Milliseconds())) * time.Millisecond,
		MaxEvents: int(integer(hash["max_events"], bus.DefaultMaxEvents)),
		Health:    int(integer(hash["health_points"], bus.MaxHealth)),
		Sent:      integer(hash["events_sent"], 0),
	}
	if ms := integer(hash["last_attempted_at"], 0); ms != 0 {
		sub.LastAttemptedAt = time.UnixMilli(ms)
	}
	return sub
}

// integer reads a stored integer; one that is not there, or is none, is otherwise.
func integer(text string, otherwise int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}
