package doctor

import (
	"math"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// wrongFor returns the problem of a batch that a subscriber's key lists, and the checks that prove
// it.
func wrongFor(e *Examination, token, bid string) (problem string, checks []Check) {
	switch j := e.Batch(bid); {
	case j.Original:
		return "", nil
	case !j.There:
		return "lists " + bid + ", which is not there", isGone(e, bid)
	case j.Token != token:
		batch := e.Keys.Batch(bus.BatchID(bid))
		return "lists " + bid + ", another subscriber's", []Check{Is(1, "EXISTS", batch), Not(token, "HOLDER", bid)}
	}
	return "", nil
}

func findCurrent(e *Examination) {
	for of, bids := range e.Each(keys.Current("")) {
		token, newest := layout.TokenOf(of), ""
		for _, bid := range Sorted(bids) { // at equal times, the last UID counts as the newest
			if j := e.Batch(bid); j.There && j.Token == token && j.Created >= e.Batch(newest).Created {
				newest = bid
			}
		}
		current, fitting := keys.Current("")+of, false
		for bid := range bids {
			problem, checks := wrongFor(e, token, bid)
			if problem == "" && !e.Batch(bid).Original && bid != newest {
				problem = "lists " + bid + " and a newer batch, must list one"
				checks = []Check{Is(1, "SISMEMBER", e.Full(current), newest), Is(token, "HOLDER", newest)}
			}
			if problem != "" {
				e.mustNotList(current, problem, bid, checks...)
			}
			fitting = fitting || problem == ""
		}
		if _, lane, ok := strings.Cut(of, "/"); ok && fitting {
			findNoLane(e, token, lane, current)
		}
	}
}

// findNoLane removes the current batch of a lane number beyond the subscriber's lanes. A batch that
// still takes events comes up at its time.
func findNoLane(e *Examination, token, lane, current string) {
	if count, unchanged := laneCount(e, token); laneNumber(lane) >= count {
		e.mustGo(current, "is of a lane that its subscriber does not have", unchanged...)
	}
}

// laneNumber reads a lane's number; text that is no number sorts above all.
func laneNumber(text string) int64 { return rdb.Integer(text, bus.MaxLanes) }

// laneCount returns how many lanes may hold batches of a subscriber, and the checks that prove it.
// An earlier subscription may have had more. Lanes of an earlier release keep their old names until
// the next of its batches is taken.
func laneCount(e *Examination, token string) (count int64, unchanged []Check) {
	options := keys.Options(bus.Token(token))
	said, former := e.Elements[options], e.Elements[keys.Delivery(bus.Token(token))]["former"]
	if former != "" || said["generation"] != "" || said["older"] != "" {
		return math.MaxInt64, nil
	}
	for _, field := range []string{"lanes", "past_lanes"} {
		count = max(count, rdb.Integer(said[field], 1))
		unchanged = append(unchanged, Is(said[field], "HGET", e.Full(options), field))
	}
	return count, unchanged
}

// longestPause is for how long the first of a lane may be put off, unless its subscriber is
// throttled, paused or paced: a job that cannot be taken waits a minute, by a clock that may go
// ahead of ours.
const longestPause = 2 * time.Minute

func findLanes(e *Examination) {
	latest := float64(time.Now().Add(longestPause).UnixMilli())
	for of, entries := range e.Each(keys.Lane(bus.JobBatch, "")) {
		token, lane := layout.TokenOf(of), e.Keys.Lane(bus.JobBatch, of)
		until, unchanged := blockedUntil(e, token)
		fitting := false
		for packed := range entries {
			bid, _ := BatchOf(bus.QueueMain, packed)
			problem, checks := wrongFor(e, token, bid)
			if bid == "" { // not a batch's job
				problem, checks = "lists "+wire.ShowJob(packed)+", which is not there", nil
			}
			if problem != "" {
				e.Add(lane, problem, "removed; the next in the lane is woken",
					append(checks, Not("", "ZSCORE", lane, packed)), Command{"LEAVE_LANE", lane, packed})
				continue
			}
			fitting = true
			// A batch that leaves a lane wakes the next, and the end of a throttle or a pause the first,
			// in the same step. So the first of a lane waits for no longer than that, or than one that
			// could not be taken, unless the batch before it left without waking it.
			if due := e.Batch(bid).Due; due > max(latest, until) {
				e.Add(lane, "begins with "+bid+", which waits for its turn, though nobody is before it", "woken",
					append(unchanged,
						Is(0, "ZRANK", lane, packed),
						Is(rdb.FormatScore(due), "ZSCORE", e.Keys.Scheduled(bus.QueueMain), packed),
					), Command{"WAKE_LANE", lane})
			}
		}
		if _, number, ok := strings.Cut(of, "/"); ok && fitting {
			findUnknownLane(e, token, laneNumber(number), e.Short(lane))
		}
	}
}

// findUnknownLane checks a lane whose number the subscriber no longer has: batches may be left in
// it. An invalid lane is removed, and its batches come up on their own.
func findUnknownLane(e *Examination, token string, number int64, lane string) {
	count, unchanged := laneCount(e, token)
	if number < count {
		return
	}
	switch {
	case number >= bus.MaxLanes:
		e.mustGo(lane, "is no lane of a subscriber", unchanged...)
	case e.IsSubscriber(token):
		e.Add(e.Full(lane), "is of a lane that its subscriber does not have", "noted in its options", append(unchanged, e.isThere(lane)),
			Command{"HSET", e.Keys.Options(bus.Token(token)), "past_lanes", strconv.FormatInt(number+1, 10)})
	}
}

// blockedUntil returns until when (ms) the head of a subscriber's lane may wait, and the checks
// that prove it. With strict order, a failed batch may wait for its retry in the lane. In an
// earlier release, which noted older, it waits for the batches of the earlier lanes.
func blockedUntil(e *Examination, token string) (until float64, unchanged []Check) {
	options := e.Elements[keys.Options(bus.Token(token))]
	if options["strict_order"] == "true" || options["older"] != "" {
		return math.Inf(1), nil
	}
	delivery := keys.Delivery(bus.Token(token))
	for _, field := range []string{"throttled_until", "paused_until", "paced_until"} {
		said := e.Elements[delivery][field]
		if at, err := strconv.ParseFloat(said, 64); err == nil { // an unreadable one does not block
			until = max(until, at)
		}
		unchanged = append(unchanged, Is(said, "HGET", e.Full(delivery), field))
	}
	return until, unchanged
}
