package engine

import (
	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/telemetry"
)

// eventOutcome is the result of an event that a machine has consumed.
type eventOutcome string

// The outcomes: the label was changed or made; there is no such label, or it was deleted; the event
// names no label, or has data for which there is no place; its data would be too long with the
// label's metadata; the label's record is damaged. But for the first two, the event is dropped.
const (
	eventChanged  eventOutcome = "changed"
	eventCreated  eventOutcome = "created"
	eventUnknown  eventOutcome = "unknown"
	eventDeleted  eventOutcome = "deleted"
	eventUnusable eventOutcome = "unusable"
	eventInvalid  eventOutcome = "invalid"
	eventDamaged  eventOutcome = "damaged"
	// eventPaused: it has changed a label, but not had its gate evaluated, as machines set off one
	// another.
	eventPaused eventOutcome = "paused"
	// eventFull: the account of the client that has made the label, or would, is full. The event is
	// dropped.
	eventFull eventOutcome = "account_full"
)

// eventOutcomes are all of them.
var eventOutcomes = []eventOutcome{
	eventChanged, eventCreated, eventUnknown, eventDeleted, eventUnusable, eventInvalid, eventDamaged, eventPaused, eventFull,
}

// The outcomes of steps that are counted in a state, for gates and for actions.
var (
	gateOutcomes   = []string{telemetry.Moved, "failed", "paused"}
	actionOutcomes = []string{telemetry.Moved, "attempted", "errored", "paused"}
)

// BeginSeries begins the series of a machine: the outcomes of its labels, its events, and requests
// to its feeds. Which other statuses feeds will answer is not known.
func BeginSeries(recorder *telemetry.Recorder, m *machines.Machine) {
	name := string(m.Name)
	for _, s := range m.States {
		outcomes := gateOutcomes
		if s.Action != nil {
			outcomes = actionOutcomes
		}
		for _, outcome := range outcomes {
			recorder.Count(telemetry.LabelSteps, 0, name, string(s.Name), outcome)
		}
	}
	for _, feed := range m.Feeds {
		for _, status := range []string{"0", "200"} {
			recorder.Count(telemetry.Feeds, 0, name, feed.Name, status)
		}
	}
	for _, topic := range m.Topics() {
		for _, outcome := range eventOutcomes {
			recorder.Count(telemetry.HeardEvents, 0, name, string(topic), string(outcome))
		}
	}
}

// heard counts an event that a machine has heard.
func (c *Client) heard(machine machines.Name, topic bus.TopicName, outcome eventOutcome) {
	c.Recorder.Count(telemetry.HeardEvents, 1, string(machine), string(topic), string(outcome))
}
