package stats

import (
	"context"
	"maps"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Conditions is how the deliveries to subscribers go, as it was read last. Its zero value knows
// nothing. Whoever keeps one for the next reading must drop it from time to time: only what each
// delivery changes is read every time, and what else there is of a subscriber if that has changed.
// It must not be used concurrently.
type Conditions struct {
	names   map[string]string // by token
	of      map[string]condition
	changed map[string]bool
}

// Changed reports whether the last reading found that something has become of a delivery to a
// subscriber, or knew nothing of it before.
func (c *Conditions) Changed(token bus.Token) bool { return c.changed[string(token)] }

// condition is how the deliveries to a subscriber go.
type condition struct {
	health      int
	timeout     time.Duration
	sent        int64
	attemptedAt time.Time
	holds       Holds
	refusals    string
	// noSubscriber and noDelivery are whether what should be these hashes is none.
	noSubscriber, noDelivery bool
}

// readConditions reads how the deliveries to subscribers go.
func (s *Stats) readConditions(ctx context.Context, tokens []string, known *Conditions) error {
	was := known.of
	if slices.ContainsFunc(tokens, func(token string) bool { _, has := was[token]; return !has }) {
		names, err := s.redis.HGetAll(ctx, s.keys.Tokens()).Result()
		if err != nil {
			return rdb.Wrap("list tokens", err)
		}
		known.names = names
	}
	now, err := s.readDeliveries(ctx, tokens)
	if err != nil {
		return err
	}
	known.changed = map[string]bool{}
	for token, c := range now {
		w, has := was[token]
		if !has || w.noSubscriber || w.sent != c.sent || w.holds != c.holds || w.refusals != c.refusals {
			known.changed[token] = true
			continue
		}
		c.health, c.timeout, c.attemptedAt = w.health, w.timeout, w.attemptedAt
		now[token] = c
	}
	if err := s.readHealth(ctx, slices.Collect(maps.Keys(known.changed)), now); err != nil {
		return err
	}
	known.of = now
	return nil
}

// readDeliveries reads what each delivery changes.
func (s *Stats) readDeliveries(ctx context.Context, tokens []string) (map[string]condition, error) {
	found := make(map[string]condition, len(tokens))
	fields := slices.Concat(HoldFields, []string{"events_sent", "refusals"})
	for some := range slices.Chunk(tokens, batchesPerTrip) {
		hashes := make([]rdb.Reply[[]any], len(some))
		err := s.redis.Reads(ctx, "read deliveries", func(pipe rdb.Commands) {
			for i, token := range some {
				hashes[i] = pipe.HMGet(ctx, s.keys.Delivery(bus.Token(token)), fields...)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, token := range some {
			c := condition{noDelivery: hashes[i].Err() != nil}
			if values := hashes[i].Val(); len(values) == len(fields) {
				c.holds = ParseHolds(values[:len(HoldFields)])
				c.sent = rdb.Integer(rdb.Text(values[len(HoldFields)]), 0)
				c.refusals = rdb.Text(values[len(HoldFields)+1])
			}
			found[token] = c
		}
	}
	return found, nil
}

// readHealth adds what there is of subscribers besides.
func (s *Stats) readHealth(ctx context.Context, tokens []string, to map[string]condition) error {
	for some := range slices.Chunk(tokens, batchesPerTrip) {
		hashes := make([]rdb.Reply[[]any], len(some))
		err := s.redis.Reads(ctx, "read health", func(pipe rdb.Commands) {
			for i, token := range some {
				hashes[i] = pipe.HMGet(ctx, s.keys.Subscriber(bus.Token(token)), "health_points", "timeout", "last_attempted_at")
			}
		})
		if err != nil {
			return err
		}
		for i, token := range some {
			c, values := to[token], hashes[i].Val()
			if hashes[i].Err() != nil {
				to[token] = condition{noSubscriber: true, noDelivery: c.noDelivery}
				continue
			}
			c.health = int(rdb.Integer(rdb.Text(values[0]), bus.MaxHealth))
			c.timeout = time.Duration(rdb.Integer(rdb.Text(values[1]), bus.DefaultTimeout.Milliseconds())) * time.Millisecond
			if ms := rdb.Integer(rdb.Text(values[2]), 0); ms != 0 {
				c.attemptedAt = time.UnixMilli(ms)
			}
			to[token] = c
		}
	}
	return nil
}
