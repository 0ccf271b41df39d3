package subscribers

import (
	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
)

// findOptions looks for what there is of options, and of attempts, without a subscriber or with
// another plan than its deliveries have.
func findOptions(e *exam.Examination) {
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
func addOrphan(e *exam.Examination, key, token string) {
	e.Add(key, "is of no subscriber", "removed",
		append(isNoSubscriber(e, token), exam.Is(1, "EXISTS", key)), exam.Command{"DEL", key})
}

// isNoSubscriber checks that a subscriber is not there.
func isNoSubscriber(e *exam.Examination, token string) []exam.Check {
	return []exam.Check{
		exam.Is(0, "SISMEMBER", e.Keys.Subscribers(), token),
		exam.Is(0, "HSTRLEN", e.Keys.Subscriber(bus.Token(token)), "callback"),
	}
}

// findPlan compares the plan that deliveries go by with that of the options. Workers may have in
// memory what either stands for, so the repair is another.
func findPlan(e *exam.Examination, token string) {
	options, delivery := keys.Options(bus.Token(token)), keys.Delivery(bus.Token(token))
	of, goesBy := e.Elements[options]["plan"], e.Elements[delivery]["plan"]
	if of == goesBy && of != "" {
		return
	}
	plan := bus.NewPlan()
	e.Add(e.Full(options), "and "+e.Show(delivery)+" differ in the plan", "given another", []exam.Check{
		exam.Is(e.Elements[options] != nil, "EXISTS", e.Full(options)),
		exam.Is(of, "HGET", e.Full(options), "plan"), exam.Is(goesBy, "HGET", e.Full(delivery), "plan"),
	}, exam.Command{"HSET", e.Full(options), "plan", plan}, exam.Command{"HSET", e.Full(delivery), "plan", plan})
}
