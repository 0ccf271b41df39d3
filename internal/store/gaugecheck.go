package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

const (
	// batchesPerStep is how many batches one step adds up.
	batchesPerStep = 1000
	// gaugeRounds is how often a subscriber's gauges are compared until it is known whether they are wrong.
	gaugeRounds = 10
	// clockSkew is how far the clocks of publishers may be apart: a new batch is looked for so far before the newest.
	clockSkew = time.Minute
	// recently is how far back it is looked for each time, for what is counted anyway only if nothing was missed.
	recently = time.Second
)

// totals are a subscriber's batches and events, added up, and what the gauges said then.
type totals struct {
	batches, events int64
	said            gauges
	fixed           bool
}

func (t totals) right() bool {
	return t.said == gauges{figure(t.batches), figure(t.events)}
}

// figure is a number as a gauge says it: nothing for 0.
func figure(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// owned is a subscriber whose gauges are in doubt.
type owned struct {
	bids []string
	// wrong are totals that differ from the gauges; nil unless all is known that was there when they were taken.
	wrong *totals
	fresh bool // batches of its were found that were not known before
}

// checkGauges compares the gauges with the batches there are. A sum may lack a batch that was opened meanwhile, and
// one that took several steps is not of one moment. So a wrong sum counts only if afterwards no batch is found that was
// not known; and, when it took several steps, if the gauges were the same all the time: whatever changes a subscriber's batches changes its gauges, unless it is the exchange of a batch for a new one.
func (e *examination) checkGauges(ctx context.Context) error {
	doubtful := e.doubtfulGauges()
	for round := 0; len(doubtful) > 0; round++ {
		if err := e.readNewest(ctx, doubtful, clockSkew); err != nil {
			return err
		}
		for _, token := range sorted(doubtful) {
			o := doubtful[token]
			if o.wrong != nil && !o.fresh {
				done, err := e.tellGauges(ctx, token, o)
				if err != nil {
					return err
				}
				if done {
					delete(doubtful, token)
					continue
				}
			}
			if len(o.bids) > batchesPerStep {
				if err := e.readNewest(ctx, doubtful, recently); err != nil {
					return err
				}
			}
			t, err := e.addUp(ctx, token, o, nil, rdb.FormatScore(e.newest.before(recently)))
			if err != nil {
				return err
			}
			o.wrong, o.fresh = t, false
			if t != nil && t.right() {
				delete(doubtful, token)
			}
		}
		if round == gaugeRounds {
			break
		}
	}
	for _, token := range sorted(doubtful) {
		e.unchecked = append(e.unchecked, "the gauges of "+e.name(token))
	}
	return nil
}

// doubtfulGauges are those that do not equal what the survey has seen. Those of a subscriber with batches of the Ruby
// original are left alone.
func (e *examination) doubtfulGauges() map[string]*owned {
	seen, originals := map[string]totals{}, map[string]bool{}
	for _, b := range e.batches {
		if b.original {
			originals[b.token] = true
		}
		if t := seen[b.token]; b.there && b.token != "" {
			seen[b.token] = totals{batches: t.batches + 1, events: t.events + b.events}
		}
	}
	doubtful := map[string]*owned{}
	for token, said := range e.gauges {
		t := seen[token]
		t.said = said
		seen[token] = t
	}
	for token, t := range seen {
		if !t.right() && !originals[token] {
			doubtful[token] = &owned{}
		}
	}
	for bid, b := range e.batches {
		if o := doubtful[b.token]; o != nil && b.there {
			o.bids = append(o.bids, bid)
		}
	}
	return doubtful
}

// addUp adds up a subscriber's batches. It returns nil when something changed meanwhile. With expected, the gauges are fixed
// if they still differ by as much.
func (e *examination) addUp(ctx context.Context, token string, o *owned, expected *totals, since string) (*totals, error) {
	var t totals
	var first gauges
	steps := slices.Collect(slices.Chunk(o.bids, batchesPerStep))
	if len(steps) == 0 {
		steps = [][]string{nil}
	}
	for i, bids := range steps {
		args := []any{false, token, "", t.batches, t.events, "", "", 0, 0}
		if len(steps) == 1 { // else the script would not know which it has added up before
			args[2] = since
		}
		if i == len(steps)-1 && expected != nil {
			args[0] = true
			args[5], args[6], args[7], args[8] = expected.said.batches, expected.said.events, expected.batches, expected.events
		}
		for _, bid := range bids {
			args = append(args, bid)
		}
		reply, err := e.store.redis.Run(ctx, scriptCheckGauges, args...).List()
		if err != nil {
			return nil, rdb.Wrap("check", err)
		}
		t.batches, t.events = reply[0].(int64), reply[1].(int64)
		t.said = gauges{text(reply[2]), text(reply[3])}
		t.fixed = reply[5].(int64) == 1
		for _, bid := range reply[4].([]any) {
			o.bids = append(o.bids, text(bid))
			e.batches[text(bid)] = batch{token: token, there: true, indexed: true}
		}
		if i == 0 {
			first = t.said
		} else if t.said != first {
			return nil, nil
		}
	}
	return &t, nil
}

// tellGauges tells of gauges that are wrong. It reports whether it did, which it does not if they were to be fixed and have
// changed meanwhile.
func (e *examination) tellGauges(ctx context.Context, token string, o *owned) (done bool, err error) {
	if e.fix {
		t, err := e.addUp(ctx, token, o, o.wrong, "")
		if err != nil || t == nil || !t.fixed {
			return false, err
		}
	}
	for _, gauge := range []struct {
		key, said string
		is        int64
	}{
		{e.keys.BatchGauge(), o.wrong.said.batches, o.wrong.batches},
		{e.keys.EventGauge(), o.wrong.said.events, o.wrong.events},
	} {
		if gauge.said != figure(gauge.is) {
			e.found(gauge.key, "set right", "has %q for %s, must be %s", gauge.said, e.name(token), strconv.FormatInt(gauge.is, 10))
		}
	}
	return true, nil
}

// readNewest finds the batches that were opened since it did so last, or since the survey: it looks through those
// created since a little before the newest one known then.
func (e *examination) readNewest(ctx context.Context, doubtful map[string]*owned, little time.Duration) error {
	from, offset := e.newest.before(little), int64(0)
	for {
		page, err := e.store.redis.MembersFrom(ctx, e.keys.BatchesIndex(), from, offset, rdb.ElementsPerTrip)
		if err != nil {
			return rdb.Wrap("check", err)
		}
		var bids []string
		for _, entry := range page {
			if bid := entry.Member; !e.batches[bid].there {
				bids = append(bids, bid)
			}
			e.newest.saw(entry.Score)
		}
		if err := e.readOwners(ctx, bids, doubtful); err != nil {
			return err
		}
		if len(page) < rdb.ElementsPerTrip {
			return nil
		}
		if last := page[len(page)-1].Score; last != from {
			from, offset = last, 0
		} else { // more of one time than a page has
			offset += rdb.ElementsPerTrip
		}
	}
}

func (e *examination) readOwners(ctx context.Context, bids []string, doubtful map[string]*owned) error {
	if len(bids) == 0 {
		return nil
	}
	owners := make([]rdb.Reply[string], len(bids))
	err := e.store.redis.Pipelined(ctx, "check", func(pipe rdb.Commands) {
		for i, bid := range bids {
			owners[i] = pipe.LIndex(ctx, e.keys.Batch(bus.BatchID(bid)), 0)
		}
	})
	if err != nil {
		return err
	}
	for i, bid := range bids {
		token := owners[i].Val()
		if token == "" { // delivered meanwhile
			continue
		}
		e.batches[bid] = batch{token: token, there: true, indexed: true}
		if o := doubtful[token]; o != nil {
			o.bids = append(o.bids, bid)
			o.fresh = true
		}
	}
	return nil
}

// creation is when the newest batch known was created, in ms since the Unix epoch. One that is said to be of the
// future does not count.
type creation float64

func (c *creation) saw(score float64) {
	*c = max(*c, creation(min(score, float64(time.Now().UnixMilli()))))
}

// before is a little before that, as a score.
func (c creation) before(little time.Duration) float64 {
	return float64(c) - float64(little.Milliseconds())
}
