package doctor

import (
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// findOfSubscribers looks for incomplete subscribers, and for data without a subscriber.
func findOfSubscribers(e *Examination) {
	findSubscribers(e)
	findOptions(e)
	findLaneVersions(e)
	findRetention(e)
	findGaps(e)
}

func findSubscribers(e *Examination) {
	tokens := Sorted(e.Elements[keys.Subscribers()])
	for token := range e.Each(keys.Subscriber("")) {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		key, all := e.Keys.Subscriber(bus.Token(token)), e.Keys.Subscribers()
		isListed, hasCallback := e.Has(keys.Subscribers(), token), e.HasCallback(token)
		foreign := e.Unknown[e.Short(key)] != nil // it was reported
		unlisted, silent := Is(0, "SISMEMBER", all, token), Is(0, "HSTRLEN", key, "callback")
		add, remove := Command{"SADD", all, token}, Command{"REMOVE_SUBSCRIBER", token}
		switch {
		case isListed && hasCallback, foreign && !hasCallback:
		case hasCallback:
			e.mustList(keys.Subscriber(bus.Token(token)), keys.Subscribers(), token, nil, Not(0, "HSTRLEN", key, "callback"))
		case isListed:
			e.Add(key, "has no callback", "removed, with its subscriptions",
				[]Check{Is(1, "SISMEMBER", all, token), silent}, remove)
		default:
			e.Add(key, "is what remains of a subscriber that is not in "+keys.Subscribers(),
				"removed, with its subscriptions", []Check{unlisted, Is(1, "EXISTS", key), silent}, add, remove)
		}
	}
}

// findOptions looks for options with another plan than their subscriber's deliveries have.
func findOptions(e *Examination) {
	for token := range e.Each(keys.Options("")) {
		if e.IsSubscriber(token) {
			findPlan(e, token)
		}
	}
	for token, fields := range e.Each(keys.Delivery("")) {
		if fields["plan"] != "" && e.Elements[keys.Options(bus.Token(token))] == nil && e.IsSubscriber(token) {
			findPlan(e, token)
		}
	}
}

// findPlan compares the plan of a subscriber's deliveries with the plan of its options. Workers may
// have cached either, so the repair sets a new one.
func findPlan(e *Examination, token string) {
	options, delivery := keys.Options(bus.Token(token)), keys.Delivery(bus.Token(token))
	of, goesBy := e.Elements[options]["plan"], e.Elements[delivery]["plan"]
	if of == goesBy && of != "" {
		return
	}
	plan := bus.NewOptionsVersion()
	e.Add(e.Full(options), "and "+e.Show(delivery)+" differ in the plan", "given another", []Check{
		Is(e.Elements[options] != nil, "EXISTS", e.Full(options)),
		Is(of, "HGET", e.Full(options), "plan"), Is(goesBy, "HGET", e.Full(delivery), "plan"),
	}, Command{"HSET", e.Full(options), "plan", plan}, Command{"HSET", e.Full(delivery), "plan", plan})
}

// findLaneVersions looks whether publishes go by a version of a subscriber's lanes: they must if it
// has several, and only then.
func findLaneVersions(e *Examination) {
	tokens := map[string]bool{}
	for token := range e.Elements[keys.Plans()] {
		tokens[token] = !strings.ContainsAny(token[:min(1, len(token))], "/?") // these are of a topic
	}
	for token, options := range e.Each(keys.Options("")) {
		tokens[token] = tokens[token] || rdb.Integer(options["lanes"], 1) > 1
	}
	for token, has := range tokens {
		if has {
			findVersion(e, token)
		}
	}
}

func findVersion(e *Examination, token string) {
	plans, options := e.Keys.Plans(), keys.Options(bus.Token(token))
	version, lanes := e.Elements[keys.Plans()][token], e.Elements[options]["lanes"]
	has, checks := rdb.Integer(lanes, 1) > 1, []Check{Is(lanes, "HGET", e.Full(options), "lanes")}
	if !e.IsSubscriber(token) { // then the options go
		has, checks = false, isNoSubscriber(e, token)
	}
	checks = append(checks, Is(version, "HGET", plans, token))
	switch {
	case has && version == "":
		e.Add(plans, "has no version of the lanes of "+e.Name(token), "given one", checks, Command{"HSET", plans, token, bus.NewOptionsVersion()})
	case !has && e.Has(keys.Plans(), token):
		e.mustNotList(keys.Plans(), "has a version of the lanes of "+e.Name(token)+", which has one", token, checks...)
	}
}

// retentionOptions are those whose subscribers are in [layout.Keys].Retention.
var retentionOptions = [2]string{"keep_age", "keep_events"}

// findRetention compares the subscribers that the housekeeping visits with the subscribers that
// have retention options.
func findRetention(e *Examination) {
	retains := func(token string) bool {
		options := keys.Options(bus.Token(token))
		return e.Has(options, retentionOptions[0]) || e.Has(options, retentionOptions[1])
	}
	for token := range e.Each(keys.Options("")) {
		if retains(token) && e.IsSubscriber(token) {
			e.mustList(keys.Options(bus.Token(token)), keys.Retention(), token, nil)
		}
	}
	for token := range e.Elements[keys.Retention()] {
		if retains(token) {
			continue
		}
		var checks []Check
		for _, name := range retentionOptions {
			checks = append(checks, Is("", "HGET", e.Keys.Options(bus.Token(token)), name))
		}
		e.mustNotList(keys.Retention(), "has "+e.Name(token)+", who has no option for it", token, checks...)
	}
}

// findGaps looks for gap records without their notice.
func findGaps(e *Examination) {
	for token, told := range e.Each(keys.Gaps("")) {
		key, bid := keys.Gaps(bus.Token(token)), told["batch"]
		if e.IsSubscriber(token) && !e.Batch(bid).There {
			e.mustGo(key, "is of a batch that is not there",
				Is(0, "EXISTS", e.Keys.Batch(bus.BatchID(bid))), Is(bid, "HGET", e.Full(key), "batch"))
		}
	}
}
