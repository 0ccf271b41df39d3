package doctor

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
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

// figure is a number as a gauge says it: nothing for 0.
func figure(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// totals are what gauges must be.
type totals struct{ batches, events int64 }

func (t totals) agree(g gauges) bool { return g == gauges{figure(t.batches), figure(t.events)} }

// checkGauges compares the gauges with the batches there are. Those of a subscriber with batches of
// the Ruby original are skipped.
func (e *examination) checkGauges(ctx context.Context) error {
	seen, originals := map[string]totals{}, map[string]bool{}
	for token := range e.gauges {
		seen[token] = totals{}
	}
	for _, b := range e.batches {
		if b.original {
			originals[b.token] = true
		}
		if b.there && b.token != "" {
			t := seen[b.token]
			seen[b.token] = totals{t.batches + 1, t.events + b.events}
		}
	}
	known := map[string]map[string]bool{} // the batches of those whose gauges do not fit
	for token, t := range seen {
		if !originals[token] && !t.agree(e.gauges[token]) {
			known[token] = map[string]bool{}
		}
	}
	for bid, b := range e.batches {
		if known[b.token] != nil && b.there {
			known[b.token][bid] = true
		}
	}
	return e.confirmGauges(ctx, known)
}

// confirmGauges looks at the gauges of subscribers, whose batches are given as far as they are
// known, until nothing has changed meanwhile.
func (e *examination) confirmGauges(ctx context.Context, known map[string]map[string]bool) error {
	for look := 0; len(known) > 0 && look < gaugeLooks; look++ {
		if err := e.doctor.pause(ctx); err != nil {
			return err
		}
		for _, token := range sorted(known) {
			done, err := e.confirmGaugesOf(ctx, token, known[token])
			if err != nil {
				return err
			}
			if done {
				delete(known, token)
			}
		}
	}
	for _, token := range sorted(known) {
		e.unchecked = append(e.unchecked, "the gauges of "+e.name(token))
	}
	return nil
}

// confirmGaugesOf looks at one subscriber's gauges, and reports them if they are wrong. It is done
// unless something has changed meanwhile.
func (e *examination) confirmGaugesOf(
	ctx context.Context, token string, bids map[string]bool,
) (done bool, err error) {
	if err := e.readNewest(ctx, token, bids); err != nil {
		return false, err
	}
	said, must, certain, err := e.lookAtGauges(ctx, token, bids)
	if err != nil || !certain || must.agree(said) {
		return certain, err
	}
	if e.fix {
		n, err := e.redis.Run(ctx, scriptGauges,
			true, token, said.batches, said.events, must.batches, must.events).Int()
		if err != nil || n == 0 { // they have changed
			return false, err
		}
	}
	e.reportGauge(e.keys.BatchGauge(), token, said.batches, must.batches)
	e.reportGauge(e.keys.EventGauge(), token, said.events, must.events)
	return true, nil
}

func (e *examination) reportGauge(key, token, said string, must int64) {
	if said != figure(must) {
		e.found(key, "set right", "has %q for %s, must be %d", said, e.name(token), must)
	}
}

// lookAtGauges counts a subscriber's batches, reads its gauges in one step with which of the newest
// batches are its own, and counts the batches again. A batch only grows, and does not come back
// once it is gone: if both counts are equal, and none of the newest was missed, the batches were
// these when the gauges were read.
func (e *examination) lookAtGauges(
	ctx context.Context, token string, bids map[string]bool,
) (said gauges, must totals, certain bool, err error) {
	before, err := e.lengths(ctx, token, bids)
	if err != nil {
		return said, must, false, err
	}
	since := e.newest - float64(recently.Milliseconds())
	reply, err := e.redis.Run(ctx, scriptMoment, token, rdb.FormatScore(since), maxNewest).Strings()
	if err != nil {
		return said, must, false, err
	}
	certain = reply[2] != strconv.Itoa(maxNewest)
	for _, bid := range reply[3:] {
		if _, known := before[bid]; !known {
			bids[bid], certain = true, false
		}
	}
	after, err := e.lengths(ctx, token, bids)
	for _, length := range after {
		must.batches++
		must.events += max(0, length-store.BatchHeader)
	}
	return gauges{reply[0], reply[1]}, must, certain && maps.Equal(before, after), err
}

// lengths are those of the batches that are still there, and the subscriber's. The others are
// forgotten.
func (e *examination) lengths(
	ctx context.Context, token string, bids map[string]bool,
) (map[string]int64, error) {
	found := make(map[string]int64, len(bids))
	for some := range slices.Chunk(slices.Collect(maps.Keys(bids)), rdb.KeysPerTrip) {
		lengths, owners := make([]rdb.Reply[int64], len(some)), make([]rdb.Reply[string], len(some))
		err := e.redis.Reads(ctx, "lengths", func(pipe rdb.Commands) {
			for i, bid := range some {
				key := e.keys.Batch(bus.BatchID(bid))
				lengths[i], owners[i] = pipe.LLen(ctx, key), pipe.LIndex(ctx, key, 0)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, bid := range some {
			if lengths[i].Val() > 0 && e.holder(owners[i].Val()) == token {
				found[bid] = lengths[i].Val()
			} else {
				delete(bids, bid)
			}
		}
	}
	return found, nil
}

// readNewest takes in a subscriber's batches that were opened since the scan.
func (e *examination) readNewest(ctx context.Context, token string, bids map[string]bool) error {
	from := e.newest - float64(clockSkew.Milliseconds())
	for offset := int64(0); ; offset += rdb.ElementsPerTrip {
		page, err := e.redis.MembersFrom(ctx, e.keys.BatchesIndex(), from, offset, rdb.ElementsPerTrip)
		if err != nil {
			return err
		}
		unknown := map[string]bool{}
		for _, entry := range page {
			if b := e.batches[entry.Member]; !b.there || b.token == token {
				unknown[entry.Member] = true
			}
			e.sawBatchOf(rdb.FormatScore(entry.Score))
		}
		found, err := e.lengths(ctx, token, unknown)
		for bid := range found {
			bids[bid] = true
		}
		if err != nil || len(page) < rdb.ElementsPerTrip {
			return err
		}
	}
}
