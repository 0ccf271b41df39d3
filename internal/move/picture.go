package move

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/fence"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
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
type topic struct {
	publisher, counter, last, owner string
	// first is the position that its history begins at; events, age and bytes are its limits.
	first, events, age, bytes string
}

// begun is the topic with its history, if it keeps one, beginning at the next event.
func (t topic) begun() topic {
	if t.first != "" {
		t.first = strconv.FormatInt(rdb.Integer(t.counter, 0)+1, 10)
	}
	return t
}

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
	if err := p.readTokens(ctx, s.Bus); err != nil {
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
func (p *picture) readTokens(ctx context.Context, all *store.Bus) error {
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
	type replies struct {
		topic, limits rdb.Reply[[]any]
		owner, keeps  rdb.Reply[string]
	}
	all := make([]replies, len(names))
	err := at.Reads(ctx, "read topics", func(pipe rdb.Commands) {
		for i, text := range names {
			name := bus.TopicName(text)
			all[i] = replies{
				pipe.HMGet(ctx, k.Topic(name), "publisher", "counter", "last_event"),
				pipe.HMGet(ctx, k.HistoryLimits(name), "first", "events", "age", "bytes"),
				pipe.HGet(ctx, k.Owners(), text), pipe.HGet(ctx, k.Plans(), store.HistoryField(name)),
			}
		}
	})
	for i, name := range names {
		if err == nil {
			err = rdb.Wrap("read topic "+name, all[i].topic.Err())
		}
		if err != nil {
			return err
		}
		of, kept := all[i].topic.Val(), make([]any, 4)
		if all[i].keeps.Val() != "" && all[i].limits.Err() == nil {
			kept = all[i].limits.Val()
		}
		p.topics[bus.TopicName(name)] = topic{
			rdb.Text(of[0]), rdb.Text(of[1]), rdb.Text(of[2]), all[i].owner.Val(),
			rdb.Text(kept[0]), rdb.Text(kept[1]), rdb.Text(kept[2]), rdb.Text(kept[3]),
		}
	}
	return err
}

// readOf makes a picture of some subscribers of the bus, as far as they are there, and their names.
func (s *side) readOf(ctx context.Context, tokens []bus.Token) (*picture, error) {
	p := &picture{tokens: map[bus.Token]bus.ClientName{}, subscribers: map[bus.Token]*subscriber{}}
	in := make([][]string, len(s.partitions))
	for _, token := range tokens {
		number := s.Of(token).Partition().Number()
		in[number] = append(in[number], string(token))
	}
	for i, tokens := range in {
		for some := range slices.Chunk(tokens, subscribersPerTrip) {
			if err := p.readSubscribers(ctx, s.partitions[i], s.keys[i], some); err != nil {
				return nil, err
			}
		}
		if err := s.partitions[i].RequireOpen(ctx); err != nil { // or not all was there
			return nil, err
		}
	}
	return p, nil
}

// subscriberReplies are what Redis says of a subscriber.
type subscriberReplies struct {
	isThere         rdb.Reply[bool]
	name            rdb.Reply[[]any]
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
				pipe.SIsMember(ctx, k.Subscribers(), text), pipe.HMGet(ctx, k.Tokens(), text),
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
		if replies[i].isThere.Val() {
			p.subscribers[bus.Token(token)] = replies[i].subscriber()
		}
		if name := rdb.Text(replies[i].name.Val()[0]); name != "" {
			p.tokens[bus.Token(token)] = bus.ClientName(name)
		}
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
