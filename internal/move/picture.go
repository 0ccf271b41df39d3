package move

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/history"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/store/fence"
	"routemaster/internal/store/stores"
)

// picture is what makes a bus what it is.
type picture struct {
	tokens map[bus.Token]bus.ClientName
	// torn are the tokens that not all partitions know alike, because a change was broken off.
	torn        map[bus.Token]bool
	topics      map[bus.TopicName]topic
	subscribers map[bus.Token]*subscriber
}

// topic is what its home knows of a topic; texts are as they are stored, empty for none.
type topic struct{ publisher, counter, last, owner string }

// subscriber is a subscriber. Texts are as they are stored, empty for none.
type subscriber struct {
	settings
	// pausedUntil is until when its client has paused it (ms), "0" if it has not.
	pausedUntil string
	// sent, health and tried are what its deliveries have shown.
	sent, health, tried string
	// isComplete is whether it is held, and nothing is missing of its copy.
	isComplete bool
}

// settings are what a client says of its subscription.
type settings struct {
	callback, uuid, timeout, maxEvents, secrets string
	hasUUID                                     bool
	options                                     map[string]string // by name; none that is the default
	topics                                      []string          // sorted
}

func (s settings) equal(other settings, withTopics bool) bool {
	return s.callback == other.callback && s.uuid == other.uuid && s.hasUUID == other.hasUUID &&
		s.timeout == other.timeout && s.maxEvents == other.maxEvents && s.secrets == other.secrets &&
		maps.Equal(s.options, other.options) && (!withTopics || slices.Equal(s.topics, other.topics))
}

// How many topics and subscribers one round trip reads.
const (
	topicsPerTrip      = 500
	subscribersPerTrip = 100
)

// read makes a picture of the bus.
func (s *side) read(ctx context.Context) (p *picture, err error) {
	p = &picture{
		tokens: map[bus.Token]bus.ClientName{}, torn: map[bus.Token]bool{},
		topics:      map[bus.TopicName]topic{},
		subscribers: map[bus.Token]*subscriber{},
	}
	if err := p.readTokens(ctx, s.Stores); err != nil {
		return nil, err
	}
	for i, at := range s.partitions {
		err := eachSome(ctx, at, s.keys[i].Topics(), topicsPerTrip, func(names []string) error {
			return p.readTopics(ctx, at, s.keys[i], names)
		})
		if err != nil {
			return nil, err
		}
		err = eachSome(ctx, at, s.keys[i].Subscribers(), subscribersPerTrip, func(tokens []string) error {
			return p.readSubscribers(ctx, at, s.keys[i], tokens)
		})
		if err != nil {
			return nil, err
		}
		if err := at.RequireOpen(ctx); err != nil { // or not all was there
			return nil, err
		}
	}
	return p, nil
}

// readTokens reads the tokens: of each, its own partition decides whose it is.
func (p *picture) readTokens(ctx context.Context, all *stores.Stores) error {
	said := map[bus.Token][]bus.ClientName{}
	for _, st := range all.All() {
		names, err := st.Tokens(ctx)
		if err != nil {
			return err
		}
		for token, name := range names {
			said[token] = append(said[token], name)
			if all.Of(token) == st {
				p.tokens[token] = name
			}
		}
	}
	for token, names := range said {
		if len(names) < len(all.All()) || len(slices.Compact(names)) > 1 {
			p.torn[token] = true
		}
	}
	return nil
}

// eachSome calls a function with some members of a set at a time.
func eachSome(ctx context.Context, at *rdb.Partition, key string, some int, do func([]string) error) error {
	members, err := at.SMembers(ctx, key).Result()
	if err != nil {
		return rdb.Wrap("read "+key, err)
	}
	for members := range slices.Chunk(members, some) {
		if err := do(members); err != nil {
			return err
		}
	}
	return nil
}

