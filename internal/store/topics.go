package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
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
	IdempotencyKey *bus.IdempotencyKey
	// Traceparents come from the requests that brought the events (W3C), if these are traced. A batch
	// keeps a few.
	Traceparents []string
}

// Receipt is the result of a publication.
type Receipt struct {
	Err error
	// Stored is false also when the same request had been stored before.
	Stored bool
	// Receivers are the subscribers that got the events.
	Receivers bus.Tokens
	// DroppedKeys is how many idempotency keys of the client were evicted for this one's, because it
	// has too many.
	DroppedKeys int
}

// PublishAll stores the events of each publication in a batch of every subscriber of its topic, in
// one atomic step for each, in order, and in one round trip for all. There is a receipt for each.
// Its error is nil, [bus.ErrTopicClaimed], [bus.ErrIdempotencyKeyReused], [bus.ErrTooManyBatches],
// [bus.ErrTokenUnknown], a [bus.TopicLimitError] or [bus.ErrUnavailable]. After the last the events
// may have been stored all the same, if it was the answer that was lost.
func (s *Store) PublishAll(ctx context.Context, publications ...Publication) []Receipt {
	receipts, left := make([]Receipt, len(publications)), make([]int, len(publications))
	for i := range publications {
		left[i] = i
	}
	for range maxPublishTries {
		if left = s.publishSome(ctx, publications, left, receipts); len(left) == 0 {
			break
		}
	}
	return receipts
}

// maxPublishTries is how often a publication is sent if its subscribers change their lanes
// meanwhile.
const maxPublishTries = 6

// publishSome stores some of the publications. It returns those that have to be sent again with
// other lanes, which it has read; their receipts are not final.
func (s *Store) publishSome(ctx context.Context, publications []Publication, some []int, receipts []Receipt) (again []int) {
	calls := make([]rdb.Call, len(some))
	for n, i := range some {
		calls[n] = s.publish(&publications[i])
	}
	stale := map[bus.TopicName][]string{}
	for n, change := range s.redis.ChangeAll(ctx, calls...) {
		i := some[n]
		if change.Err == nil && !change.Changed && change.Text(0) == "lanes" {
			receipts[i] = Receipt{Err: bus.ErrUnavailable}
			stale[publications[i].Topic] = strings.Fields(change.Text(1))
			again = append(again, i)
			continue
		}
		receipts[i] = s.published(change)
	}
	if len(stale) == 0 {
		return nil
	}
	if s.LearnLanes(ctx, stale) != nil {
		return nil
	}
	return again
}

// publishArgs are the first arguments of lua/topic_publish.lua, under the same names there.
type publishArgs struct {
	Topic, Publisher string // a token
	ReceivedAt       int64  // ms
	Seed             string // of the UIDs of the batches opened
	// MaxEvents and Timeout (ms) hold by default. They and MaxOpened are constants, which Go need not
	// allocate anew as a value of any.
	MaxEvents, Timeout any
	// Key and Digest, of the idempotency key and of the request, are empty if there is none. Its TTL
	// is in ms.
	Key, Digest  string
	KeyTTL       int64
	Traceparents string // of the requests if they are traced, separated by spaces
	// WaitUntil is when a job that waits for its turn comes up by itself at the latest (ms).
	WaitUntil                  int64
	MaxKeys                    int // in a slice of the idempotency keys
	MaxOpened                  any
	MaxClientTopics, MaxTopics int
	LaneValues                 int // the number of lane values that follow
}

func (a *publishArgs) appendTo(args []any) []any {
	return append(args,
		a.Topic, a.Publisher, a.ReceivedAt, a.Seed, a.MaxEvents, a.Timeout, a.Key, a.Digest, a.KeyTTL, a.Traceparents,
		a.WaitUntil, a.MaxKeys, a.MaxOpened, a.MaxClientTopics, a.MaxTopics, a.LaneValues)
}

