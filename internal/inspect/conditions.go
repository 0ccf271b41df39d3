package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Conditions is the last read state of the deliveries to subscribers. Its zero value is empty. A
// caller that keeps one for the next reading must drop it from time to time: every reading reads
// only what each delivery changes, and the rest of a subscriber only if that has changed. It must
// not be used concurrently.
type Conditions struct {
	all     []*condition // ordered by token
	changed []bus.Token
}

// Changed returns the subscribers that the last reading found changed.
func (c *Conditions) Changed() []bus.Token { return c.changed }

// Failing returns the subscribers among some whose deliveries fail: see [Holds.Failing].
func (c *Conditions) Failing(some []bus.Token) (failing []bus.Token) {
	for _, token := range some {
		place, found := slices.BinarySearchFunc(c.all, token, func(c *condition, token bus.Token) int {
			return cmp.Compare(c.token, token)
		})
		if found && c.all[place].holds.Failing() {
			failing = append(failing, token)
		}
	}
	return failing
}

// condition is the state of the deliveries to a subscriber.
type condition struct {
	token  bus.Token
	client bus.ClientName
	delivery
	health
}

// delivery is the state that each delivery changes, except the health.
type delivery struct {
	holds    Holds
	sent     int64
	refusals string
	// isNone is whether the key of this state is not a hash.
	isNone bool
}

// health is the rest of a subscriber's state, empty if its key is not a hash.
type health struct {
	isSubscriber bool
	points       int
	timeout      time.Duration
	attemptedAt  time.Time
}

// readConditions reads how the deliveries to subscribers go, whose tokens are in order. After an
// error nothing is known.
func (in *Inspector) readConditions(ctx context.Context, tokens []bus.Token, known *Conditions) error {
	was, all, isNew := known.all, make([]*condition, len(tokens)), false
	*known = Conditions{}
	for i, token := range tokens {
		for len(was) > 0 && was[0].token < token {
			was = was[1:]
		}
		if len(was) > 0 && was[0].token == token {
			all[i] = was[0]
		} else {
			all[i], isNew = &condition{token: token}, true
		}
	}
	if isNew {
		names, err := in.redis.HGetAll(ctx, in.keys.Tokens()).Result()
		if err != nil {
			return rdb.Wrap("list tokens", err)
		}
		for _, c := range all {
			c.client = bus.PublicName(c.token, bus.ClientName(names[string(c.token)]))
		}
	}
	var changed []*condition
	fields := slices.Concat(HoldFields, []string{"events_sent", "refusals"})
	err := in.readFields(ctx, tokens, in.keys.Delivery, fields, func(i int, values []any) {
		if c, now := all[i], parseDelivery(values); !c.isSubscriber || c.delivery != now {
			c.delivery = now
			changed, known.changed = append(changed, c), append(known.changed, c.token)
		}
	})
	if err != nil {
		return err
	}
	fields = []string{"health_points", "timeout", "last_attempted_at"}
	err = in.readFields(ctx, known.changed, in.keys.Subscriber, fields, func(i int, values []any) {
		if changed[i].health = parseHealth(values); !changed[i].isSubscriber {
			changed[i].delivery = delivery{isNone: changed[i].isNone}
		}
	})
	if err == nil {
		known.all = all
	}
	return err
}

// readFields reads fields of a hash of each of these, and calls a function with their values: nil
// if it is no hash.
func (in *Inspector) readFields(ctx context.Context, of []bus.Token, key func(bus.Token) string, fields []string, each func(int, []any)) error {
	first := 0
	for some := range slices.Chunk(of, batchesPerTrip) {
		hashes := make([]rdb.Reply[[]any], len(some))
		err := in.redis.Reads(ctx, "read subscribers", func(pipe rdb.Commands) {
			for i, token := range some {
				hashes[i] = pipe.HMGet(ctx, key(token), fields...)
			}
		})
		if err != nil {
			return err
		}
		for i := range some {
			each(first+i, hashes[i].Val())
		}
		first += len(some)
	}
	return nil
}

func parseDelivery(values []any) delivery {
	if values == nil {
		return delivery{isNone: true}
	}
	n := len(HoldFields)
	return delivery{ParseHolds(values[:n]), rdb.Integer(rdb.Text(values[n]), 0), rdb.Text(values[n+1]), false}
}

func parseHealth(values []any) (h health) {
	if values == nil {
		return h
	}
	h.isSubscriber, h.points = true, int(rdb.Integer(rdb.Text(values[0]), bus.MaxHealth))
	h.timeout = time.Duration(rdb.Integer(rdb.Text(values[1]), bus.DefaultTimeout.Milliseconds())) * time.Millisecond
	if ms := rdb.Integer(rdb.Text(values[2]), 0); ms != 0 {
		h.attemptedAt = time.UnixMilli(ms)
	}
	return h
}
