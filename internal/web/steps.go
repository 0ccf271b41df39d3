package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
	"routemaster/internal/web/rest"
)

const (
	// triggerEvaluate is the trigger of labels whose evaluation a client asks for.
	triggerEvaluate = "evaluate"
	// maxDryRun bounds the time for asking feeds in a dry run.
	maxDryRun = 30 * time.Second
	// maxTries is how often a label is asked for that moves meanwhile.
	maxTries = 10
)

// postRetry has an errored label try its action again.
func (h *machineHandlers) postRetry(w http.ResponseWriter, r *http.Request) {
	h.step(w, r, func(label *machines.Label, _ *machines.Definitions) error {
		return h.labels(r).Retry(r.Context(), label.Machine, label.Name)
	})
}

// postEvaluate evaluates the gate of a label, and moves it if it opens; a dry run moves nothing.
func (h *machineHandlers) postEvaluate(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	dryRun := isTrue(q, "dry_run")
	if !dryRun || q.Err() != nil {
		h.step(w, r, func(label *machines.Label, d *machines.Definitions) error {
			if _, err := gateOf(label, d); err != nil {
				return err
			}
			return h.labels(r).Ask(r.Context(), label.Machine, label.Name, label.State, triggerEvaluate)
		})
		return
	}
	r, release := h.Hold(r)
	defer release()
	err := h.RefuseBody(w, r)
	var view dryRunView
	if err == nil {
		view, err = h.dryRun(r)
	}
	h.RespondJSON(w, r, view, err)
}

// step asks a worker for a step of a label, waits for the result, and responds with the label.
func (h *machineHandlers) step(w http.ResponseWriter, r *http.Request, ask func(*machines.Label, *machines.Definitions) error) {
	r, release := h.Hold(r)
	defer release()
	q := rest.ReadQuery(r)
	isTrue(q, "dry_run")
	wait, leave := h.readWait(r, q)
	defer leave()
	err := q.Err()
	if err == nil {
		err = h.RefuseBody(w, r)
	}
	var label machines.Label
	var definitions *machines.Definitions
	for range maxTries {
		if err == nil {
			label, definitions, err = h.label(r)
		}
		if err == nil && !definitions.Machine(label.Machine).Clients.Allow(clientOf(r)) {
			err = machines.ErrNotClient
		}
		if err == nil {
			err = ask(&label, definitions)
		}
		if !errors.Is(err, machines.ErrChanged) {
			break
		}
	}
	if err == nil {
		label, definitions, err = h.labels(r).Rest(r.Context(), label.Machine, label.Name, wait)
	}
	if err == nil {
		err = context.Cause(r.Context()) // the label as it is now is not for a removed token
	}
	h.respondLabel(w, r, &label, definitions, err)
}

// gateOf returns the state of a label, which must be a gate. It fails with a [rest.Problem] for one
// that is errored, and with [machines.ErrNotInGate].
func gateOf(label *machines.Label, d *machines.Definitions) (*machines.State, error) {
	state := d.State(label.Machine, label.State)
	if !label.ErroredAt.IsZero() && (state == nil || state.Gate == nil) {
		return nil, &rest.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("the label is errored in the action %s; "+
			"POST "+machinesPath+"/{machine}/labels/{label}/retry (%s) has that tried again",
			label.State, bus.Command("label retry", string(label.Machine), string(label.Name)))}
	}
	if state == nil || state.Gate == nil {
		return nil, machines.ErrNotInGate
	}
	return state, nil
}

// dryRunView is the result of a dry run of a gate.
type dryRunView struct {
	State machines.StateName `json:"state"`
	condition.Explanation
	// Where the label would go; left out if it would stay.
	To machines.StateName `json:"to,omitempty"`
}

// dryRun evaluates the gate of a label, and changes nothing.
func (h *machineHandlers) dryRun(r *http.Request) (view dryRunView, err error) {
	label, definitions, err := h.label(r)
	if err != nil {
		return view, err
	}
	state, err := gateOf(&label, definitions)
	if err != nil {
		return view, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxDryRun)
	defer cancel()
	label.Trigger = triggerEvaluate
	view.State = label.State
	e, err := h.evaluator.Begin(ctx, definitions.Machine(label.Machine), &label, true)
	if err != nil {
		view.Explanation = failedExplanation(state.Gate, err)
		return view, nil
	}
	view.Explanation = state.Gate.Condition.Explain(e.Environment)
	if view.Value != nil && *view.Value && state.Next != nil {
		if view.To, err = e.Next(state.Next); err != nil {
			view.Error = err.Error()
		}
	}
	return view, nil
}

// failedExplanation explains a condition whose evaluation could not begin.
func failedExplanation(g *machines.Gate, err error) condition.Explanation {
	return condition.Explanation{Condition: g.Condition.String(), Error: err.Error(), Parts: []condition.Part{}}
}

type labelHistoryView struct {
	History []moveView `json:"history"`
	// How many moves there were, the creation included.
	Count int64 `json:"count"`
}

// moveView is a move. From is null for the creation, To for the deletion.
type moveView struct {
	// Time in ms since the Unix epoch.
	At int64 `json:"at"`
	// Null for the creation.
	From *machines.StateName `json:"from"`
	// Null for the deletion.
	To  *machines.StateName `json:"to"`
	Why machines.Why        `json:"why"`
}

// getHistory lists the moves of a label, the latest first; also of one that was deleted, while its
// name is kept.
func (h *machineHandlers) getHistory(w http.ResponseWriter, r *http.Request) {
	view, err := h.listMoves(w, r)
	h.RespondJSON(w, r, view, err)
}

// listMoves reads a page of moves. They are numbered from 0, the creation: a cursor is the number
// of the last move of a page, so that it stays right when the label moves.
func (h *machineHandlers) listMoves(w http.ResponseWriter, r *http.Request) (view labelHistoryView, err error) {
	q := rest.ReadQuery(r)
	limit := int(movesLimit.integer(q))
	before := movesBefore.integerOr(q, maxCursor)
	if err := q.Err(); err != nil {
		return view, err
	}
	label, _, err := h.label(r)
	if err != nil && !errors.Is(err, machines.ErrLabelDeleted) {
		return view, err
	}
	moves, count, err := h.labels(r).History(r.Context(), &label)
	if err != nil {
		return view, err
	}
	view = labelHistoryView{History: []moveView{}, Count: count}
	for i, move := range moves {
		number := count - 1 - int64(i)
		if number >= before {
			continue
		}
		if len(view.History) == limit {
			rest.SetNext(w, r, "cursor", strconv.FormatInt(number+1, 10))
			break
		}
		view.History = append(view.History, moveView{move.At.UnixMilli(), rest.OrNull(move.From), rest.OrNull(move.To), move.Why})
	}
	return view, nil
}

// maxCursor is more than any label has moves.
const maxCursor = 1 << 53
