package doctor

import (
	"slices"

	"routemaster/internal/bus"
)

// findOfSubscribers looks for subscribers that are not whole, and for what is of no subscriber.
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
			e.Add(key, "is not in "+keys.Subscribers(), "added there",
				[]Check{unlisted, Not(0, "HSTRLEN", key, "callback")}, add)
		case isListed:
			e.Add(key, "has no callback", "removed, with its subscriptions",
				[]Check{Is(1, "SISMEMBER", all, token), silent}, remove)
		default:
			e.Add(key, "is what remains of a subscriber that is not in "+keys.Subscribers(),
				"removed, with its subscriptions", []Check{unlisted, Is(1, "EXISTS", key), silent}, add, remove)
		}
	}
}
