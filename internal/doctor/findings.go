package doctor

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// findRenamed looks for what an earlier version of the bus had under other names.
func (e *examination) findRenamed() {
	for bid := range e.each(oldTraceparents) {
		old, today := e.full(oldTraceparents+bid), bus.BatchID(bid)
		e.add(old, "is what is "+keys.Traceparents(today)+" today", "moved there",
			[]check{is(1, "EXISTS", old)},
			command{"RENAMENX", old, e.keys.Traceparents(today)}, command{"DEL", old})
	}
	for token, fields := range e.each(keys.Subscriber("")) {
		old, today := e.keys.Subscriber(bus.Token(token)), e.keys.Delivery(bus.Token(token))
		var checks []check
		var repair []command
		for _, field := range oldFields {
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
	for token, places := range e.each(oldLane) {
		e.findRenamedLane(token, places)
	}
}

// moved notes an element that a repair adds to another key, unless that has it, as if the scan had
// seen it there: what does not fit there is found in the same run.
func (e *examination) moved(key, element, value string) {
	if !e.fix || e.has(key, element) {
		return
	}
	if e.elements[key] == nil {
		e.elements[key] = map[string]string{}
	}
	e.elements[key][element] = value
}

// findRenamedLane moves a lane that has batches instead of jobs, one by one and in order.
func (e *examination) findRenamedLane(token string, places map[string]string) {
	old, lane := e.full(oldLane+token), e.jobs.Lane(bus.JobBatch, token)
	place := func(bid string) float64 {
		place, _ := strconv.ParseFloat(places[bid], 64) // Redis wrote it
		return place
	}
	bids := sorted(places)
	slices.SortStableFunc(bids, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	for _, bid := range bids {
		repair := []command{{"ZREM", old, bid}}
		if bus.IsUID(bid) {
			repair = append(repair, command{"ZADD", lane, "NX", places[bid], jobOf(bid)})
			e.moved(jobs.Lane(bus.JobBatch, token), jobOf(bid), places[bid])
		}
		e.add(old, "is a lane of jobs today", "moved there", []check{not("", "ZSCORE", old, bid)}, repair...)
	}
}

func (e *examination) findTopics() {
	for name := range e.each(keys.Topic("")) {
		if topic, all := e.keys.Topic(bus.TopicName(name)), e.keys.Topics(); !e.has(keys.Topics(), name) {
			e.add(topic, "is not in "+keys.Topics(), "added there",
				[]check{is(1, "EXISTS", topic), is(0, "SISMEMBER", all, name)}, command{"SADD", all, name})
		}
	}
}

func (e *examination) findSubscribers() {
	tokens := sorted(e.elements[keys.Subscribers()])
	for token := range e.each(keys.Subscriber("")) {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		key, all := e.keys.Subscriber(bus.Token(token)), e.keys.Subscribers()
		isListed, hasCallback := e.has(keys.Subscribers(), token), e.hasCallback(token)
		foreign := e.unknown[e.short(key)] != nil // it was reported
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
func (s *scan) hasCallback(token string) bool {
	return s.elements[keys.Subscriber(bus.Token(token))]["callback"] != ""
}

func (e *examination) findSubscriptions() {
	for token, topics := range e.each(keys.SubscriberTopics("")) {
		for topic := range topics {
			e.findSubscription(bus.Token(token), bus.TopicName(topic))
		}
	}
	for topic, tokens := range e.each(keys.TopicSubscribers("")) {
		for token := range tokens {
			if !e.has(keys.SubscriberTopics(bus.Token(token)), topic) { // else it was looked at
				e.findSubscription(bus.Token(token), bus.TopicName(topic))
			}
		}
	}
}

// findSubscription looks at a subscription of which one side is there, at least.
func (e *examination) findSubscription(token bus.Token, topic bus.TopicName) {
	ofSubscriber, ofTopic := e.keys.SubscriberTopics(token), e.keys.TopicSubscribers(topic)
	listedBySubscriber := e.has(keys.SubscriberTopics(token), string(topic))
	listedByTopic := e.has(keys.TopicSubscribers(topic), string(token))
	sides := []check{
		is(listedBySubscriber, "SISMEMBER", ofSubscriber, string(topic)),
		is(listedByTopic, "SISMEMBER", ofTopic, string(token)),
	}
	all, callback := e.keys.Subscribers(), []any{"HSTRLEN", e.keys.Subscriber(token), "callback"}
	switch {
	case e.has(keys.Subscribers(), string(token)):
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
	if !e.has(keys.Topics(), string(topic)) && e.elements[keys.Topic(topic)] == nil {
		e.add(ofSubscriber, "names "+string(topic)+", or is named there, which is not in "+keys.Topics(),
			"added there", append(sides[2:], is(0, "EXISTS", e.keys.Topic(topic)),
				is(0, "SISMEMBER", e.keys.Topics(), string(topic))),
			command{"SADD", e.keys.Topics(), string(topic)})
	}
}

// wrongFor is what is wrong with a batch that a key of a subscriber lists, and what shows it.
func (e *examination) wrongFor(token, bid string) (problem string, checks []check) {
	switch j := e.batch(bid); {
	case j.original:
		return "", nil
	case !j.there:
		return "lists " + bid + ", which is not there", e.isGone(bid)
	case j.token != token:
		batch := e.keys.Batch(bus.BatchID(bid))
		return "lists " + bid + ", another subscriber's", []check{is(1, "EXISTS", batch), not(token, "HOLDER", bid)}
	}
	return "", nil
}

func (e *examination) findCurrent() {
	for token, bids := range e.each(keys.Current("")) {
		newest := ""
		for _, bid := range sorted(bids) { // of those of one time, the last UID counts as the newest
			if j := e.batch(bid); j.there && j.token == token && j.created >= e.batch(newest).created {
				newest = bid
			}
		}
		current := e.keys.Current(bus.Token(token))
		for bid := range bids {
			problem, checks := e.wrongFor(token, bid)
			if problem == "" && !e.batch(bid).original && bid != newest {
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
// throttled: a job that cannot be taken waits a minute, by a clock that may go ahead of ours.
const longestPause = 2 * time.Minute

func (e *examination) findLanes() {
	latest := float64(time.Now().Add(longestPause).UnixMilli())
	for token, entries := range e.each(jobs.Lane(bus.JobBatch, "")) {
		lane := e.jobs.Lane(bus.JobBatch, token)
		throttled := e.elements[keys.Delivery(bus.Token(token))]["throttled_until"]
		until, _ := strconv.ParseFloat(throttled, 64) // what cannot be read is no throttle
		for packed := range entries {
			bid, _ := batchOf(bus.QueueMain, packed)
			problem, checks := e.wrongFor(token, bid)
			if bid == "" { // what is no batch's job
				problem, checks = "lists "+wire.ShowJob(packed)+", which is not there", nil
			}
			if problem != "" {
				e.add(lane, problem, "removed; the next in the lane is woken",
					append(checks, not("", "ZSCORE", lane, packed)), command{"LEAVE_LANE", lane, packed})
				continue
			}
			// A batch that leaves a lane wakes the next, and the end of a throttle the first, in the
			// same step. So the first of a lane waits for no longer than its throttle, or than one that
			// could not be taken, unless the batch before it left without waking it.
			if due := e.batch(bid).due; due > max(latest, until) {
				e.add(lane, "begins with "+bid+", which waits for its turn, though nobody is before it", "woken",
					[]check{
						is(0, "ZRANK", lane, packed),
						is(rdb.FormatScore(due), "ZSCORE", e.jobs.Scheduled(bus.QueueMain), packed),
						is(throttled, "HGET", e.keys.Delivery(bus.Token(token)), "throttled_until"),
					}, command{"WAKE_LANE", lane})
			}
		}
	}
}

func (e *examination) findWorkers() {
	for q, scan := range e.queues {
		for worker, held := range scan.pending {
			pending, index := e.jobs.Pending(q, bus.WorkerID(worker)), e.jobs.PendingIndex(q)
			if !e.has(jobs.PendingIndex(q), worker) {
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
					repair = append(repair, command{"RPUSH", e.jobs.Instant(q), packed})
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
		err := e.redis.Pipelined(ctx, "types", func(pipe rdb.Commands) {
			for i, key := range some {
				types[i] = pipe.Type(ctx, e.full(key))
			}
		})
		if err != nil {
			return false, err
		}
		for i, key := range some {
			f, _ := familyOf(key)
			switch is := types[i].Val(); {
			case is == "none" || is == string(f.kind):
				continue
			case f.kind == "":
				e.report(key, "", "is not a key of the layout")
			default:
				e.report(key, "", "is a %s, must be a %s", is, f.kind)
			}
			sound = false
		}
	}
	return sound, nil
}

// reportSkipped reports what is skipped, besides keys.
func (e *examination) reportSkipped() {
	for _, key := range sorted(e.unknown) {
		fields := slices.Compact(slices.Sorted(slices.Values(e.unknown[key]))) // one may have come twice
		e.report(key, "", "has fields that the layout does not know: %s", strings.Join(fields, ", "))
	}
	for _, member := range sorted(e.notUIDs) {
		e.report(keys.BatchesIndex(), "", "lists %q, which is no UID", member)
	}
	originals := 0
	for q, scan := range e.queues {
		for packed, j := range scan.entries {
			if j.original {
				originals++
			}
			if _, ours := batchOf(q, packed); !ours {
				e.report(showJob(packed), "", "in queue %s is not one that this program writes", q)
			}
		}
	}
	if originals > 0 {
		e.report(keys.Original("{uid}"), "", "%d batches of the Ruby original, which rtm migrate moves; "+
			"they, and what belongs to them, are skipped", originals)
	}
}