// readTopics reads topics, but for those whose home is another partition.
func (p *picture) readTopics(ctx context.Context, at *rdb.Partition, k store.Keys, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return at.IsOneOfSeveral() && !at.Owns(name) })
	hashes, owners := make([]rdb.Reply[[]any], len(names)), make([]rdb.Reply[string], len(names))
	err := at.Reads(ctx, "read topics", func(pipe rdb.Commands) {
		for i, name := range names {
			hashes[i] = pipe.HMGet(ctx, k.Topic(bus.TopicName(name)), "publisher", "counter", "last_event")
			owners[i] = pipe.HGet(ctx, k.Owners(), name)
		}
	})
	for i, name := range names {
		if err == nil {
			err = rdb.Wrap("read topic "+name, hashes[i].Err())
		}
		if err != nil {
			return err
		}
		of := hashes[i].Val()
		p.topics[bus.TopicName(name)] = topic{rdb.Text(of[0]), rdb.Text(of[1]), rdb.Text(of[2]), owners[i].Val()}
	}
	return err
}

// subscriberReplies are what Redis says of a subscriber.
type subscriberReplies struct {
	fields, options rdb.Reply[map[string]string]
	delivery        rdb.Reply[[]any]
	topics          rdb.Reply[[]string]
	held            rdb.Reply[[]any]
}

func (p *picture) readSubscribers(ctx context.Context, at *rdb.Partition, k store.Keys, tokens []string) error {
	replies := make([]subscriberReplies, len(tokens))
	err := at.Pipelined(ctx, "read subscribers", func(pipe rdb.Commands) {
		for i, text := range tokens {
			token := bus.Token(text)
			replies[i] = subscriberReplies{
				pipe.HGetAll(ctx, k.Subscriber(token)), pipe.HGetAll(ctx, k.Options(token)),
				pipe.HMGet(ctx, k.Delivery(token), "events_sent", "paused_until"),
				pipe.SMembers(ctx, k.SubscriberTopics(token)),
				pipe.HMGet(ctx, k.Plans(), fence.HeldField(text)),
			}
		}
	})
	if err != nil {
		return err
	}
	for i, token := range tokens {
		p.subscribers[bus.Token(token)] = replies[i].subscriber()
	}
	return nil
}

func (r subscriberReplies) subscriber() *subscriber {
	fields := r.fields.Val()
	s := &subscriber{
		settings: settings{
			callback: fields["callback"], uuid: fields["uuid"], timeout: fields["timeout"],
			maxEvents: fields["max_events"], secrets: r.options.Val()["secrets"],
			options: map[string]string{}, topics: slices.Sorted(slices.Values(r.topics.Val())),
		},
		sent: rdb.Text(r.delivery.Val()[0]), health: fields["health_points"], tried: fields["last_attempted_at"],
	}
	_, s.hasUUID = fields["uuid"]
	for _, name := range bus.OptionNames() {
		if value, is := r.options.Val()[name]; is {
			s.options[name] = value
		}
	}
	noted, isHeld := r.held.Val()[0].(string)
	if s.isComplete = noted != ""; isHeld {
		s.pausedUntil = cmp.Or(noted, "0")
	} else {
		s.pausedUntil = cmp.Or(rdb.Text(r.delivery.Val()[1]), "0")
	}
	return s
}

// histories are the limits of those that topics keep.
func (s *side) histories(ctx context.Context) (map[bus.TopicName]history.Status, error) {
	found := map[bus.TopicName]history.Status{}
	for _, st := range s.All() {
		kept := history.New(st)
		topics, err := kept.Topics(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range topics {
			status, err := kept.Get(ctx, name)
			if errors.Is(err, history.ErrNone) || errors.Is(err, bus.ErrTopicUnknown) {
				continue // it was removed just now
			}
			if err != nil {
				return nil, err
			}
			found[name] = status
		}
	}
	return found, nil
}

// heldTokens are the subscribers of the bus that are held, in order.
func (s *side) heldTokens(ctx context.Context) (tokens []bus.Token, err error) {
	for i, at := range s.partitions {
		fields, err := at.HKeys(ctx, s.keys[i].Plans()).Result()
		if err != nil {
			return nil, rdb.Wrap("read who is held", err)
		}
		for _, field := range fields {
			if token, is := strings.CutPrefix(field, fence.Field); is && token != "" {
				tokens = append(tokens, bus.Token(token))
			}
		}
	}
	slices.Sort(tokens)
	return tokens, nil
}
