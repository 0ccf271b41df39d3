package store

import (
	"context"
	"encoding/json"
	"hash/fnv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Lanes say which events of a subscriber are delivered one after the other: those of one lane.
type Lanes struct {
	// Version changes with each change of the lanes. It is empty if the subscriber has one lane and
	// has not had several of which events are left.
	Version string
	// Count is the number of lanes, at least 1.
	Count int
	// OrderKey is the JSON pointer to the value by which an event gets its lane.
	OrderKey string
}

// Lanes reads a subscriber's lanes, by the token that holds the subscription. It fails with
// [bus.ErrUnavailable], or when the key is not of its type.
func (s *Store) Lanes(ctx context.Context, token bus.Token) (Lanes, error) {
	stored, err := s.redis.HMGet(ctx, s.keys.Options(token), lanesFields...).Result()
	if err != nil {
		return Lanes{}, rdb.Wrap("read lanes", err)
	}
	return readLanes(stored), nil
}

var lanesFields = []string{"generation", "lanes", "order_key"}

func readLanes(stored []any) Lanes {
	l := Lanes{Version: rdb.Text(stored[0]), Count: int(rdb.Integer(rdb.Text(stored[1]), 1)), OrderKey: bus.DefaultOrderKey}
	l.Count = min(max(l.Count, 1), bus.MaxLanes)
	if text := rdb.Text(stored[2]); text != "" {
		_ = json.Unmarshal([]byte(text), &l.OrderKey) // else the default
	}
	return l
}

// Of returns the lane of an event, from 0 on: that of its value at the order key, or of its URL if
// it has none there.
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
