package inspect

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Page says which part of a list is wanted.
type Page = rdb.NameRange

// How many members of a list one round trip asks for, so that neither Redis nor we have much to do
// at once.
const (
	topicsPerTrip      = 500
	subscribersPerTrip = 50
	// membersPerTrip bounds how many members of subscribers' sets of topics one round trip asks
	// for.
	membersPerTrip = 2000
)

// EachTopics calls a function with the topics of a page whose home this is, ordered by name, some
// at a time. It leaves out topics with a key that is not of its type, because another program has
// written to it, and returns these keys as damaged. Concurrent changes may be seen or not.
func (in *Inspector) EachTopics(ctx context.Context, p Page, each func([]bus.Topic) error) (damaged []string, err error) {
	err = rdb.EachByName(ctx, in.redis, in.keys.Topics(), p, topicsPerTrip, in.redis.OwnName, func(some []rdb.NamedMember) (int, error) {
		topics, unreadable, err := in.topics(ctx, some)
		damaged = append(damaged, unreadable...)
		if err != nil {
			return 0, err
		}
		return len(topics), each(topics)
	})
	return damaged, rdb.Wrap("list topics", err)
}

func (in *Inspector) topics(ctx context.Context, some []rdb.NamedMember) (topics []bus.Topic, damaged []string, err error) {
	hashes, names := make([]rdb.Reply[[]any], len(some)), make([]string, len(some))
	var owners rdb.Reply[[]any]
	err = in.redis.Reads(ctx, "list topics", func(pipe rdb.Commands) {
		for i, m := range some {
			names[i] = m.Value
			hashes[i] = pipe.HMGet(ctx, in.keys.Topic(bus.TopicName(m.Value)), "publisher", "counter")
		}
		owners = pipe.HMGet(ctx, in.keys.Owners(), names...)
	})
	if err == nil { // this key is bus-wide
		err = owners.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	for i, name := range names {
		if hashes[i].Err() != nil {
			damaged = append(damaged, layout.Keys{}.Topic(bus.TopicName(name)))
			continue
		}
		topic := bus.Topic{Name: bus.TopicName(name)}
		publisher, counter := rdb.Text(hashes[i].Val()[0]), rdb.Text(hashes[i].Val()[1]) // absent until the first publish
		topic.Events = rdb.Integer(counter, 0)
		if publisher != "" {
			topic.Publisher, topic.Owner = bus.Token(publisher), bus.ClientName(rdb.Text(owners.Val()[i]))
		}
		topics = append(topics, topic)
	}
	return topics, damaged, nil
}

// EachSubscribers calls a function with the subscribers of a page, ordered by the public names of
// their clients, some at a time. Several of one name are always on one page. It leaves out
// subscribers with a key that is not of its type, because another program has written to it, and
// returns these keys as damaged; they show clients by name, never a token.
func (in *Inspector) EachSubscribers(ctx context.Context, p Page, each func([]bus.Subscriber) error) (damaged []string, err error) {
	return in.eachSubscriber(ctx, in.keys.Subscribers(), p, each)
}

// eachSubscriber is [Inspector.EachSubscribers] for a set of tokens.
func (in *Inspector) eachSubscriber(
	ctx context.Context, set string, p Page, each func([]bus.Subscriber) error,
) (damaged []string, err error) {
	names := map[string]string{}
	err = in.redis.EachPage(ctx, in.keys.Tokens(), rdb.Hash, 0, rdb.Pairs(func(token, name string) { names[token] = name }))
	if err != nil {
		return nil, rdb.Wrap("list subscribers", err)
	}
	search := &oldestSearch{stats: in, max: batchesSearched}
	nameOf := func(token string) string { return string(publicToken(bus.Token(token), names[token])) }
	err = rdb.EachByName(ctx, in.redis, set, p, subscribersPerTrip, nameOf, func(some []rdb.NamedMember) (int, error) {
		subscribers, unreadable, err := in.subscribers(ctx, some)
		damaged = append(damaged, unreadable...)
		if err == nil {
			err = search.fill(ctx, subscribers)
		}
		if err != nil {
			return 0, err
		}
		return len(subscribers), each(subscribers)
	})
	return damaged, rdb.Wrap("list subscribers", err)
}

// subscribers reads some subscribers. One deleted in the meantime is left out.
func (in *Inspector) subscribers(ctx context.Context, some []rdb.NamedMember) (found []bus.Subscriber, damaged []string, err error) {
	hashes, tokens := make([]rdb.Reply[map[string]string], len(some)), make([]string, len(some))
	sent := make([]rdb.Reply[string], len(some))
	sizes := make([]rdb.Reply[int64], len(some))
	var queued rdb.Reply[[]any]
	err = in.redis.Reads(ctx, "list subscribers", func(pipe rdb.Commands) {
		for i, m := range some {
			tokens[i] = m.Value
			hashes[i] = pipe.HGetAll(ctx, in.keys.Subscriber(bus.Token(m.Value)))
			sent[i] = pipe.HGet(ctx, in.keys.Delivery(bus.Token(m.Value)), "events_sent")
			sizes[i] = pipe.SCard(ctx, in.keys.SubscriberTopics(bus.Token(m.Value)))
		}
		queued = pipe.HMGet(ctx, in.keys.EventGauge(), tokens...)
	})
	if err == nil { // this key is bus-wide
		err = queued.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	topics, err := in.topicsOf(ctx, tokens, sizes)
	if err != nil {
		return nil, nil, err
	}
	for i, m := range some {
		name := bus.Token(m.Name)
		if hashes[i].Err() != nil {
			damaged = append(damaged, layout.Keys{}.Subscriber(name))
		}
		if sizes[i].Err() != nil {
			damaged = append(damaged, layout.Keys{}.SubscriberTopics(name))
		}
		if hashes[i].Err() != nil || sizes[i].Err() != nil || len(hashes[i].Val()) == 0 {
			continue
		}
		sub := parseSubscriber(hashes[i].Val(), sent[i].Val())
		sub.Token, sub.Topics = bus.Token(m.Value), topics[i]
		sub.Queued = rdb.Integer(rdb.Text(queued.Val()[i]), 0)
		found = append(found, sub)
	}
	return found, damaged, nil
}

// parseSubscriber reads a subscriber's hash, and how many events it was sent.
func parseSubscriber(hash map[string]string, sent string) bus.Subscriber {
	sub := bus.Subscriber{
		Callback:  hash["callback"],
		UUID:      hash["uuid"],
		Timeout:   time.Duration(rdb.Integer(hash["timeout"], bus.DefaultTimeout.Milliseconds())) * time.Millisecond,
		MaxEvents: int(rdb.Integer(hash["max_events"], bus.DefaultMaxEvents)),
		Health:    int(rdb.Integer(hash["health_points"], bus.MaxHealth)),
		Sent:      rdb.Integer(sent, 0),
	}
	if ms := rdb.Integer(hash["last_attempted_at"], 0); ms != 0 {
		sub.LastAttemptedAt = time.UnixMilli(ms)
	}
	return sub
}

// TopicsOf reads the topics of subscribers, ordered by name. Of one whose key is not of its type
// there are none. It fails with [bus.ErrUnavailable].
func (in *Inspector) TopicsOf(ctx context.Context, tokens []bus.Token) (map[bus.Token][]bus.TopicName, error) {
	found := make(map[bus.Token][]bus.TopicName, len(tokens))
	for some := range slices.Chunk(tokens, batchesPerTrip) {
		names, sizes := make([]string, len(some)), make([]rdb.Reply[int64], len(some))
		err := in.redis.Reads(ctx, "list subscribers", func(pipe rdb.Commands) {
			for i, token := range some {
				names[i], sizes[i] = string(token), pipe.SCard(ctx, in.keys.SubscriberTopics(token))
			}
		})
		if err != nil {
			return nil, err
		}
		topics, err := in.topicsOf(ctx, names, sizes)
		if err != nil {
			return nil, err
		}
		for i, token := range some {
			found[token] = topics[i]
		}
	}
	return found, nil
}

// topicsOf reads the topics of subscribers, given how many they have.
func (in *Inspector) topicsOf(ctx context.Context, tokens []string, sizes []rdb.Reply[int64]) ([][]bus.TopicName, error) {
	topics := make([][]bus.TopicName, len(tokens))
	for i := 0; i < len(tokens); {
		cmds := map[int]rdb.PageReply{}
		err := in.redis.Reads(ctx, "list subscribers", func(pipe rdb.Commands) {
			for asked := int64(0); i < len(tokens) && asked < membersPerTrip; i++ {
				if n := sizes[i].Val(); n > 0 {
					cmds[i] = rdb.Page(ctx, pipe, in.keys.SubscriberTopics(bus.Token(tokens[i])), rdb.Set, 0)
					asked += min(n, rdb.ElementsPerTrip)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for at, cmd := range cmds {
			if topics[at], err = in.topicNames(ctx, tokens[at], cmd); err != nil {
				return nil, err
			}
		}
	}
	return topics, nil
}

// topicNames returns the topics of a subscriber, given the first of them. The set may have been
// replaced by another type meanwhile.
func (in *Inspector) topicNames(ctx context.Context, token string, first rdb.PageReply) (names []bus.TopicName, err error) {
	if first.Err() != nil {
		return nil, nil
	}
	add := func(page []string) error {
		for _, name := range page {
			names = append(names, bus.TopicName(name))
		}
		return nil
	}
	page, cursor := first.Val()
	if _ = add(page); cursor != 0 {
		err = in.redis.EachPage(ctx, in.keys.SubscriberTopics(bus.Token(token)), rdb.Set, cursor, add)
	}
	if !rdb.Answered(err) {
		return nil, rdb.Wrap("list subscribers", err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// publicToken stands for a token where a key is shown: it is the client's name.
func publicToken(token bus.Token, name string) bus.Token {
	return bus.Token(bus.PublicName(token, bus.ClientName(name)))
}
