package doctor

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// The scripts read gauges and the batches to compare them with. Their headers document arguments
// and results.
var (
	scriptMoment = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "moment"))
	scriptSizes  = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "sizes"))
)

const (
	// clockSkew is how far the clocks of publishers may be apart: new batches are looked for among
	// those created since so long before the newest one known.
	clockSkew = time.Minute
	// recently is how far back the script looks that reads the gauges, and maxNewest at how many.
	recently  = time.Second
	maxNewest = 1000
)

// batchesOf are the batches of subscribers, by token, as far as they are known.
type batchesOf map[string]map[string]bool

// checkGauges compares the gauges with the batches, and counts the batches of subscribers whose
// gauges differ again until nothing changes meanwhile. It skips subscribers with batches of the
// Ruby original.
func checkGauges(ctx context.Context, e *Examination) error {
	doubtful, err := doubtfulGauges(ctx, e)
	if err != nil {
		return err
	}
	show := func(token string) string { return "the gauges of " + e.Name(token) }
	return e.UntilSteady(ctx, show, Sorted(doubtful), func(token string) (bool, error) {
		done, err := checkGaugesOf(ctx, e, token, doubtful)
		if done {
			delete(doubtful, token)
		}
		return done, err
	})
}

// gauges are a subscriber's gauges, read or computed.
type gauges struct{ batches, events, bytes int64 }

func (g *gauges) add(one size) {
	g.batches++
	g.events += max(0, one.length-store.BatchHeader)
	g.bytes += one.bytes
}

// doubtfulGauges are the subscribers whose gauges do not fit, with their batches.
func doubtfulGauges(ctx context.Context, e *Examination) (batchesOf, error) {
	all := batchesOf{}
	for _, gauge := range []string{keys.BatchGauge(), keys.EventGauge(), keys.BytesGauge()} {
		for token := range e.Elements[gauge] {
			all[token] = map[string]bool{}
		}
	}
	originals := map[string]bool{}
	for packed, j := range e.Queues[bus.QueueMain].Entries {
		if j.Counts() {
			if all[j.Token] == nil {
				all[j.Token] = map[string]bool{}
			}
			all[j.Token][packed[len(packed)-bus.UIDLen:]] = true
		}
		if j.Original {
			originals[j.Token] = true
		}
	}
	for token, bids := range all {
		sizes, err := sizesOf(ctx, e, token, bids)
		if err != nil {
			return nil, err
		}
		if originals[token] || fit(e, token, sizes) {
			delete(all, token)
		}
	}
	return all, nil
}

// fit reports whether the gauges matched a subscriber's batches when they were read.
func fit(e *Examination, token string, sizes map[string]size) bool {
	var must gauges
	for _, one := range sizes {
		must.add(one)
	}
	return e.Elements[keys.BatchGauge()][token] == Figure(must.batches) &&
		e.Elements[keys.EventGauge()][token] == Figure(must.events) &&
		e.Elements[keys.BytesGauge()][token] == Figure(must.bytes)
}

// readNewer takes in the batches that were opened since the scan.
func readNewer(ctx context.Context, e *Examination, doubtful batchesOf) error {
	from, offset := e.Newest-float64(clockSkew.Milliseconds()), int64(0)
	for {
		page, err := e.Redis.MembersFrom(ctx, e.Keys.BatchesIndex(), from, offset, rdb.KeysPerTrip)
		if err != nil {
			return err
		}
		var unknown []string
		for _, member := range page {
			e.TakeIndexed(member.Member, rdb.FormatScore(member.Score))
			if bus.IsUID(member.Member) && !e.Batch(member.Member).There {
				unknown = append(unknown, member.Member)
			}
		}
		if err := e.ReadKeys(ctx, batchKeys(e, unknown)); err != nil {
			return err
		}
		for _, bid := range unknown {
			if j := e.Batch(bid); j.Counts() && doubtful[j.Token] != nil {
				doubtful[j.Token][bid] = true
			}
		}
		if len(page) < rdb.KeysPerTrip {
			return nil
		}
		offset += rdb.KeysPerTrip // skips members of equal score, which costs Redis time
		if last := page[len(page)-1].Score; last > from {
			from, offset = last, 0
		}
	}
}

// checkGaugesOf measures a subscriber's batches, reads its gauges in one step with which of the
// newest batches are its own, and measures the batches again. A batch only grows, and does not come
// back once it is gone: if both measures are equal, and none of the newest was missed, the batches
// were these when the gauges were read. Else it is not done.
func checkGaugesOf(ctx context.Context, e *Examination, token string, doubtful batchesOf) (done bool, err error) {
	if err := readNewer(ctx, e, doubtful); err != nil {
		return false, err
	}
	before, err := sizesOf(ctx, e, token, doubtful[token])
	if err != nil {
		return false, err
	}
	since := rdb.FormatScore(e.Newest - float64(recently.Milliseconds()))
	moment, err := e.Redis.Run(ctx, scriptMoment, token, since, maxNewest).Strings()
	if err != nil {
		return false, err
	}
	after, err := sizesOf(ctx, e, token, doubtful[token])
	if err != nil || moment[3] == strconv.Itoa(maxNewest) || !maps.Equal(before, after) {
		return false, err
	}
	for _, bid := range moment[4:] {
		if _, known := before[bid]; !known {
			return false, nil // it is read before the next look
		}
	}
	var must gauges
	for _, one := range after {
		must.add(one)
	}
	e.AddGauge(e.Keys.BatchGauge(), token, moment[0], must.batches)
	e.AddGauge(e.Keys.EventGauge(), token, moment[1], must.events)
	e.AddGauge(e.Keys.BytesGauge(), token, moment[2], must.bytes)
	return e.Confirm(ctx)
}

// size is how large a batch is: the length of its list, and the bytes of its packed events.
type size struct{ length, bytes int64 }

// maxSized is after how many events one script stops that measures batches.
const maxSized = 5000

// sizesOf measures the batches that are still there, and the subscriber's. The others are
// forgotten.
func sizesOf(ctx context.Context, e *Examination, token string, bids map[string]bool) (map[string]size, error) {
	found := make(map[string]size, len(bids))
	for left := Sorted(bids); len(left) > 0; {
		args := []any{maxSized}
		for _, bid := range left[:min(len(left), rdb.KeysPerTrip)] {
			args = append(args, bid)
		}
		values, err := e.Redis.Run(ctx, scriptSizes, args...).Strings()
		if err != nil {
			return nil, err
		}
		for ; len(values) > 0; values, left = values[3:], left[1:] {
			one := size{rdb.Integer(values[1], 0), rdb.Integer(values[2], 0)}
			if bid := left[0]; one.length > 0 && e.Holder(values[0]) == token {
				found[bid] = one
			} else {
				delete(bids, bid)
			}
		}
	}
	return found, nil
}

func batchKeys(e *Examination, bids []string) []string {
	names := make([]string, len(bids))
	for i, bid := range bids {
		names[i] = e.Keys.Batch(bus.BatchID(bid))
	}
	return names
}

// AddGauge adds a finding for a subscriber's gauge that differs from its required value. The checks
// prove that value.
func (e *Examination) AddGauge(key, token, said string, must int64, checks ...Check) {
	set := Command{"HSET", key, token, must}
	if must == 0 {
		set = Command{"HDEL", key, token}
	}
	if said != Figure(must) {
		problem := fmt.Sprintf("has %q for %s, must be %d", said, e.Name(token), must)
		e.Add(key, problem, "set right", append(checks, Is(said, "HGET", key, token)), set)
	}
}

// Figure formats a gauge: 0 is the empty string.
func Figure(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
