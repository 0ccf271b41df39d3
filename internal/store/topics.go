package store

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Publication is a list of events for one topic, oldest first.
type Publication struct {
	Topic     bus.TopicName
	Publisher bus.Token
	Events    []PackedEvent
	// ReceivedAt is the time of receipt, in ms since the Unix epoch. When a batch is
	// due depends on it alone.
	ReceivedAt int64
	// Once, if given, makes a repetition of the same request store nothing.
	Once *Once
}

// Once identifies a request, so that it can be repeated.
type Once struct {
	// Key is the publisher's name for the request.
	Key string
	// Digest tells one request from another.
	Digest string
}

// onceFor is how long a request's key is remembered.
const onceFor = 24 * time.Hour

// Publish stores events in a batch of every subscriber of their topic, in one atomic
// step and one round trip. It fails with [bus.ErrTopicClaimed], [bus.ErrKeyReused],
// [bus.ErrTokenUnknown] or [bus.ErrUnavailable]. After the last the events may have been stored all the same,
// if it was the answer that was lost.
func (s *Store) Publish(ctx context.Context, p Publication) error {
	once := p.Once
	if once == nil {
		once = &Once{}
	}
	args := []any{
		string(p.Topic), string(p.Publisher), p.ReceivedAt, bus.NewBatchSeed(),
		bus.DefaultMaxEvents, bus.DefaultTimeout.Milliseconds(), once.Key, once.Digest, onceFor.Milliseconds(),
	}
	for _, event := range p.Events {
		args = append(args, []byte(event))
	}
	stored, err := s.run(ctx, scriptTopicPublish, args...).Int()
	switch {
	case err != nil:
		return wrap("publish", err)
	case stored == 0:
		return bus.ErrTopicClaimed
	case stored == -1:
		return bus.ErrKeyReused
	case stored == -2:
		return bus.ErrTokenUnknown
	}
	return nil
}

// Topics lists all topics, ordered by name.
func (s *Store) Topics(ctx context.Context) ([]bus.Topic, error) {
	names, err := s.redis.SMembers(ctx, s.keys.topics()).Result()
	if err != nil {
		return nil, wrap("list topics", err)
	}
	slices.Sort(names)
	topics := make([]bus.Topic, len(names))
	cmds := make([]*redis.SliceCmd, len(names))
	err = s.pipelined(ctx, "list topics", func(pipe redis.Pipeliner) {
		for i, name := range names {
			cmds[i] = pipe.HMGet(ctx, s.keys.topic(bus.TopicName(name)), "publisher", "counter")
		}
	})
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		publisher, counter := text(cmds[i].Val()[0]), text(cmds[i].Val()[1]) // absent until somebody publishes
		topics[i] = bus.Topic{Name: bus.TopicName(name), Publisher: bus.Token(publisher), Events: integer(counter, 0)}
	}
	return topics, nil
}

// DeleteTopic deletes a topic and the subscriptions to it; queued events stay. It asks in the
// name of by, its publisher, or of root when by is empty. It fails with [bus.ErrTopicUnknown],
// [bus.ErrTopicClaimed] or [bus.ErrUnavailable].
func (s *Store) DeleteTopic(ctx context.Context, name bus.TopicName, by bus.Token) error {
	deleted, err := s.run(ctx, scriptTopicDelete, string(name), string(by)).Int()
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
