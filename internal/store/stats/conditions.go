package stats

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Conditions is how the deliveries to subscribers go, as it was read last. Its zero value knows
// nothing. Who keeps one for the next reading must drop it from time to time: only what each
// delivery changes is read every time, and what else there is of a subscriber if that has changed.
// It must not be used concurrently.
type Conditions struct {
	names   map[string]string // by token
	of      map[string]*condition
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
	now, err := s.readDeliveries(ctx, tokens, was)
	if err != nil {
		return err
	}
	known.changed = map[string]bool{}
	var again []string
	for token, c := range now {
		w, has := was[token]
		switch {
		case !has:
			known.changed[token] = true
		case w.noSubscriber || w.sent != c.sent || w.holds != c.holds || w.refusals != c.refusals:
			known.changed[token] = true
			again = append(again, token)
		default:
			c.health, c.timeout, c.attemptedAt = w.health, w.timeout, w.attemptedAt
		}
	}
	if err := s.readHealth(ctx, again, now); err != nil {
		return err
	}
	known.of = now
	return nil
}

// readDeliveries reads what each delivery changes, and of subscribers that are not known the rest,
// too.
func (s *Stats) readDeliveries(ctx context.Context, tokens []string, known map[string]*condition) (map[string]*condition, error) {
	found := make(map[string]*condition, len(tokens))
	fields := slices.Concat(HoldFields, []string{"events_sent", "refusals"})
	for some := range slices.Chunk(tokens, batchesPerTrip) {
		deliveries, healths := make([]rdb.Reply[[]any], len(some)), map[string]rdb.Reply[[]any]{}
		err := s.redis.Reads(ctx, "read deliveries", func(pipe rdb.Commands) {
			for i, token := range some {
				deliveries[i] = pipe.HMGet(ctx, s.keys.Delivery(bus.Token(token)), fields...)
				if _, has := known[token]; !has {
					healths[token] = s.getHealth(ctx, pipe, token)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for i, token := range some {
			c := &condition{noDelivery: deliveries[i].Err() != nil}
			if values := deliveries[i].Val(); len(values) == len(fields) {
				c.holds = ParseHolds(values[:len(HoldFields)])
				c.sent = rdb.Integer(rdb.Text(values[len(HoldFields)]), 0)
				c.refusals = rdb.Text(values[len(HoldFields)+1])
			}
			if health, read := healths[token]; read {
				c.addHealth(health)
			}
			found[token] = c
		}
	}
	return found, nil
}

// readHealth adds what there is of subscribers besides.
func (s *Stats) readHealth(ctx context.Context, tokens []string, to map[string]*condition) error {
	for some := range slices.Chunk(tokens, batchesPerTrip) {
		healths := make([]rdb.Reply[[]any], len(some))
		err := s.redis.Reads(ctx, "read health", func(pipe rdb.Commands) {
			for i, token := range some {
				healths[i] = s.getHealth(ctx, pipe, token)
			}
		})
		if err != nil {
			return err
		}
		for i, token := range some {
			to[token].addHealth(healths[i])
		}
	}
	return nil
}

func (s *Stats) getHealth(ctx context.Context, pipe rdb.Commands, token string) rdb.Reply[[]any] {
	return pipe.HMGet(ctx, s.keys.Subscriber(bus.Token(token)), "health_points", "timeout", "last_attempted_at")
}

// addHealth adds what [Stats.getHealth] has got.
func (c *condition) addHealth(got rdb.Reply[[]any]) {
	if got.Err() != nil {
		*c = condition{noSubscriber: true, noDelivery: c.noDelivery}
		return
	}
	values := got.Val()
	c.health = int(rdb.Integer(rdb.Text(values[0]), bus.MaxHealth))
	c.timeout = time.Duration(rdb.Integer(rdb.Text(values[1]), bus.DefaultTimeout.Milliseconds())) * time.Millisecond
	if ms := rdb.Integer(rdb.Text(values[2]), 0); ms != 0 {
		c.attemptedAt = time.UnixMilli(ms)
	}
}
