package web

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
	"routemaster/internal/machines/engine"
	"routemaster/internal/web/rest"
)

// labelView is a label. What does not apply to it is left out. Times are ms since the Unix epoch.
type labelView struct {
	Metadata jsontext.Value     `json:"metadata" api:"type=object additionalProperties=true"`
	State    machines.StateName `json:"state"`
	// Time in ms since the Unix epoch.
	EnteredAt  int64        `json:"entered_at"`
	WaitingFor *waitingView `json:"waiting_for,omitempty"`
	Action     *actionView  `json:"action,omitempty"`
	Errored    *erroredView `json:"errored,omitempty"`
	// The states ahead, as far as they are determined.
	Route []machines.StateName `json:"route,omitempty"`
}

// waitingView is why a label is in its gate, and the triggers that evaluate it.
type waitingView struct {
	condition.Explanation
	// The triggers that evaluate the condition.
	Triggers []triggerView `json:"triggers"`
}

type triggerView struct {
	Type string `json:"type" api:"enum=metadata|time|interval|topic|retry"`
	Path string `json:"path,omitempty"`
	// Time in ms since the Unix epoch.
	At    *int64 `json:"at,omitempty"`
	Topic string `json:"topic,omitempty"`
}

type actionView struct {
	// How many have failed.
	Attempts   int     `json:"attempts"`
	LastStatus *int    `json:"last_status,omitempty"`
	LastError  *string `json:"last_error,omitempty"`
	// Time in ms since the Unix epoch.
	NextTryAt *int64 `json:"next_try_at,omitempty"`
}

type erroredView struct {
	// Time in ms since the Unix epoch.
	At     int64  `json:"at"`
	Reason string `json:"reason"`
}

// viewLabel returns how a label of a machine is shown. No feed is asked.
func (h *machineHandlers) viewLabel(ctx context.Context, m *machines.Machine, label *machines.Label) labelView {
	view := labelView{Metadata: jsontext.Value(label.Metadata), State: label.State, EnteredAt: label.EnteredAt.UnixMilli()}
	state := m.State(label.State)
	if state == nil { // it has vanished, and the label is about to leave it
		return view
	}
	e, err := h.evaluator.Begin(ctx, m, label, false)
	switch {
	case state.Action != nil:
		view.Action = &actionView{
			Attempts: label.Attempts, LastStatus: rest.OrNull(label.LastStatus), LastError: rest.OrNull(label.LastError),
			NextTryAt: rest.Millis(label.NextAt),
		}
	case state.Next != nil:
		view.WaitingFor = h.viewWaiting(state.Gate, label, e, err)
	}
	if !label.ErroredAt.IsZero() {
		view.Errored = &erroredView{label.ErroredAt.UnixMilli(), cmp.Or(label.ErroredReason, label.LastError)}
	}
	if err == nil {
		view.Route = route(m, state, e)
	}
	return view
}

// viewWaiting explains the gate of a label by an evaluation, or by why there is none.
func (h *machineHandlers) viewWaiting(
	g *machines.Gate, label *machines.Label, e *engine.Evaluation, err error,
) *waitingView {
	view := &waitingView{Triggers: h.viewTriggers(g, label)}
	if err != nil {
		view.Explanation = failedExplanation(g, err)
		return view
	}
	view.Explanation = g.Condition.Explain(e.Environment)
	view.Error = cmp.Or(view.Error, label.Error)
	return view
}

// viewTriggers lists the triggers that can still evaluate the gate of a label. The entry is over.
func (h *machineHandlers) viewTriggers(g *machines.Gate, label *machines.Label) []triggerView {
	views := []triggerView{}
	metadata, _ := machines.ParseObject(label.Metadata)
	for _, t := range g.Triggers {
		switch {
		case t.Entry:
		case t.Timed():
			views = append(views, h.viewTimed(t, metadata))
		case t.Topic != nil:
			views = append(views, triggerView{Type: "topic", Topic: string(t.Topic.Topic)})
		default:
			views = append(views, triggerView{Type: "metadata", Path: strings.Join(t.Metadata, ".")})
		}
	}
	if !label.NextAt.IsZero() { // a change has not opened the gate, or the evaluation has failed
		views = append(views, triggerView{Type: "retry", At: rest.Millis(label.NextAt)})
	}
	return views
}

// viewTimed shows a trigger of the clock. One by a time zone that the metadata does not name is
// never due.
func (h *machineHandlers) viewTimed(t machines.Trigger, metadata machines.Object) triggerView {
	view := triggerView{Type: "interval"}
	if t.TimeOfDay != nil {
		view.Type = "time"
	}
	zone, err := t.Zone.In(metadata)
	if err != nil {
		return view
	}
	if at, ok := t.Next(h.Now(), zone); ok {
		view.At = rest.Millis(at)
	}
	return view
}

// route returns the states behind one, up to an end, to one that was there before, or to one that
// is not determined yet: by metadata that the label does not have, or by something else that may be
// another then.
func route(m *machines.Machine, state *machines.State, e *engine.Evaluation) (names []machines.StateName) {
	seen := []machines.StateName{state.Name}
	for state != nil && state.Next != nil {
		if path := state.Next.Path; path != nil {
			value, err := path.Lookup(e.Environment)
			if path.Names[0] != "metadata" || err != nil || value == nil {
				break
			}
		}
		next, err := e.Next(state.Next)
		if err != nil || slices.Contains(seen, next) {
			break
		}
		seen = append(seen, next)
		state = m.State(next)
	}
	return seen[1:]
}
