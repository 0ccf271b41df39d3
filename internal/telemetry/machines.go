package telemetry

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// LabelStepsCounter is a counter by [MachineTag] and outcome: what workers did for labels.
const LabelStepsCounter = "labels.steps"

// MachineTag is the tag of the counters of a machine.
const MachineTag = "machine"

// Moved is the outcome of a step after which a label was in another state.
const Moved = "moved"

// BusOutcomes are the outcomes of steps that are counted for the whole bus: labels have moved, and
// what holds them up. The others are left out, because most evaluations leave a gate closed.
var BusOutcomes = []string{Moved, "failed", "attempted", "errored"}

// LabelSteps returns the counter of the steps of a machine's labels with one of [BusOutcomes].
func LabelSteps(machine machines.Name, outcome string) bus.Counter {
	return bus.NewCounter(LabelStepsCounter, bus.Tag{Name: MachineTag, Value: string(machine)}, bus.Tag{Name: "outcome", Value: outcome})
}

// machineInstruments are the metrics of state machines. The operator's definitions bound their
// series.
type machineInstruments struct {
	steps, webhooks, feeds, events, moves, dropped *prometheus.CounterVec
	webhookTime                                    *prometheus.SummaryVec
}

func (m *machineInstruments) register(register promauto.Factory) {
	m.steps = register.NewCounterVec(counter("label_steps_total",
		"What workers have done for labels, by the state in which the label was, and outcome."),
		[]string{"machine", "state", "outcome"})
	m.webhooks = register.NewCounterVec(counter("machine_webhooks_total",
		"Calls of actions' webhooks, by the status of the answer, 0 without one."),
		[]string{"machine", "state", "status"})
	m.webhookTime = register.NewSummaryVec(prometheus.SummaryOpts{
		Namespace: Namespace, Name: "machine_webhook_duration_seconds", Help: "Time to the answer of an action's webhook.",
	}, []string{"machine", "state"})
	m.feeds = register.NewCounterVec(counter("machine_feeds_total",
		"Requests to feeds, by the status of the answer, 0 without one."),
		[]string{"machine", "feed", "status"})
	m.events = register.NewCounterVec(counter("machine_events_total",
		"Events of topics that machines have heard, by topic and what became of them."),
		[]string{"machine", "topic", "outcome"})
	m.moves = register.NewCounterVec(counter("machine_moves_published_total",
		"Moves of labels that were published."),
		[]string{"machine"})
	m.dropped = register.NewCounterVec(counter("machine_moves_dropped_total",
		"Moves of labels that cannot be published: their URL is too long, or the machine publishes no more."),
		[]string{"machine"})
}

// EventOutcome is what became of an event that a machine has heard.
type EventOutcome string

// The outcomes: the label was changed or made; there is no such label, or it was deleted; the event
// names no label, or has data for which there is no place; its data would be too long with the
// label's metadata; the label's record is damaged. But for the first two, the event is dropped.
const (
	EventChanged  EventOutcome = "changed"
	EventCreated  EventOutcome = "created"
	EventUnknown  EventOutcome = "unknown"
	EventDeleted  EventOutcome = "deleted"
	EventUnusable EventOutcome = "unusable"
	EventInvalid  EventOutcome = "invalid"
	EventDamaged  EventOutcome = "damaged"
	// EventPaused: it has changed a label, but not had its gate evaluated, as machines set off one
	// another.
	EventPaused EventOutcome = "paused"
	// EventFull: the account of the client that has made the label, or would, is full. The event is
	// dropped.
	EventFull EventOutcome = "account_full"
)

// eventOutcomes are all of them.
var eventOutcomes = []EventOutcome{
	EventChanged, EventCreated, EventUnknown, EventDeleted, EventUnusable, EventInvalid, EventDamaged, EventPaused, EventFull,
}

// The outcomes of steps in a state, besides those that say nothing, by what it is.
var (
	gateOutcomes   = []string{Moved, "failed", "paused"}
	actionOutcomes = []string{Moved, "attempted", "errored", "paused"}
)

// Machine notes that there is a machine. What may become of its labels and events, and of requests
// to its feeds, is 0 from then on: the increase of a series that begins with 1 is not seen. Which
// other statuses feeds will answer is not known.
func (r *Recorder) Machine(m *machines.Machine) {
	if r == nil {
		return
	}
	of, name := &r.metrics.machines, string(m.Name)
	for _, s := range m.States {
		outcomes := gateOutcomes
		if s.Action != nil {
			outcomes = actionOutcomes
		}
		for _, outcome := range outcomes {
			of.steps.WithLabelValues(name, string(s.Name), outcome)
		}
	}
	for _, feed := range m.Feeds {
		for _, status := range []string{"0", "200"} {
			of.feeds.WithLabelValues(name, feed.Name, status)
		}
	}
	for _, topic := range m.Topics() {
		for _, outcome := range eventOutcomes {
			of.events.WithLabelValues(name, string(topic), string(outcome))
		}
	}
}

// EventHeard notes what became of an event of a topic, for a machine.
func (r *Recorder) EventHeard(machine machines.Name, topic bus.TopicName, outcome EventOutcome) {
	if r != nil {
		r.metrics.machines.events.WithLabelValues(string(machine), string(topic), string(outcome)).Inc()
	}
}

// MovesPublished notes that moves of labels were published.
func (r *Recorder) MovesPublished(machine machines.Name, moves int) {
	if r != nil {
		r.metrics.machines.moves.WithLabelValues(string(machine)).Add(float64(moves))
	}
}

// MovesDropped notes moves that cannot be published.
func (r *Recorder) MovesDropped(machine machines.Name, moves int) {
	if r != nil {
		r.metrics.machines.dropped.WithLabelValues(string(machine)).Add(float64(moves))
	}
}

// LabelStep notes what a worker has done for a label in a state.
func (r *Recorder) LabelStep(machine machines.Name, state machines.StateName, outcome string) {
	if r == nil {
		return
	}
	r.metrics.machines.steps.WithLabelValues(string(machine), string(state), outcome).Inc()
	if slices.Contains(BusOutcomes, outcome) {
		r.counts.addOne(LabelSteps(machine, outcome), 1)
	}
}

// WebhookCalled notes the call of an action's webhook: the status of the answer, 0 without one, and
// how long it took.
func (r *Recorder) WebhookCalled(machine machines.Name, state machines.StateName, status int, took time.Duration) {
	if r != nil {
		r.metrics.machines.webhooks.WithLabelValues(string(machine), string(state), strconv.Itoa(status)).Inc()
		r.metrics.machines.webhookTime.WithLabelValues(string(machine), string(state)).Observe(took.Seconds())
	}
}

// FeedAsked notes a request to a feed, and the status of the answer, 0 without one.
func (r *Recorder) FeedAsked(machine machines.Name, feed string, status int) {
	if r != nil {
		r.metrics.machines.feeds.WithLabelValues(string(machine), feed, strconv.Itoa(status)).Inc()
	}
}
