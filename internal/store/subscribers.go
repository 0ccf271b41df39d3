package store

import (
	"context"
	"errors"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Subscribe makes a client a subscriber of exactly the given topics, in one atomic step. Missing
// topics are created, without a publisher. Before a deleted token subscribes again, its remaining
// queue is dropped, a slice at a time. It fails with [bus.ErrTokenUnknown], a [bus.TopicLimitError]
// or [bus.ErrUnavailable].
func (s *Store) Subscribe(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	former := s.formerBatches(token)
	for passes := 0; ; {
		args := s.subscriptionArgs(token, sub, true, passes == maxFormerPasses, now)
		err := s.Change(ctx, "subscribe", scriptSubscriberPut, args...)
		switch {
		case errors.Is(err, errFormerLetters): // it has removed some
		case !errors.Is(err, errFormerBatches):
			return err
		case former.Ended():
			former, passes = s.formerBatches(token), passes+1
		default:
			if _, err := former.Drop(ctx, now, nil); err != nil {
				return err
			}
		}
	}
}

// maxFormerPasses is how often all batches are searched for some of an earlier subscription, in
// case their count is wrong.
const maxFormerPasses = 3

// Leftovers of an earlier subscription of a token, which are removed before it subscribes anew.
var (
	errFormerLetters = errors.New("dead letters of an earlier subscription are left")
	errFormerBatches = errors.New("batches of an earlier subscription are left")
)

// formerBatches has the batches of an earlier subscription of a token. It drops none once the token
// is a subscriber.
func (s *Store) formerBatches(token bus.Token) *OldestBatches {
	return &OldestBatches{store: s, of: []bus.Token{token}, former: true}
}

// SubscriberArgs are the first arguments of lua/lib/subscriptions.lua, under the same names there.
type SubscriberArgs struct {
	Token                      string
	Now                        int64 // ms
	MaxEvents                  int   // by default
	Timeout                    int64 // by default, in ms
	MaxClientTopics, MaxTopics int
	Callback                   string // empty to keep it
	OptionsVersion             string // if these change
	// Fields and Options are how many pairs of these follow. WithTopics is whether the topics change.
	Fields, Options int
	WithTopics      bool
	// Anyway subscribes though batches of an earlier subscription seem to be left.
	Anyway bool
}

// List returns them in the order in which the scripts read them.
func (a SubscriberArgs) List() []any {
	return []any{
		a.Token, a.Now, a.MaxEvents, a.Timeout, a.MaxClientTopics, a.MaxTopics, a.Callback, a.OptionsVersion,
		a.Fields, a.Options, a.WithTopics, a.Anyway,
	}
}

func (s *Store) subscriptionArgs(token bus.Token, sub bus.Subscription, withTopics, anyway bool, now time.Time) []any {
	fields := subscriptionFields(sub)
	args := SubscriberArgs{
		Token: string(token), Now: now.UnixMilli(), MaxEvents: bus.DefaultMaxEvents, Timeout: bus.DefaultTimeout.Milliseconds(),
		MaxClientTopics: s.maxClientTopics, MaxTopics: s.maxTopics, Callback: sub.Callback, OptionsVersion: bus.NewOptionsVersion(),
		Fields: len(fields) / 2, Options: len(sub.Options), WithTopics: withTopics, Anyway: anyway,
	}.List()
	args = append(args, fields...)
	for name, value := range sub.Options {
		args = append(args, name, value)
	}
	for _, name := range sub.Topics {
		args = append(args, string(name))
	}
	return args
}

// subscriptionFields returns names and values of the fields that a subscription sets in a
// subscriber's hash.
func subscriptionFields(sub bus.Subscription) (fields []any) {
	if sub.UUID != nil {
		fields = append(fields, "uuid", *sub.UUID)
	}
	if sub.Timeout != nil {
		fields = append(fields, "timeout", sub.Timeout.Milliseconds())
	}
	if sub.MaxEvents != nil {
		fields = append(fields, "max_events", *sub.MaxEvents)
	}
	return fields
}

// PatchSubscriber changes the subscription of a subscriber. Omitted fields stay as they are: topics
// (nil), callback and all others. It fails with [bus.ErrNotSubscribed], and as [Store.Subscribe].
func (s *Store) PatchSubscriber(ctx context.Context, token bus.Token, sub bus.Subscription, now time.Time) error {
	args := s.subscriptionArgs(token, sub, sub.Topics != nil, false, now)
	return s.Change(ctx, "change subscriber", scriptSubscriberPatch, args...)
}

// Pause stops deliveries to a subscriber, except test events, until a time, or [bus.Forever].
// Deliveries in flight finish. It fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Store) Pause(ctx context.Context, token bus.Token, until time.Time) error {
	return s.Change(ctx, "pause subscriber", scriptSubscriberPause, string(token), until.UnixMilli())
}

// Resume ends a subscriber's pause, if there is one. It fails with [bus.ErrNotSubscribed] or
// [bus.ErrUnavailable].
func (s *Store) Resume(ctx context.Context, token bus.Token) error {
	return s.Change(ctx, "resume subscriber", scriptSubscriberResume, string(token))
}

// Unsubscribe ends one subscription. It fails with [bus.ErrTopicUnknown], [bus.ErrNotSubscribed]
// or [bus.ErrUnavailable].
func (s *Store) Unsubscribe(ctx context.Context, token bus.Token, name bus.TopicName) error {
	return s.Change(ctx, "unsubscribe", scriptSubscriberUnsubscribe, string(token), string(name))
}

// DeleteSubscriber removes a subscriber and its subscriptions. Its batches are dropped as they
// come up. It fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (s *Store) DeleteSubscriber(ctx context.Context, token bus.Token) error {
	return s.Change(ctx, "delete subscriber", scriptSubscriberDelete, string(token))
}

// SubscriberNames returns the public names of the clients that are subscribed in the partition. It
// fails with [bus.ErrUnavailable].
func (s *Store) SubscriberNames(ctx context.Context) (names []bus.ClientName, err error) {
	members, err := s.redis.SMembers(ctx, s.keys.Subscribers()).Result()
	if err != nil || len(members) == 0 {
		return nil, rdb.Wrap("list subscribers", err)
	}
	tokens := make([]bus.Token, len(members))
	for i, member := range members {
		tokens[i] = bus.Token(member)
	}
	known, err := s.FindTokens(ctx, tokens)
	if err != nil {
		return nil, err
	}
	for _, token := range tokens {
		names = append(names, bus.PublicName(token, known[token]))
	}
	return names, nil
}
