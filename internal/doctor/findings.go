package doctor

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// findRenamed looks for what an earlier version of the bus had under other names.
func (e *examination) findRenamed() {
	for bid := range e.Each(scan.OldTraceparents) {
		old, today := e.Full(scan.OldTraceparents+bid), bus.BatchID(bid)
		e.add(old, "is what is "+keys.Traceparents(today)+" today", "moved there",
			[]check{is(1, "EXISTS", old)},
			command{"RENAMENX", old, e.Keys.Traceparents(today)}, command{"DEL", old})
	}
	for token, fields := range e.Each(keys.Subscriber("")) {
		old, today := e.Keys.Subscriber(bus.Token(token)), e.Keys.Delivery(bus.Token(token))
		var checks []check
		var repair []command
		for _, field := range scan.OldFields {
			value, ok := fields[field]
			if !ok {
				continue
			}
			checks = append(checks, is(value, "HGET", old, field))
			switch field {
			case "events_sent":
				repair = append(repair, command{"HINCRBY", today, field, value})
			case "throttled_until":
				repair = append(repair, command{"HSETNX", today, field, value})
				e.moved(keys.Delivery(bus.Token(token)), field, value)
			}
			repair = append(repair, command{"HDEL", old, field})
		}
		if checks != nil {
			e.add(old, "has fields that are in another key today", "moved there", checks, repair...)
		}
	}
	for token, places := range e.Each(scan.OldLane) {
		e.findRenamedLane(token, places)
	}
}

// moved notes an element that a repair adds to another key, unless that has it, as if the scan had
// seen it there: what does not fit there is found in the same run.
func (e *examination) moved(key, element, value string) {
	if !e.fix || e.Has(key, element) {
		return
	}
	if e.Elements[key] == nil {
		e.Elements[key] = map[string]string{}
	}
	e.Elements[key][element] = value
}

