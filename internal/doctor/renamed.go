package doctor

import (
	"cmp"
	"slices"
	"strconv"

	"routemaster/internal/bus"
)

// findRenamed looks for keys and fields with names of earlier versions of the bus.
func findRenamed(e *Examination) {
	for bid := range e.Each(OldTraceparents) {
		old, today := e.Full(OldTraceparents+bid), bus.BatchID(bid)
		e.Add(old, "is what is "+keys.Traceparents(today)+" today", "moved there",
			[]Check{Is(1, "EXISTS", old)},
			Command{"RENAMENX", old, e.Keys.Traceparents(today)}, Command{"DEL", old})
	}
	for token, fields := range e.Each(keys.Subscriber("")) {
		old, today := e.Keys.Subscriber(bus.Token(token)), e.Keys.Delivery(bus.Token(token))
		var checks []Check
		var repair []Command
		for _, field := range OldFields {
			value, ok := fields[field]
			if !ok {
				continue
			}
			checks = append(checks, Is(value, "HGET", old, field))
			switch field {
			case "events_sent":
				repair = append(repair, Command{"HINCRBY", today, field, value})
			case "throttled_until":
				repair = append(repair, Command{"HSETNX", today, field, value})
				moved(e, keys.Delivery(bus.Token(token)), field, value)
			}
			repair = append(repair, Command{"HDEL", old, field})
		}
		if checks != nil {
			e.Add(old, "has fields that are in another key today", "moved there", checks, repair...)
		}
	}
	for token, places := range e.Each(OldLane) {
		findRenamedLane(e, token, places)
	}
}

// moved adds an element that a repair moves to another key to the scan, unless the key has it, so
// that its damage there is found in the same run.
func moved(e *Examination, key, element, value string) {
	if !e.Fix || e.Has(key, element) {
		return
	}
	if e.Elements[key] == nil {
		e.Elements[key] = map[string]string{}
	}
	e.Elements[key][element] = value
}

// findRenamedLane moves a lane that has batches instead of jobs, one by one and in order.
func findRenamedLane(e *Examination, token string, places map[string]string) {
	old, lane := e.Full(OldLane+token), e.Keys.Lane(bus.JobBatch, token)
	place := func(bid string) float64 {
		place, _ := strconv.ParseFloat(places[bid], 64) // Redis wrote it
		return place
	}
	bids := Sorted(places)
	slices.SortStableFunc(bids, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	for _, bid := range bids {
		repair := []Command{{"ZREM", old, bid}}
		if bus.IsUID(bid) {
			repair = append(repair, Command{"ZADD", lane, "NX", places[bid], JobOf(bid)})
			moved(e, keys.Lane(bus.JobBatch, token), JobOf(bid), places[bid])
		}
		e.Add(old, "is a lane of jobs today", "moved there", []Check{Not("", "ZSCORE", old, bid)}, repair...)
	}
}
