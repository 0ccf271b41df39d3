// Package subscribers examines subscribers, and what is kept of them: options, their plan, the
// version of their lanes, records of attempts, and what gap notices tell.
package subscribers

import (
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/doctor/exam"
	"routemaster/internal/doctor/scan"
	"routemaster/internal/store"
)

// keys are the keys without a namespace, as findings show them.
var keys = store.Keys{}

// Find looks for subscribers that are not whole, and for what is of no subscriber.
func Find(e *exam.Examination) {
	findSubscribers(e)
	findOptions(e)
	findLanes(e)
	findRetention(e)
	findGaps(e)
	findHeld(e)
}

func findSubscribers(e *exam.Examination) {
	tokens := scan.Sorted(e.Elements[keys.Subscribers()])
	for token := range e.Each(keys.Subscriber("")) {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		key, all := e.Keys.Subscriber(bus.Token(token)), e.Keys.Subscribers()
		isListed, hasCallback := e.Has(keys.Subscribers(), token), e.HasCallback(token)
		foreign := e.Unknown[e.Short(key)] != nil // it was reported
		unlisted, silent := exam.Is(0, "SISMEMBER", all, token), exam.Is(0, "HSTRLEN", key, "callback")
		add, remove := exam.Command{"SADD", all, token}, exam.Command{"REMOVE_SUBSCRIBER", token}
		switch {
		case isListed && hasCallback, foreign && !hasCallback:
		case hasCallback:
			e.Add(key, "is not in "+keys.Subscribers(), "added there",
				[]exam.Check{unlisted, exam.Not(0, "HSTRLEN", key, "callback")}, add)
		case isListed:
			e.Add(key, "has no callback", "removed, with its subscriptions",
				[]exam.Check{exam.Is(1, "SISMEMBER", all, token), silent}, remove)
		default:
			e.Add(key, "is what remains of a subscriber that is not in "+keys.Subscribers(),
				"removed, with its subscriptions", []exam.Check{unlisted, exam.Is(1, "EXISTS", key), silent}, add, remove)
		}
	}
}
