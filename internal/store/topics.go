package store

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// Publication is a list of events for one topic, oldest first.
type Publication struct {
	Topic     bus.TopicName
	Publisher bus.Token
	Events    []wire.PackedEvent
	// ReceivedAt is the time of receipt, in ms since the Unix epoch. When a batch is
	// due depends on it alone.
	ReceivedAt int64
	// IdempotencyKey, if not nil, makes a repetition of the same request store nothing.
	IdempotencyKey *IdempotencyKey
	// Origins are the spans (W3C traceparent) of the requests that the events came with, if they are traced. A
	// batch keeps a few.
	Origins []string
}

// Publish is [Store.PublishAll] for one publication.
func (s *Store) Publish(ctx context.Context, p Publication) error {
	return s.PublishAll(ctx, p)[0].Err
}

// Receipt says what became of a publication.
type Receipt struct {
	Err error
	// Stored is false also when the same request had been stored before.
	Stored bool
	// Receivers are the subscribers who got the events.
	Receivers Tokens
	// DroppedKeys is how many idempotency keys of the client had to make room for this one's, because it has too many.
	DroppedKeys int
}

// Tokens is a list of tokens, in one string because it is only counted on the way.
type Tokens string

// All are the tokens.
func (t Tokens) All() iter.Seq[string] { return strings.FieldsSeq(string(t)) }

// Len is the number of tokens.
func (t Tokens) Len() int {
	if t == "" {
		return 0
	}
	return strings.Count(string(t), " ") + 1
}

// PublishAll stores the events of each publication in a batch of every subscriber of its topic, in one atomic
// step for each, in order, and in one round trip for all. There is a receipt for each. Its error is nil, [bus.ErrTopicClaimed], [bus.ErrIdempotencyKeyReused],
// [bus.ErrTooManyBatches], [bus.ErrTokenUnknown], a [bus.TopicLimitError] or [bus.ErrUnavailable]. After the last the events may have been stored all the same,
// if it was the answer that was lost.
func (s *Store) PublishAll(ctx context.Context, publications ...Publication) []Receipt {
	calls := make([]call, len(publications))
	for i := range publications {
		calls[i] = s.publish(&publications[i])
	}
	receipts := make([]Receipt, len(publications))
	for i, cmd := range s.changeAll(ctx, calls...) {
		receipts[i] = s.published(cmd)
	}
	return receipts
}

// publish is the call that stores a publication.
func (s *Store) publish(p *Publication) call {
	var key, digest string
	var ttl time.Duration
	if p.IdempotencyKey != nil {
		key, digest = p.IdempotencyKey.digests()
		ttl = cmp.Or(p.IdempotencyKey.TTL, bus.DefaultIdempotencyTTL)
	}
	args := make([]any, 0, 15+len(p.Events))
	args = append(args,
		string(p.Topic), string(p.Publisher), p.ReceivedAt, bus.NewBatchSeed(),
		bus.DefaultMaxEvents, bus.DefaultTimeout.Milliseconds(), key, digest, ttl.Milliseconds(),
		strings.Join(p.Origins, " "), p.ReceivedAt+turnTimeout.Milliseconds(),
		s.keysPerSlice, bus.MaxOpenedBatches, s.maxClientTopics, s.maxTopics,
	)
	for _, event := range p.Events {
		args = append(args, string(event))
	}
	return call{scriptTopicPublish, args}
}

func (s *Store) published(cmd *redis.Cmd) Receipt {
	reply, err := cmd.Result()
	if err != nil {
		return Receipt{Err: wrap("publish", err)}
	}
	var receipt Receipt
	switch reply := reply.(type) {
	case int64:
		receipt.Err = cmp.Or(publishErrors[reply], s.topicLimit(reply)) // else the same request was stored before
	case string:
		receipt.Stored, receipt.Receivers = true, Tokens(reply)
	case []any:
		receipt.Stored, receipt.Receivers = true, Tokens(text(reply[0]))
		receipt.DroppedKeys = int(reply[1].(int64))
	}
	return receipt
}

// publishErrors are what the numbers stand for that the script returns.
var publishErrors = map[int64]error{
	0: bus.ErrTopicClaimed, -1: bus.ErrIdempotencyKeyReused, -2: bus.ErrTokenUnknown, -3: bus.ErrTooManyBatches,
}

// What scripts return when there would be too many topics.
const overClientTopics, overTopics = int64(-5), int64(-6)

// topicLimit is the error for one of these, nil for any other reply.
func (s *Store) topicLimit(reply any) error {
	switch reply {
	case overClientTopics:
		return &bus.TopicLimitError{Limit: s.maxClientTopics}
	case overTopics:
		return &bus.TopicLimitError{Limit: s.maxTopics, OfBus: true}
	}
	return nil
}

// DeleteTopic deletes a topic and the subscriptions to it; queued events stay. It asks in the
// name of by, its publisher, or of root when by is empty. It fails with [bus.ErrTopicUnknown],
// [bus.ErrTopicClaimed] or [bus.ErrUnavailable].
func (s *Store) DeleteTopic(ctx context.Context, name bus.TopicName, by bus.Token) error {
	deleted, err := s.change(ctx, call{scriptTopicDelete, []any{string(name), string(by)}}).Int()
	switch {
	case err != nil:
		return wrap("delete topic", err)
	case deleted == 0:
		return bus.ErrTopicUnknown
	case deleted < 0:
		return bus.ErrTopicClaimed
	}
	return nil
}

// text is a reply's string; a nil reply is empty.
func text(reply any) string {
	s, _ := reply.(string)
	return s
}
