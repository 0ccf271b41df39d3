package inspect

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// waiting describes why the batches of a subscriber wait.
type waiting struct {
	// batches is the number of batches, inLanes how many of them stand in a lane.
	batches, inLanes int64
	// comeUp are the batches that come up by themselves.
	comeUp []candidate
	// all is whether these, and the lanes, are all batches, if the numbers agree.
	all bool
}

// candidate is a batch that comes up by itself: the head of a lane, or one that takes in events or
// is to be retried, which may stand in its lane too.
type candidate struct{ job, lane string }

// failedSearched is how many of the batches that wait for a retry a search reads.
const failedSearched = 100

// laneReplies are the batches that stand in the lanes of a subscriber, take in events there or have
// failed.
type laneReplies struct {
	lanes          []string
	lengths        []rdb.Reply[int64]
	heads, current []rdb.Reply[[]string]
	failed         rdb.Reply[[]string]
}

func (in *Inspector) askLanes(ctx context.Context, pipe rdb.Commands, token bus.Token, lanes int) (q laneReplies) {
	for i := range lanes {
		name := in.lane(token, i)
		q.lanes, q.lengths = append(q.lanes, name), append(q.lengths, pipe.ZCard(ctx, name))
		q.heads = append(q.heads, pipe.ZRange(ctx, name, 0, 0))
		q.current = append(q.current, pipe.SMembers(ctx, in.keys.CurrentOfLane(token, i)))
	}
	q.failed = pipe.ZRange(ctx, in.keys.Failed(token), 0, failedSearched-1)
	return q
}

// readQueue reads how many lanes a failed batch holds up, and when the next delivery can begin, in
// one round trip more if there are several lanes.
func (in *Inspector) readQueue(ctx context.Context, d *Detail, r records, now time.Time) error {
	w, q, heads := waiting{batches: rdb.Integer(r.batches.Val(), 0)}, r.standing, r.standing.heads
	isQueued, isStrict, isLaned := w.batches > 0, d.Options.Options.StrictOrder, r.lanes.all > 1
	err := in.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		switch {
		case isLaned && isQueued:
			q = in.askLanes(ctx, pipe, d.Token, r.lanes.all)
			heads = q.heads
		case isLaned && isStrict:
			heads = in.askHeads(ctx, pipe, d.Token, r.lanes.all)
		}
	})
	if err == nil && isQueued {
		err = in.findWaiting(ctx, d.Token, r.lanes, q, &w)
	}
	if err != nil {
		return err
	}
	due, turns := make([]rdb.Reply[float64], len(w.comeUp)), make([]rdb.Reply[int64], len(w.comeUp))
	var failed []rdb.Reply[float64]
	err = in.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		for i, c := range w.comeUp {
			due[i], turns[i] = pipe.ZScore(ctx, in.keys.Scheduled(bus.QueueMain), c.job), pipe.ZRank(ctx, c.lane, c.job)
		}
		if isStrict {
			failed = in.askFailed(ctx, pipe, d.Token, heads)
		}
	})
	d.Blocked = countFound(failed)
	if err == nil && isQueued {
		d.NextDeliveryAt = slices.MaxFunc([]time.Time{w.earliest(due, turns, now), r.holds.Until()}, time.Time.Compare)
	}
	return err
}

// findWaiting finds why a subscriber's batches wait, given the contents of its lanes.
func (in *Inspector) findWaiting(ctx context.Context, token bus.Token, counts laneCounts, q laneReplies, w *waiting) error {
	w.all = len(q.failed.Val()) < failedSearched
	for i, name := range q.lanes {
		w.inLanes += q.lengths[i].Val()
		for _, job := range q.heads[i].Val() {
			w.add(candidate{job, name})
		}
		for _, batch := range q.current[i].Val() {
			w.add(candidate{jobOf(batch), name})
		}
	}
	failed := make([]bus.BatchID, len(q.failed.Val()))
	for i, batch := range q.failed.Val() {
		failed[i] = bus.BatchID(batch)
	}
	lanes, err := in.lanesOf(ctx, counts, failed)
	for i, lane := range lanes {
		w.add(candidate{jobOf(string(failed[i])), in.lane(token, lane)})
	}
	return err
}

// HoldFields are the fields of [Holds] in Redis: times in ms, paced_until with fractions.
var HoldFields = []string{"paused_until", "throttled_until", "paced_until"}

// ParseHolds reads the values of [HoldFields]. A value that is missing, or no number, is zero.
func ParseHolds(values []any) Holds {
	var times [3]time.Time
	for i, value := range values {
		text := rdb.Text(value)
		if text == "" { // it is often not there, and an error takes memory
			continue
		}
		if ms, err := strconv.ParseFloat(text, 64); err == nil {
			times[i] = time.UnixMilli(int64(math.Ceil(ms)))
		}
	}
	return Holds{times[0], times[1], times[2]}
}

// Until returns the time until which nothing is delivered, for any reason.
func (h Holds) Until() time.Time {
	return slices.MaxFunc([]time.Time{h.Paused, h.Throttled, h.Paced}, time.Time.Compare)
}

// Failing reports whether a delivery has failed since the last success, and since the client last
// subscribed: throttled_until is absent or 0 otherwise, and 1 while a success is being acted upon.
func (h Holds) Failing() bool { return h.Throttled.UnixMilli() > 1 }

// after leaves the times after one.
func (h Holds) after(now time.Time) Holds {
	for _, at := range []*time.Time{&h.Paused, &h.Throttled, &h.Paced} {
		if !at.After(now) {
			*at = time.Time{}
		}
	}
	return h
}

func jobOf(batch string) string {
	return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{batch}})
}

// add adds a candidate, unless it is there.
func (w *waiting) add(c candidate) {
	if !slices.Contains(w.comeUp, c) {
		w.comeUp = append(w.comeUp, c)
	}
}

// earliest returns when the first of the waiting jobs comes up: now, if one is instant or in
// flight.
func (w *waiting) earliest(due []rdb.Reply[float64], turns []rdb.Reply[int64], now time.Time) time.Time {
	at, known := bus.Forever, w.inLanes
	for i := range w.comeUp {
		stands := turns[i].Err() == nil
		if stands && turns[i].Val() > 0 {
			continue // it waits for the head
		}
		if !stands {
			known++
		}
		comesUp := now
		if due[i].Err() == nil {
			comesUp = time.UnixMilli(int64(due[i].Val()))
		}
		if comesUp.Before(at) {
			at = comesUp
		}
	}
	if w.all && known < w.batches && now.Before(at) { // the others are due, and no worker has seen them
		at = now
	}
	return at
}
