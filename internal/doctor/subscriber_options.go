package doctor

import (
	"routemaster/internal/bus"
)

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
