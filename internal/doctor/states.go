package doctor

import (
	"routemaster/internal/bus"
)

// findStates looks for states of batches that are not there.
func findStates(e *Examination) {
	for bid := range e.Each(keys.BatchState("")) {
		if j := e.Batch(bid); j.There || j.Original {
			continue
		}
		state := e.Keys.BatchState(bus.BatchID(bid))
		e.Add(state, "is of a batch that is not there", "removed",
			append(isGone(e, bid), Is(1, "EXISTS", state)), Command{"DEL", state})
	}
}

// isGone checks that a batch is not there, neither ours nor the Ruby original's.
func isGone(e *Examination, bid string) []Check {
	return []Check{Is(0, "EXISTS", e.Keys.Batch(bus.BatchID(bid))), Is(0, "EXISTS", e.Keys.Original(bus.BatchID(bid)))}
}
