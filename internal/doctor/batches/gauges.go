package batches

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
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

// checkGauges compares the gauges with the batches there are, and looks at the batches of those
// subscribers again whose gauges do not fit, until nothing changes meanwhile. Those of a subscriber
// with batches of the Ruby original are skipped.
func checkGauges(ctx context.Context, e *exam.Examination) error {
	doubtful := doubtfulGauges(e)
	show := func(token string) string { return "the gauges of " + e.Name(token) }
	return e.UntilSteady(ctx, show, scan.Sorted(doubtful), func(token string) (bool, error) {
		done, err := checkGaugesOf(ctx, e, token, doubtful)
		if done {
			delete(doubtful, token)
		}
		return done, err
	})
}

// doubtfulGauges are the subscribers whose gauges do not fit, with their batches.
func doubtfulGauges(e *exam.Examination) batchesOf {
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
		fits := said[keys.BatchGauge()][token] == exam.Figure(batches[token]) && said[keys.EventGauge()][token] == exam.Figure(events[token])
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

// readNewer takes in the batches that were opened since the scan.
func readNewer(ctx context.Context, e *exam.Examination, doubtful batchesOf) error {
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
func checkGaugesOf(ctx context.Context, e *exam.Examination, token string, doubtful batchesOf) (done bool, err error) {
	if err := readNewer(ctx, e, doubtful); err != nil {
		return false, err
	}
	before, err := lengths(ctx, e, token, doubtful[token])
	if err != nil {
		return false, err
	}
	since := rdb.FormatScore(e.Newest - float64(recently.Milliseconds()))
	moment, err := e.Redis.Run(ctx, scriptMoment, token, since, maxNewest).Strings()
	if err != nil {
		return false, err
	}
	after, err := lengths(ctx, e, token, doubtful[token])
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
	e.AddGauge(e.Keys.BatchGauge(), token, moment[0], int64(len(after)))
	e.AddGauge(e.Keys.EventGauge(), token, moment[1], events)
	return e.Confirm(ctx)
}

// lengths are those of the batches that are still there, and the subscriber's. The others are
// forgotten.
func lengths(ctx context.Context, e *exam.Examination, token string, bids map[string]bool) (map[string]int64, error) {
	found := make(map[string]int64, len(bids))
	for some := range slices.Chunk(scan.Sorted(bids), rdb.KeysPerTrip) {
		lengths, owners := make([]rdb.Reply[int64], len(some)), make([]rdb.Reply[string], len(some))
		err := e.Redis.Reads(ctx, "lengths", func(pipe rdb.Commands) {
			for i, key := range batchKeys(e, some) {
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

func batchKeys(e *exam.Examination, bids []string) []string {
	names := make([]string, len(bids))
	for i, bid := range bids {
		names[i] = e.Keys.Batch(bus.BatchID(bid))
	}
	return names
}
