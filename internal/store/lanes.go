package store

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"sync"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Lanes divides a subscriber's events: events of one lane are delivered one after the other.
type Lanes struct {
	// Version changes with each change of the lanes. It is empty if the subscriber has one lane.
	Version string
	// Count is the number of lanes, at least 1.
	Count int
	// OrderKey is the JSON pointer to the value by which an event gets its lane.
	OrderKey string
}

// Lanes reads a subscriber's lanes, by the token that holds the subscription. It fails with
// [bus.ErrUnavailable], or when the key is not of its type.
func (s *Store) Lanes(ctx context.Context, token bus.Token) (Lanes, error) {
	var version rdb.Reply[string]
	var options rdb.Reply[[]any]
	err := s.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
		version = pipe.HGet(ctx, s.keys.Plans(), string(token)) // first: of later lanes it is stale
		options = pipe.HMGet(ctx, s.keys.Options(token), lanesFields...)
	})
	if err != nil {
		return Lanes{}, err
	}
	if options.Err() != nil {
		return Lanes{}, rdb.Wrap("read lanes", options.Err())
	}
	return readLanes(version.Val(), options.Val()), nil
}

var lanesFields = []string{"lanes", "order_key"}

func readLanes(version string, stored []any) Lanes {
	l := Lanes{Version: version, Count: LaneCount(rdb.Text(stored[0])), OrderKey: bus.DefaultOrderKey}
	if text := rdb.Text(stored[1]); text != "" {
		_ = json.Unmarshal([]byte(text), &l.OrderKey) // else the default
	}
	return l
}

// LaneCount reads a stored number of lanes: 1 if there is none.
func LaneCount(text string) int { return int(min(max(rdb.Integer(text, 1), 1), bus.MaxLanes)) }

// LaneName returns the name by which the queue knows a lane of a subscriber, from 0 on.
func LaneName(token bus.Token, lane int) string {
	if lane == 0 {
		return string(token)
	}
	return string(token) + "/" + strconv.Itoa(lane)
}

// Of returns the lane of an event, from 0 on. It depends on the event's value at the order key, or
// on its URL if it has no such value.
func (l Lanes) Of(event wire.PackedEvent) int {
	if l.Count == 1 {
		return 0
	}
	value, err := wire.ValueAt(event, l.OrderKey)
	if err != nil || value == nil {
		value, _ = wire.ValueAt(event, bus.DefaultOrderKey)
	}
	hash := fnv.New32a()
	hash.Write(value)
	return int(hash.Sum32() % uint32(l.Count))
}

// laneCache knows the lanes of subscribers that have several, by their topics. A publish that was
// sent with others than they have now stores nothing, and says which these are.
type laneCache struct {
	mu     sync.RWMutex
	topics map[bus.TopicName][]subscriberLanes
}

type subscriberLanes struct {
	token bus.Token
	Lanes
}

// sort returns the lanes of a publication's events as lua/lib/publishes.lua reads them: of each
// subscriber with several its token, their version, and a character for each event.
func (c *laneCache) sort(p *Publication) (args []any) {
	c.mu.RLock()
	known := c.topics[p.Topic]
	c.mu.RUnlock()
	for _, lanes := range known {
		digits := make([]byte, len(p.Events))
		for i, event := range p.Events {
			digits[i] = queue.UIDDigits[lanes.Of(event)]
		}
		args = append(args, string(lanes.token), lanes.Version, string(digits))
	}
	return args
}

// put replaces the cached lanes of a topic.
func (c *laneCache) put(topic bus.TopicName, known []subscriberLanes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(known) == 0 {
		delete(c.topics, topic)
		return
	}
	if c.topics == nil {
		c.topics = map[bus.TopicName][]subscriberLanes{}
	}
	c.topics[topic] = known
}

// LaneArgs are the lanes of a publication's events as lua/lib/publishes.lua reads them, as far as
// they are known.
func (s *Store) LaneArgs(p *Publication) []any { return s.lanes.sort(p) }

// LearnLanes reads the lanes of the subscribers of some topics, given for each topic their tokens
// and the versions of their lanes, alternately. It fails with [bus.ErrUnavailable].
func (s *Store) LearnLanes(ctx context.Context, topics map[bus.TopicName][]string) error {
	read := map[bus.Token]rdb.Reply[[]any]{}
	err := s.redis.Reads(ctx, "read lanes", func(pipe rdb.Commands) {
		for _, versions := range topics {
			for i := 0; i < len(versions); i += 2 {
				token := bus.Token(versions[i])
				read[token] = pipe.HMGet(ctx, s.keys.Options(token), lanesFields...)
			}
		}
	})
	if err != nil {
		return err
	}
	for topic, versions := range topics {
		var known []subscriberLanes
		for i := 0; i < len(versions); i += 2 {
			token := bus.Token(versions[i])
			stored := read[token].Val()
			if len(stored) != len(lanesFields) { // the options are damaged
				stored = make([]any, len(lanesFields))
			}
			known = append(known, subscriberLanes{token, readLanes(versions[i+1], stored)})
		}
		s.lanes.put(topic, known)
	}
	return nil
}