// findRenamedLane moves a lane that has batches instead of jobs, one by one and in order.
func (e *examination) findRenamedLane(token string, places map[string]string) {
	old, lane := e.Full(scan.OldLane+token), e.Jobs.Lane(bus.JobBatch, token)
	place := func(bid string) float64 {
		place, _ := strconv.ParseFloat(places[bid], 64) // Redis wrote it
		return place
	}
	bids := scan.Sorted(places)
	slices.SortStableFunc(bids, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	for _, bid := range bids {
		repair := []command{{"ZREM", old, bid}}
		if bus.IsUID(bid) {
			repair = append(repair, command{"ZADD", lane, "NX", places[bid], scan.JobOf(bid)})
			e.moved(jobs.Lane(bus.JobBatch, token), scan.JobOf(bid), places[bid])
		}
		e.add(old, "is a lane of jobs today", "moved there", []check{not("", "ZSCORE", old, bid)}, repair...)
	}
}

func (e *examination) findTopics() {
	for name := range e.Each(keys.Topic("")) {
		if topic, all := e.Keys.Topic(bus.TopicName(name)), e.Keys.Topics(); !e.Has(keys.Topics(), name) {
			e.add(topic, "is not in "+keys.Topics(), "added there",
				[]check{is(1, "EXISTS", topic), is(0, "SISMEMBER", all, name)}, command{"SADD", all, name})
		}
	}
}

func (e *examination) findSubscribers() {
	tokens := scan.Sorted(e.Elements[keys.Subscribers()])
	for token := range e.Each(keys.Subscriber("")) {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		key, all := e.Keys.Subscriber(bus.Token(token)), e.Keys.Subscribers()
		isListed, hasCallback := e.Has(keys.Subscribers(), token), e.hasCallback(token)
		foreign := e.Unknown[e.Short(key)] != nil // it was reported
		unlisted, silent := is(0, "SISMEMBER", all, token), is(0, "HSTRLEN", key, "callback")
		add, remove := command{"SADD", all, token}, command{"REMOVE_SUBSCRIBER", token}
		switch {
		case isListed && hasCallback, foreign && !hasCallback:
		case hasCallback:
			e.add(key, "is not in "+keys.Subscribers(), "added there",
				[]check{unlisted, not(0, "HSTRLEN", key, "callback")}, add)
		case isListed:
			e.add(key, "has no callback", "removed, with its subscriptions",
				[]check{is(1, "SISMEMBER", all, token), silent}, remove)
		default:
			e.add(key, "is what remains of a subscriber that is not in "+keys.Subscribers(),
				"removed, with its subscriptions", []check{unlisted, is(1, "EXISTS", key), silent}, add, remove)
		}
	}
}

// hasCallback reports whether publish finds a subscriber.
func (e *examination) hasCallback(token string) bool {
	return e.Elements[keys.Subscriber(bus.Token(token))]["callback"] != ""
}

func (e *examination) findSubscriptions() {
	for token, topics := range e.Each(keys.SubscriberTopics("")) {
		for topic := range topics {
			e.findSubscription(bus.Token(token), bus.TopicName(topic))
		}
	}
	for topic, tokens := range e.Each(keys.TopicSubscribers("")) {
		for token := range tokens {
			if !e.Has(keys.SubscriberTopics(bus.Token(token)), topic) { // else it was looked at
				e.findSubscription(bus.Token(token), bus.TopicName(topic))
			}
		}
	}
}

// findSubscription looks at a subscription of which one side is there, at least.
func (e *examination) findSubscription(token bus.Token, topic bus.TopicName) {
	ofSubscriber, ofTopic := e.Keys.SubscriberTopics(token), e.Keys.TopicSubscribers(topic)
	listedBySubscriber := e.Has(keys.SubscriberTopics(token), string(topic))
	listedByTopic := e.Has(keys.TopicSubscribers(topic), string(token))
	sides := []check{
		is(listedBySubscriber, "SISMEMBER", ofSubscriber, string(topic)),
		is(listedByTopic, "SISMEMBER", ofTopic, string(token)),
	}
	all, callback := e.Keys.Subscribers(), []any{"HSTRLEN", e.Keys.Subscriber(token), "callback"}
	switch {
	case e.Has(keys.Subscribers(), string(token)):
		sides = append(sides, is(1, "SISMEMBER", all, string(token)))
	case e.hasCallback(string(token)):
		sides = append(sides, not(0, callback...))
	default:
		e.add(ofSubscriber, "names "+string(topic)+", or is named there, and there is no such subscriber",
			"removed from both", append(sides, is(0, "SISMEMBER", all, string(token)), is(0, callback...)),
			command{"SREM", ofSubscriber, string(topic)}, command{"SREM", ofTopic, string(token)})
		return
	}
	if listedBySubscriber != listedByTopic {
		e.add(ofSubscriber, "and "+keys.TopicSubscribers(topic)+" differ", "added to both", sides,
			command{"SADD", ofSubscriber, string(topic)}, command{"SADD", ofTopic, string(token)})
	}
	if !e.Has(keys.Topics(), string(topic)) && e.Elements[keys.Topic(topic)] == nil {
		e.add(ofSubscriber, "names "+string(topic)+", or is named there, which is not in "+keys.Topics(),
			"added there", append(sides[2:], is(0, "EXISTS", e.Keys.Topic(topic)),
				is(0, "SISMEMBER", e.Keys.Topics(), string(topic))),
			command{"SADD", e.Keys.Topics(), string(topic)})
	}
}

// wrongFor is what is wrong with a batch that a key of a subscriber lists, and what shows it.
func (e *examination) wrongFor(token, bid string) (problem string, checks []check) {
	switch j := e.Batch(bid); {
	case j.Original:
		return "", nil
	case !j.There:
		return "lists " + bid + ", which is not there", e.isGone(bid)
	case j.Token != token:
		batch := e.Keys.Batch(bus.BatchID(bid))
		return "lists " + bid + ", another subscriber's", []check{is(1, "EXISTS", batch), not(token, "HOLDER", bid)}
	}
	return "", nil
}

func (e *examination) findCurrent() {
	for token, bids := range e.Each(keys.Current("")) {
		newest := ""
		for _, bid := range scan.Sorted(bids) { // of those of one time, the last UID counts as the newest
			if j := e.Batch(bid); j.There && j.Token == token && j.Created >= e.Batch(newest).Created {
				newest = bid
			}
		}
		current := e.Keys.Current(bus.Token(token))
		for bid := range bids {
			problem, checks := e.wrongFor(token, bid)
			if problem == "" && !e.Batch(bid).Original && bid != newest {
				problem = "lists " + bid + " and a newer batch, must list one"
				checks = []check{is(1, "SISMEMBER", current, newest), is(token, "HOLDER", newest)}
			}
			if problem != "" {
				e.add(current, problem, "removed", append(checks, is(1, "SISMEMBER", current, bid)),
					command{"SREM", current, bid})
			}
		}
	}
}

// longestPause is for how long the first of a lane may be put off, unless its subscriber is
// throttled, paused or paced: a job that cannot be taken waits a minute, by a clock that may go
// ahead of ours.
const longestPause = 2 * time.Minute

func (e *examination) findLanes() {
	latest := float64(time.Now().Add(longestPause).UnixMilli())
	for token, entries := range e.Each(jobs.Lane(bus.JobBatch, "")) {
		lane := e.Jobs.Lane(bus.JobBatch, token)
		until, unchanged := e.blockedUntil(token)
		for packed := range entries {
			bid, _ := scan.BatchOf(bus.QueueMain, packed)
			problem, checks := e.wrongFor(token, bid)
			if bid == "" { // what is no batch's job
				problem, checks = "lists "+wire.ShowJob(packed)+", which is not there", nil
			}
			if problem != "" {
				e.add(lane, problem, "removed; the next in the lane is woken",
					append(checks, not("", "ZSCORE", lane, packed)), command{"LEAVE_LANE", lane, packed})
				continue
			}
			// A batch that leaves a lane wakes the next, and the end of a throttle or a pause the first,
			// in the same step. So the first of a lane waits for no longer than that, or than one that
			// could not be taken, unless the batch before it left without waking it.
			if due := e.Batch(bid).Due; due > max(latest, until) {
				e.add(lane, "begins with "+bid+", which waits for its turn, though nobody is before it", "woken",
					append(unchanged,
						is(0, "ZRANK", lane, packed),
						is(rdb.FormatScore(due), "ZSCORE", e.Jobs.Scheduled(bus.QueueMain), packed),
					), command{"WAKE_LANE", lane})
			}
		}
	}
}

// blockedUntil is until when (ms) the first of a subscriber's lane may wait, and what shows that it
// still is. One that failed may wait for its retry in the lane if the order is strict.
func (e *examination) blockedUntil(token string) (until float64, unchanged []check) {
	if e.Elements[keys.Options(bus.Token(token))]["strict_order"] == "true" {
		return math.Inf(1), nil
	}
	delivery := keys.Delivery(bus.Token(token))
	for _, field := range []string{"throttled_until", "paused_until", "paced_until"} {
		said := e.Elements[delivery][field]
		if at, err := strconv.ParseFloat(said, 64); err == nil { // what cannot be read blocks nothing
			until = max(until, at)
		}
		unchanged = append(unchanged, is(said, "HGET", e.Full(delivery), field))
	}
	return until, unchanged
}

func (e *examination) findWorkers() {
	for q, queue := range e.Queues {
		for worker, held := range queue.Pending {
			pending, index := e.Jobs.Pending(q, bus.WorkerID(worker)), e.Jobs.PendingIndex(q)
			if !e.Has(jobs.PendingIndex(q), worker) {
				e.add(pending, "belongs to a worker that is not in "+jobs.PendingIndex(q), "added there",
					[]check{is(1, "EXISTS", pending), is(0, "SISMEMBER", index, worker)},
					command{"SADD", index, worker})
			}
			running := held[len(held)-1]
			checks := []check{is(running, "LINDEX", pending, -1)}
			var repair []command
			for i, packed := range held[:len(held)-1] {
				checks = append(checks, is(packed, "LINDEX", pending, i-len(held)))
				repair = append(repair, command{"LREM", pending, 1, packed})
				if packed != running {
					repair = append(repair, command{"RPUSH", e.Jobs.Instant(q), packed})
				}
			}
			if repair != nil {
				e.add(pending, "has several jobs, must have one", "put back, all but the last", checks, repair...)
			}
		}
	}
}

// checkTypes reports which of some keys are there and are not what the layout says.
func (e *examination) checkTypes(ctx context.Context, names []string) (sound bool, err error) {
	sound = true
	for some := range slices.Chunk(names, rdb.KeysPerTrip) {
		types := make([]rdb.Reply[string], len(some))
		err := e.Redis.Pipelined(ctx, "types", func(pipe rdb.Commands) {
			for i, key := range some {
				types[i] = pipe.Type(ctx, e.Full(key))
			}
		})
		if err != nil {
			return false, err
		}
		for i, key := range some {
			f, _ := scan.FamilyOf(key)
			switch is := types[i].Val(); {
			case is == "none" || is == string(f.Kind):
				continue
			case f.Kind == "":
				e.report(key, "", "is not a key of the layout")
			default:
				e.report(key, "", "is a %s, must be a %s", is, f.Kind)
			}
			sound = false
		}
	}
	return sound, nil
}

// reportSkipped reports what is skipped, besides keys.
func (e *examination) reportSkipped() {
	for _, key := range scan.Sorted(e.Unknown) {
		fields := slices.Compact(slices.Sorted(slices.Values(e.Unknown[key]))) // one may have come twice
		e.report(key, "", "has fields that the layout does not know: %s", strings.Join(fields, ", "))
	}
	for _, member := range scan.Sorted(e.NotUIDs) {
		e.report(keys.BatchesIndex(), "", "lists %q, which is no UID", member)
	}
	originals := 0
	for q, queue := range e.Queues {
		for packed, j := range queue.Entries {
			if j.Original {
				originals++
			}
			if _, ours := scan.BatchOf(q, packed); !ours {
				e.report(showJob(packed), "", "in queue %s is not one that this program writes", q)
			}
		}
	}
	if originals > 0 {
		e.report(keys.Original("{uid}"), "", "%d batches of the Ruby original, which rtm migrate moves; "+
			"they, and what belongs to them, are skipped", originals)
	}
}
