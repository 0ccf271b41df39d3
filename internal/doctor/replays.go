package doctor

import (
	"routemaster/internal/bus"
)

// findReplays looks for replays that no set lists, or without a subscriber, and for lists of
// missing replays. A subscriber's set may list replays that have expired.
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
	key, token := keys.Replay(bus.ReplayID(id)), fields["token"]
	unchanged := []Check{Is(token, "HGET", e.Full(key), "token"), Is(fields["state"], "HGET", e.Full(key), "state")}
	e.mustList(key, keys.Replays(bus.Token(token)), id, nil, unchanged...)
	if fields["state"] == "running" {
		e.mustList(key, keys.RunningReplays(), id, nil, unchanged...)
	}
}

// addOrphanReplay adds a replay of a subscriber that is not there.
func addOrphanReplay(e *Examination, id, token string) {
	replay := e.Keys.Replay(bus.ReplayID(id))
	e.Add(replay, "is of no subscriber", "removed",
		append(isNoSubscriber(e, token), Is(token, "HGET", replay, "token"), Is(1, "EXISTS", replay)),
		Command{"DEL", replay, e.Keys.ReplayBatches(bus.ReplayID(id))},
		Command{"SREM", e.Keys.RunningReplays(), id})
}
