package doctor

import (
	"routemaster/internal/bus"
)

// findOptions looks for what there is of options, and of attempts, without a subscriber or with
// another plan than its deliveries have.
func findOptions(e *Examination) {
	for token := range e.Each(keys.Attempts("")) {
		if !e.IsSubscriber(token) {
			addOrphan(e, e.Keys.Attempts(bus.Token(token)), token)
		}
	}
	for token := range e.Each(keys.Options("")) {
		if !e.IsSubscriber(token) {
			addOrphan(e, e.Keys.Options(bus.Token(token)), token)
			continue
		}
		findPlan(e, token)
	}
	for token, fields := range e.Each(keys.Delivery("")) {
		if fields["plan"] != "" && e.Elements[keys.Options(bus.Token(token))] == nil && e.IsSubscriber(token) {
			findPlan(e, token)
		}
	}
}

// addOrphan adds a key of a subscriber that is not there.
func addOrphan(e *Examination, key, token string) {
	e.Add(key, "is of no subscriber", "removed",
		append(isNoSubscriber(e, token), Is(1, "EXISTS", key)), Command{"DEL", key})
}

// isNoSubscriber checks that a subscriber is not there.
func isNoSubscriber(e *Examination, token string) []Check {
	return []Check{
		Is(0, "SISMEMBER", e.Keys.Subscribers(), token),
		Is(0, "HSTRLEN", e.Keys.Subscriber(bus.Token(token)), "callback"),
	}
}

// findPlan compares the plan that deliveries go by with that of the options. Workers may have in
// memory what either stands for, so the repair is another.
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
