package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

const (
	// gaugeLooks is how often a subscriber's batches are counted until nothing changes meanwhile.
	gaugeLooks = 10
	// clockSkew is how far the clocks of publishers may be apart: new batches are looked for among
	// those created since so long before the newest one known.
	clockSkew = time.Minute
	// recently is how far back the script looks that reads the gauges, and maxNewest at how many.
	recently  = time.Second
	maxNewest = 1000
)

// batchesOf are the batches of subscribers, by token, as far as they are known.
type batchesOf map[string]map[string]bool

// checkGauges compares the gauges with the batches there are, and looks at the batches of those
// subscribers again whose gauges do not fit, until nothing changes meanwhile. Those of a subscriber
// with batches of the Ruby original are skipped.
func (e *examination) checkGauges(ctx context.Context) error {
	doubtful := e.doubtfulGauges()
	return e.untilSteady(ctx, "the gauges of ", scan.Sorted(doubtful), func(token string) (bool, error) {
		done, err := e.checkGaugesOf(ctx, token, doubtful)
		if done {
			delete(doubtful, token)
		}
		return done, err
	})
}

// untilSteady checks something of subscribers again and again, each until the check is done because
// nothing has changed meanwhile. It notes what was not checked.
func (e *examination) untilSteady(
	ctx context.Context, what string, tokens []string, check func(token string) (done bool, err error),
) error {
	for look := 0; len(tokens) > 0 && look < gaugeLooks; look++ {
		e.paused = false
		if err := e.pause(ctx); err != nil {
			return err
		}
		var left []string
		for _, token := range tokens {
			done, err := check(token)
			if err != nil {
				return err
			}
			if !done {
				left = append(left, token)
			}
		}
		tokens = left
	}
	for _, token := range tokens {
		e.unchecked = append(e.unchecked, what+e.name(token))
	}
	return nil
}

// doubtfulGauges are the subscribers whose gauges do not fit, with their batches.
func (e *examination) doubtfulGauges() batchesOf {
	batches, events := map[string]int64{}, map[string]int64{}
	for _, gauge := range []string{keys.BatchGauge(), keys.EventGauge()} {
		for token := range e.Elements[gauge] {
			batches[token] = 0
		}
	}
	entries, originals := e.Queues[bus.QueueMain].Entries, map[string]bool{}
	for _, j := range entries {
		if j.Counts() {
			batches[j.Token]++
			events[j.Token] += j.Events
		}
		if j.Original {
			originals[j.Token] = true
		}
	}
	doubtful, said := batchesOf{}, e.Elements
	for token := range batches {
		fits := said[keys.BatchGauge()][token] == figure(batches[token]) && said[keys.EventGauge()][token] == figure(events[token])
		if !fits && !originals[token] {
			doubtful[token] = map[string]bool{}
		}
	}
	for packed, j := range entries {
		if bids := doubtful[j.Token]; bids != nil && j.Counts() {
			bids[packed[len(packed)-bus.UIDLen:]] = true
		}
	}
	return doubtful
}

// figure is a number as a gauge says it: nothing for 0.
func figure(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// readNewer takes in the batches that were opened since the scan.
func (e *examination) readNewer(ctx context.Context, doubtful batchesOf) error {
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
		if err := e.ReadKeys(ctx, e.batchKeys(unknown)); err != nil {
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
		offset += rdb.KeysPerTrip // among those of one time: what it skips takes Redis time
		if last := page[len(page)-1].Score; last > from {
			from, offset = last, 0
		}
	}
}

// checkGaugesOf counts a subscriber's batches, reads its gauges in one step with which of the
// newest batches are its own, and counts the batches again. A batch only grows, and does not come
// back once it is gone: if both counts are equal, and none of the newest was missed, the batches
// were these when the gauges were read. Else it is not done.
func (e *examination) checkGaugesOf(ctx context.Context, token string, doubtful batchesOf) (done bool, err error) {
	if err := e.readNewer(ctx, doubtful); err != nil {
		return false, err
	}
	before, err := e.lengths(ctx, token, doubtful[token])
	if err != nil {
		return false, err
	}
	since := rdb.FormatScore(e.Newest - float64(recently.Milliseconds()))
	moment, err := e.Redis.Run(ctx, scriptMoment, token, since, maxNewest).Strings()
	if err != nil {
		return false, err
	}
	after, err := e.lengths(ctx, token, doubtful[token])
	if err != nil || moment[2] == strconv.Itoa(maxNewest) || !maps.Equal(before, after) {
		return false, err
	}
	for _, bid := range moment[3:] {
		if _, known := before[bid]; !known {
			return false, nil // it is read before the next look
		}
	}
	var events int64
	for _, length := range after {
		events += max(0, length-store.BatchHeader)
	}
	e.addGauge(e.Keys.BatchGauge(), token, moment[0], int64(len(after)))
	e.addGauge(e.Keys.EventGauge(), token, moment[1], events)
	candidates := len(e.candidates)
	confirmed, err := e.confirm(ctx)
	return confirmed == candidates, err
}

// addGauge adds what a gauge says of a subscriber, unless it must, given what shows that it must.
func (e *examination) addGauge(key, token, said string, must int64, checks ...check) {
	set := command{"HSET", key, token, must}
	if must == 0 {
		set = command{"HDEL", key, token}
	}
	if said != figure(must) {
		problem := fmt.Sprintf("has %q for %s, must be %d", said, e.name(token), must)
		e.add(key, problem, "set right", append(checks, is(said, "HGET", key, token)), set)
	}
}

// lengths are those of the batches that are still there, and the subscriber's. The others are
// forgotten.
func (e *examination) lengths(ctx context.Context, token string, bids map[string]bool) (map[string]int64, error) {
	found := make(map[string]int64, len(bids))
	for some := range slices.Chunk(scan.Sorted(bids), rdb.KeysPerTrip) {
		lengths, owners := make([]rdb.Reply[int64], len(some)), make([]rdb.Reply[string], len(some))
		err := e.Redis.Reads(ctx, "lengths", func(pipe rdb.Commands) {
			for i, key := range e.batchKeys(some) {
				lengths[i], owners[i] = pipe.LLen(ctx, key), pipe.LIndex(ctx, key, 0)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, bid := range some {
			if lengths[i].Val() > 0 && e.Holder(owners[i].Val()) == token {
				found[bid] = lengths[i].Val()
			} else {
				delete(bids, bid)
			}
		}
	}
	return found, nil
}

func (e *examination) batchKeys(bids []string) []string {
	names := make([]string, len(bids))
	for i, bid := range bids {
		names[i] = e.Keys.Batch(bus.BatchID(bid))
	}
	return names
}
