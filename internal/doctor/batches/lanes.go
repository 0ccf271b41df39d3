package batches

import (
	"math"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// wrongFor is what is wrong with a batch that a key of a subscriber lists, and what shows it.
func wrongFor(e *exam.Examination, token, bid string) (problem string, checks []exam.Check) {
	switch j := e.Batch(bid); {
	case j.Original:
		return "", nil
	case !j.There:
		return "lists " + bid + ", which is not there", isGone(e, bid)
	case j.Token != token:
		batch := e.Keys.Batch(bus.BatchID(bid))
		return "lists " + bid + ", another subscriber's", []exam.Check{exam.Is(1, "EXISTS", batch), exam.Not(token, "HOLDER", bid)}
	}
	return "", nil
}

func findCurrent(e *exam.Examination) {
	for of, bids := range e.Each(keys.Current("")) {
		token, newest := scan.TokenOf(of), ""
		for _, bid := range scan.Sorted(bids) { // of those of one time, the last UID counts as the newest
			if j := e.Batch(bid); j.There && j.Token == token && j.Created >= e.Batch(newest).Created {
				newest = bid
			}
		}
		current := e.Keys.Current("") + of
		for bid := range bids {
			problem, checks := wrongFor(e, token, bid)
			if problem == "" && !e.Batch(bid).Original && bid != newest {
				problem = "lists " + bid + " and a newer batch, must list one"
				checks = []exam.Check{exam.Is(1, "SISMEMBER", current, newest), exam.Is(token, "HOLDER", newest)}
			}
			if problem != "" {
				e.Add(current, problem, "removed", append(checks, exam.Is(1, "SISMEMBER", current, bid)),
					exam.Command{"SREM", current, bid})
			}
		}
	}
}

// longestPause is for how long the first of a lane may be put off, unless its subscriber is
// throttled, paused or paced: a job that cannot be taken waits a minute, by a clock that may go
// ahead of ours.
const longestPause = 2 * time.Minute

func findLanes(e *exam.Examination) {
	latest := float64(time.Now().Add(longestPause).UnixMilli())
	for of, entries := range e.Each(jobs.Lane(bus.JobBatch, "")) {
		token, lane := scan.TokenOf(of), e.Jobs.Lane(bus.JobBatch, of)
		until, unchanged := blockedUntil(e, token)
		for packed := range entries {
			bid, _ := scan.BatchOf(bus.QueueMain, packed)
			problem, checks := wrongFor(e, token, bid)
			if bid == "" { // what is no batch's job
				problem, checks = "lists "+wire.ShowJob(packed)+", which is not there", nil
			}
			if problem != "" {
				e.Add(lane, problem, "removed; the next in the lane is woken",
					append(checks, exam.Not("", "ZSCORE", lane, packed)), exam.Command{"LEAVE_LANE", lane, packed})
				continue
			}
			// A batch that leaves a lane wakes the next, and the end of a throttle or a pause the first,
			// in the same step. So the first of a lane waits for no longer than that, or than one that
			// could not be taken, unless the batch before it left without waking it.
			if due := e.Batch(bid).Due; due > max(latest, until) {
				e.Add(lane, "begins with "+bid+", which waits for its turn, though nobody is before it", "woken",
					append(unchanged,
						exam.Is(0, "ZRANK", lane, packed),
						exam.Is(rdb.FormatScore(due), "ZSCORE", e.Jobs.Scheduled(bus.QueueMain), packed),
					), exam.Command{"WAKE_LANE", lane})
			}
		}
	}
}

// blockedUntil is until when (ms) the first of a subscriber's lane may wait, and what shows that it
// still is. One that failed may wait for its retry in the lane if the order is strict, and one
// behind a change of the lanes for those before it.
func blockedUntil(e *exam.Examination, token string) (until float64, unchanged []exam.Check) {
	options := e.Elements[keys.Options(bus.Token(token))]
	if options["strict_order"] == "true" || options["older"] != "" {
		return math.Inf(1), nil
	}
	delivery := keys.Delivery(bus.Token(token))
	for _, field := range []string{"throttled_until", "paused_until", "paced_until"} {
		said := e.Elements[delivery][field]
		if at, err := strconv.ParseFloat(said, 64); err == nil { // what cannot be read blocks nothing
			until = max(until, at)
		}
		unchanged = append(unchanged, exam.Is(said, "HGET", e.Full(delivery), field))
	}
	return until, unchanged
}
