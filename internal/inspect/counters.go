package inspect

import (
	"context"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// countersPerTrip bounds the counters read in one round trip.
const countersPerTrip = 500

// Counters reads the counters of the bus. It leaves out unreadable ones.
func (in *Inspector) Counters(ctx context.Context) (map[bus.Counter]int64, error) {
	fields, err := in.redis.HGetAll(ctx, in.keys.Counters()).Result()
	if err != nil {
		return nil, rdb.Wrap("read counters", err)
	}
	return unpackCounters(fields), nil
}

// ReadCounters reads some counters of the bus: its cost grows with their number, not with the
// number of all counters. One that never counted is 0. It leaves out unreadable ones: 0 would look
// like a reset.
func (in *Inspector) ReadCounters(ctx context.Context, counters []bus.Counter) (map[bus.Counter]int64, error) {
	counts := make(map[bus.Counter]int64, len(counters))
	err := in.EachCounter(ctx, PackCounters(counters), func(i int, count int64) { counts[counters[i]] = count })
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// PackCounters packs counters for [Inspector.EachCounter].
func PackCounters(counters []bus.Counter) []string {
	packed := make([]string, len(counters))
	for i, c := range counters {
		packed[i] = wire.PackCounter(c)
	}
	return packed
}

// EachCounter is [Inspector.ReadCounters] for many, which are packed: it calls a function with the
// place of each counter that it can read, and with its count.
func (in *Inspector) EachCounter(ctx context.Context, packed []string, each func(place int, count int64)) error {
	for first := 0; first < len(packed); first += countersPerTrip {
		some := packed[first:min(first+countersPerTrip, len(packed))]
		values, err := in.redis.HMGet(ctx, in.keys.Counters(), some...).Result()
		if err != nil && !rdb.Answered(err) {
			return rdb.Wrap("read counters", err)
		}
		for i, value := range values { // none where the key is no hash
			if value == nil {
				each(first+i, 0)
			} else if n, err := strconv.ParseInt(rdb.Text(value), 10, 64); err == nil {
				each(first+i, n)
			}
		}
	}
	return nil
}

// SwapMonitored records the counts that a metric service has got, for all workers, and returns the
// previously recorded ones; none the first time.
func (in *Inspector) SwapMonitored(ctx context.Context, counts map[bus.Counter]int64) (before map[bus.Counter]int64, err error) {
	values := make([]any, 0, 2*len(counts))
	for c, n := range counts {
		values = append(values, wire.PackCounter(c), n)
	}
	var old rdb.Reply[map[string]string]
	err = in.redis.Transaction(ctx, "note counters", func(pipe rdb.Commands) {
		old = pipe.HGetAll(ctx, in.keys.Monitored())
		if len(values) > 0 {
			pipe.Del(ctx, in.keys.Monitored())
			pipe.HSet(ctx, in.keys.Monitored(), values...)
		}
	})
	if err != nil {
		return nil, err
	}
	return unpackCounters(old.Val()), nil
}

func unpackCounters(fields map[string]string) map[bus.Counter]int64 {
	counts := make(map[bus.Counter]int64, len(fields))
	for field, value := range fields {
		n, err := strconv.ParseInt(value, 10, 64)
		if c, wrong := wire.UnpackCounter(field); err == nil && wrong == nil {
			counts[c] = n
		}
	}
	return counts
}
