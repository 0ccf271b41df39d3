package doctor

import (
	"routemaster/internal/bus"
)

// findReplays looks for replays that a set does not list, and for what there is of replays, and of
// subscribers, that are not there. A subscriber's set may list replays that have expired.
func findReplays(e *Examination) {
	for id := range e.Elements[keys.RunningReplays()] {
		if _, there := e.Elements[keys.Replay(bus.ReplayID(id))]; !there {
			addGone(e, id)
		}
	}
	for id, fields := range e.Each(keys.Replay("")) {
		if token := fields["token"]; e.IsSubscriber(token) {
			findUnlisted(e, id, fields)
		} else {
			addOrphanReplay(e, id, token)
		}
	}
	for id := range e.Each(keys.ReplayBatches("")) {
		if !e.Has(keys.RunningReplays(), id) {
			batches := e.Keys.ReplayBatches(bus.ReplayID(id))
			e.Add(batches, "is of a replay that is over", "removed", []Check{
				Is(0, "SISMEMBER", e.Keys.RunningReplays(), id), Is(1, "EXISTS", batches),
				Not("running", "HGET", e.Keys.Replay(bus.ReplayID(id)), "state"),
			}, Command{"DEL", batches})
		}
	}
	for token := range e.Each(keys.Replays("")) {
		if !e.IsSubscriber(token) {
			set := e.Keys.Replays(bus.Token(token))
			e.Add(set, "is of no subscriber", "removed",
				append(isNobody(e, token), Is(1, "EXISTS", set)), Command{"DEL", set})
		}
	}
}

// addGone adds an entry of the running replays that is not there.
func addGone(e *Examination, id string) {
	running := e.Keys.RunningReplays()
	e.Add(running, "lists "+id+", which is not there", "removed", []Check{
		Is(1, "SISMEMBER", running, id), Is(0, "EXISTS", e.Keys.Replay(bus.ReplayID(id))),
	}, Command{"SREM", running, id}, Command{"DEL", e.Keys.ReplayBatches(bus.ReplayID(id))})
}

// findUnlisted looks for the sets that must list a replay of a subscriber, and do not.
func findUnlisted(e *Examination, id string, fields map[string]string) {
	replay, token := e.Keys.Replay(bus.ReplayID(id)), fields["token"]
	unchanged := []Check{Is(token, "HGET", replay, "token"), Is(fields["state"], "HGET", replay, "state")}
	if of := keys.Replays(bus.Token(token)); !e.Has(of, id) {
		e.Add(replay, "is not in "+e.Show(of), "added there",
			append(unchanged, Is(0, "SISMEMBER", e.Full(of), id)), Command{"SADD", e.Full(of), id})
	}
	if running := keys.RunningReplays(); fields["state"] == "running" && !e.Has(running, id) {
		e.Add(replay, "is not in "+running, "added there",
			append(unchanged, Is(0, "SISMEMBER", e.Full(running), id)), Command{"SADD", e.Full(running), id})
	}
}

// addOrphanReplay adds a replay of a subscriber that is not there.
func addOrphanReplay(e *Examination, id, token string) {
	replay := e.Keys.Replay(bus.ReplayID(id))
	e.Add(replay, "is of no subscriber", "removed",
		append(isNobody(e, token), Is(token, "HGET", replay, "token"), Is(1, "EXISTS", replay)),
		Command{"DEL", replay, e.Keys.ReplayBatches(bus.ReplayID(id))},
		Command{"SREM", e.Keys.RunningReplays(), id})
}

// isNobody are checks that a token is not a subscriber's.
func isNobody(e *Examination, token string) []Check {
	return []Check{
		Is(0, "SISMEMBER", e.Keys.Subscribers(), token),
		Is(0, "HSTRLEN", e.Keys.Subscriber(bus.Token(token)), "callback"),
	}
}