// publish is the call that stores a publication.
func (s *Store) publish(p *Publication) rdb.Call {
	var key, digest string
	var ttl time.Duration
	if p.IdempotencyKey != nil {
		key, digest = p.IdempotencyKey.Digests()
		ttl = cmp.Or(p.IdempotencyKey.TTL, bus.DefaultIdempotencyTTL)
	}
	lanes := s.LaneArgs(p)
	fixed := publishArgs{
		Topic: string(p.Topic), Publisher: string(p.Publisher), ReceivedAt: p.ReceivedAt, Seed: bus.NewBatchSeed(),
		MaxEvents: bus.DefaultMaxEvents, Timeout: bus.DefaultTimeout.Milliseconds(),
		Key: key, Digest: digest, KeyTTL: ttl.Milliseconds(), Traceparents: strings.Join(p.Traceparents, " "),
		WaitUntil: queue.TurnDeadline(time.UnixMilli(p.ReceivedAt)), MaxKeys: s.keysPerSlice, MaxOpened: bus.MaxOpenedBatches,
		MaxClientTopics: s.maxClientTopics, MaxTopics: s.maxTopics, LaneValues: len(lanes),
	}
	args := append(fixed.appendTo(make([]any, 0, 16+len(lanes)+len(p.Events))), lanes...)
	for i := range p.Events {
		args = append(args, (*string)(&p.Events[i])) // a string would be allocated anew
	}
	return scriptTopicPublish.Call(args...)
}

func (s *Store) published(change rdb.Change) Receipt {
	switch {
	case change.Err != nil:
		return Receipt{Err: rdb.Wrap("publish", change.Err)}
	case !change.Changed:
		return Receipt{Err: s.refusal("publish", change.Text(0))}
	case len(change.Results) == 0: // the same request was stored before
		return Receipt{}
	}
	receipt := Receipt{Stored: true, Receivers: bus.Tokens(change.Text(0))}
	if len(change.Results) > 1 {
		dropped, _ := change.Results[1].(int64)
		receipt.DroppedKeys = int(dropped)
	}
	return receipt
}

// refusals are the scripts' words for why they changed nothing.
var refusals = map[string]error{
	"topic unknown": bus.ErrTopicUnknown, "topic claimed": bus.ErrTopicClaimed,
	"token unknown": bus.ErrTokenUnknown, "token taken": bus.ErrTokenTaken,
	"not subscribed": bus.ErrNotSubscribed, "key reused": bus.ErrIdempotencyKeyReused,
	"too many batches": bus.ErrTooManyBatches,
	"former letters":   errFormerLetters, "former batches": errFormerBatches,
}

// refusal is the error for one of them.
func (s *Store) refusal(what, word string) error {
	switch word {
	case "client's topics":
		return &bus.TopicLimitError{Limit: s.maxClientTopics}
	case "bus's topics":
		return &bus.TopicLimitError{Limit: s.maxTopics, OfBus: true}
	}
	return cmp.Or(refusals[word], fmt.Errorf("%s: refused for an unknown reason %q", what, word))
}

// Change runs a script that changes something for a client, or says why not: for packages beside
// the store too.
func (s *Store) Change(ctx context.Context, what string, script *rdb.Script, args ...any) error {
	change := s.redis.Change(ctx, script, args...)
	if change.Err == nil && !change.Changed {
		return s.refusal(what, change.Text(0))
	}
	return rdb.Wrap(what, change.Err)
}

// DeleteTopic deletes a topic and the subscriptions to it; queued events stay. It asks in the
// name of by, its publisher, or of root when by is empty. It fails with [bus.ErrTopicUnknown],
// [bus.ErrTopicClaimed] or [bus.ErrUnavailable].
func (s *Store) DeleteTopic(ctx context.Context, name bus.TopicName, by bus.Token) error {
	return s.Change(ctx, "delete topic", scriptTopicDelete, string(name), string(by))
}

// unusedTopicTTL is how long a topic without publisher, subscriber and event is kept.
const unusedTopicTTL = 24 * time.Hour

// SweepTopics removes topics that have been unused for a day, and leftovers of topics that are
// gone. It returns how many topics were removed. It fails with [bus.ErrUnavailable].
func (s *Store) SweepTopics(ctx context.Context, topics []string, now time.Time) (removed int, err error) {
	for some := range slices.Chunk(topics, sliceSize) {
		args := []any{now.UnixMilli(), now.Add(-unusedTopicTTL).UnixMilli()}
		for _, topic := range some {
			args = append(args, topic)
		}
		n, err := s.redis.Run(ctx, scriptTopicSweep, args...).Int()
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}
