package doctor

import (
	"cmp"
	"slices"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
)

// findRenamed looks for what an earlier version of the bus had under other names.
func findRenamed(e *exam.Examination) {
	for bid := range e.Each(scan.OldTraceparents) {
		old, today := e.Full(scan.OldTraceparents+bid), bus.BatchID(bid)
		e.Add(old, "is what is "+keys.Traceparents(today)+" today", "moved there",
			[]exam.Check{exam.Is(1, "EXISTS", old)},
			exam.Command{"RENAMENX", old, e.Keys.Traceparents(today)}, exam.Command{"DEL", old})
	}
	for token, fields := range e.Each(keys.Subscriber("")) {
		old, today := e.Keys.Subscriber(bus.Token(token)), e.Keys.Delivery(bus.Token(token))
		var checks []exam.Check
		var repair []exam.Command
		for _, field := range scan.OldFields {
			value, ok := fields[field]
			if !ok {
				continue
			}
			checks = append(checks, exam.Is(value, "HGET", old, field))
			switch field {
			case "events_sent":
				repair = append(repair, exam.Command{"HINCRBY", today, field, value})
			case "throttled_until":
				repair = append(repair, exam.Command{"HSETNX", today, field, value})
				moved(e, keys.Delivery(bus.Token(token)), field, value)
			}
			repair = append(repair, exam.Command{"HDEL", old, field})
		}
		if checks != nil {
			e.Add(old, "has fields that are in another key today", "moved there", checks, repair...)
		}
	}
	for token, places := range e.Each(scan.OldLane) {
		findRenamedLane(e, token, places)
	}
}

// moved notes an element that a repair adds to another key, unless that has it, as if the scan had
// seen it there: what does not fit there is found in the same run.
func moved(e *exam.Examination, key, element, value string) {
	if !e.Fix || e.Has(key, element) {
		return
	}
	if e.Elements[key] == nil {
		e.Elements[key] = map[string]string{}
	}
	e.Elements[key][element] = value
}

// findRenamedLane moves a lane that has batches instead of jobs, one by one and in order.
func findRenamedLane(e *exam.Examination, token string, places map[string]string) {
	old, lane := e.Full(scan.OldLane+token), e.Jobs.Lane(bus.JobBatch, token)
	place := func(bid string) float64 {
		place, _ := strconv.ParseFloat(places[bid], 64) // Redis wrote it
		return place
	}
	bids := scan.Sorted(places)
	slices.SortStableFunc(bids, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	for _, bid := range bids {
		repair := []exam.Command{{"ZREM", old, bid}}
		if bus.IsUID(bid) {
			repair = append(repair, exam.Command{"ZADD", lane, "NX", places[bid], scan.JobOf(bid)})
			moved(e, queues.Lane(bus.JobBatch, token), scan.JobOf(bid), places[bid])
		}
		e.Add(old, "is a lane of jobs today", "moved there", []exam.Check{exam.Not("", "ZSCORE", old, bid)}, repair...)
	}
}
