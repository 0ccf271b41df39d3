package inspect

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// TopicDetail is everything about one topic.
type TopicDetail struct {
	bus.Topic
	// LastEvent is the last that was published; empty if there is none.
	LastEvent wire.PackedEvent
	// Subscribers are ordered by the public names of their clients.
	Subscribers []bus.Subscriber
}

// TopicDetail reads one topic. Subscribers with a key that is not of its type are left out: damaged
// are these keys, with clients' names in place of tokens. It fails with [bus.ErrTopicUnknown] or
// [bus.ErrUnavailable], or when a key of the topic is not of its type.
func (in *Inspector) TopicDetail(ctx context.Context, name bus.TopicName) (d TopicDetail, damaged []string, err error) {
	known, err := in.redis.SIsMember(ctx, in.keys.Topics(), string(name)).Result()
	if err != nil {
		return d, nil, rdb.Wrap("read topic", err)
	}
	if !known {
		return d, nil, bus.ErrTopicUnknown
	}
	event, err := in.redis.HGet(ctx, in.keys.Topic(name), "last_event").Result()
	if err = rdb.Wrap("read topic", err); err != nil {
		return d, nil, err
	}
	found, _, err := in.topics(ctx, []rdb.NamedMember{{Name: string(name), Value: string(name)}})
	if err != nil || len(found) == 0 {
		return d, nil, err
	}
	d.Topic, d.LastEvent = found[0], wire.PackedEvent(event)
	damaged, err = in.eachSubscriber(ctx, in.keys.TopicSubscribers(name), Page{}, func(some []bus.Subscriber) error {
		d.Subscribers = append(d.Subscribers, some...)
		return nil
	})
	return d, damaged, err
}
