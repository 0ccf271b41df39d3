package doctor

import (
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/scan"
)

// findOptions looks for what there is of options, and of attempts, without a subscriber or with
// another plan than its deliveries have.
func (e *examination) findOptions() {
	for token := range e.Each(keys.Attempts("")) {
		if !e.isSubscriber(token) {
			e.addOrphan(e.Keys.Attempts(bus.Token(token)), token)
		}
	}
	for token := range e.Each(keys.Options("")) {
		if !e.isSubscriber(token) {
			e.addOrphan(e.Keys.Options(bus.Token(token)), token)
			continue
		}
		e.findPlan(token)
	}
	for token, fields := range e.Each(keys.Delivery("")) {
		if fields["plan"] != "" && e.Elements[keys.Options(bus.Token(token))] == nil && e.isSubscriber(token) {
			e.findPlan(token)
		}
	}
}

func (e *examination) isSubscriber(token string) bool {
	return e.Has(keys.Subscribers(), token) || e.hasCallback(token)
}

// addOrphan adds a key of a subscriber that is not there.
func (e *examination) addOrphan(key, token string) {
	e.add(key, "is of no subscriber", "removed", []check{
		is(1, "EXISTS", key), is(0, "SISMEMBER", e.Keys.Subscribers(), token),
		is(0, "HSTRLEN", e.Keys.Subscriber(bus.Token(token)), "callback"),
	}, command{"DEL", key})
}

// findPlan compares the plan that deliveries go by with that of the options. Workers may have in
// memory what either stands for, so the repair is another.
func (e *examination) findPlan(token string) {
	options, delivery := keys.Options(bus.Token(token)), keys.Delivery(bus.Token(token))
	of, goesBy := e.Elements[options]["plan"], e.Elements[delivery]["plan"]
	if of == goesBy && of != "" {
		return
	}
	plan := bus.NewPlan()
	e.add(e.Full(options), "and "+e.show(delivery)+" differ in the plan", "given another", []check{
		is(e.Elements[options] != nil, "EXISTS", e.Full(options)),
		is(of, "HGET", e.Full(options), "plan"), is(goesBy, "HGET", e.Full(delivery), "plan"),
	}, command{"HSET", e.Full(options), "plan", plan}, command{"HSET", e.Full(delivery), "plan", plan})
}

// findStates looks for states of batches that are not there.
func (e *examination) findStates() {
	for bid := range e.Each(keys.BatchState("")) {
		if j := e.Batch(bid); j.There || j.Original {
			continue
		}
		state := e.Keys.BatchState(bus.BatchID(bid))
		e.add(state, "is of a batch that is not there", "removed",
			append(e.isGone(bid), is(1, "EXISTS", state)), command{"DEL", state})
	}
}

// findLetters looks for dead letters that their subscriber's index does not list, and for what
// points to dead letters that are not there.
func (e *examination) findLetters() {
	listed := map[string]bool{}
	for token, letters := range e.Each(keys.DeadLetters("")) {
		for bid := range letters {
			listed[bid] = true
			if _, there := e.Letters[bid]; !there {
				index := e.Keys.DeadLetters(bus.Token(token))
				e.add(index, "lists "+bid+", which is not there", "removed", []check{
					is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))), not("", "ZSCORE", index, bid),
				}, command{"ZREM", index, bid})
			}
		}
	}
	for _, bid := range scan.Sorted(e.Letters) {
		if !listed[bid] {
			e.addUnlisted(bid, e.Letters[bid])
		}
	}
	for bid := range e.Each(keys.DeadLetterCause("")) {
		if _, there := e.Letters[bid]; !there {
			cause := e.Keys.DeadLetterCause(bus.BatchID(bid))
			e.add(cause, "is of a dead letter that is not there", "removed", []check{
				is(0, "EXISTS", e.Keys.DeadLetter(bus.BatchID(bid))), is(1, "EXISTS", cause),
			}, command{"DEL", cause})
		}
	}
}

// addUnlisted adds a dead letter that no index lists, given the token that it begins with. It is
// listed as if it had died now, so that it is not too old at once.
func (e *examination) addUnlisted(bid, token string) {
	letter := e.Keys.DeadLetter(bus.BatchID(bid))
	if token == "" {
		e.add(letter, "has no subscriber", "removed", []check{is("", "LINDEX", letter, 0), is(1, "EXISTS", letter)},
			command{"DEL", letter, e.Keys.DeadLetterCause(bus.BatchID(bid))})
		return
	}
	holder := e.Holder(token)
	e.unlisted[bid] = holder
	index := e.Keys.DeadLetters(bus.Token(holder))
	heir := ""
	if holder != token {
		heir = holder
	}
	e.add(letter, "is not in "+e.show(keys.DeadLetters(bus.Token(holder))), "added there", []check{
		is(token, "LINDEX", letter, 0), is(heir, "HGET", e.Keys.Rotations(), token), is("", "ZSCORE", index, bid),
	}, command{"ZADD", index, time.Now().UnixMilli(), bid})
}
