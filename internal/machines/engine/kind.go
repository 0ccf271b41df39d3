package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Visit is the [queue.Payload] of a label that a worker has taken.
type Visit struct {
	machines.Label
	// Traceparent is of the request that had the label looked at; empty if that was not traced, or
	// there was none.
	Traceparent string
	// Acknowledged is the status by which the webhook of the label's state was acknowledged, while the
	// definitions were replaced so that it could not move yet; else 0.
	Acknowledged int

	// definitions is their edition, taken the unique text by which the label was taken.
	definitions, taken string
}

// LaneStanding is part of [queue.Payload]. It is the standing of the webhook or the feeds of the
// label's state.
func (v *Visit) LaneStanding() bus.Standing { return v.Standing }

// Owners is part of [queue.Payload]: the state, and the machine.
func (v *Visit) Owners() []queue.Owner {
	machine := string(v.Machine) + "/"
	return []queue.Owner{queue.Owner(machine + string(v.State)), queue.Owner(machine)}
}

// LogAttrs is part of [queue.Payload].
func (v *Visit) LogAttrs() []slog.Attr {
	return []slog.Attr{
		slog.String("machine", string(v.Machine)), slog.String("label", string(v.Name)), slog.String("state", string(v.State)),
	}
}

// Outcome is the result of a worker's step for a label.
type Outcome string

// The outcomes, and the meaning of RetryAt of the [queue.Result] in each.
const (
	// Moved: the label goes to another state, or to the same again. RetryAt is zero.
	Moved Outcome = "moved"
	// Closed: the condition of its gate does not hold. RetryAt is when it is evaluated again, zero if
	// only a trigger has it evaluated.
	Closed Outcome = "closed"
	// Failed: the evaluation failed. RetryAt is when it is made again.
	Failed Outcome = "failed"
	// Attempted: the action's webhook failed. RetryAt is when it is called again.
	Attempted Outcome = "attempted"
	// Errored: the same, and it is not called again. RetryAt is zero.
	Errored Outcome = "errored"
	// Idle: there is nothing to do. RetryAt is zero.
	Idle Outcome = "idle"
	// Paused: the run has made too many moves. RetryAt is when it goes on.
	Paused Outcome = "paused"
)

// again is the outcome of a task whose handler did not come to one.
const again Outcome = "again"

// Result is a worker's result for a label: the [queue.Result].Detail of its task. Fields that do
// not apply to the outcome are zero.
type Result struct {
	Outcome Outcome
	// Standing is the standing of the state's webhook or feeds from now on; nil if it is unchanged.
	Standing *bus.Standing
	// To is where the label goes, and Why why. RunsOn says that a worker is to look at it there at
	// once, as part of a run that has made Steps moves.
	To     machines.StateName
	Why    machines.Why
	RunsOn bool
	Steps  int
	// In is the machine, which says whether and where the move is published.
	In *machines.Machine
	// Evaluated is set if the move was decided by the label's metadata, and is void if that has
	// changed.
	Evaluated bool
	// Error is why the evaluation or the attempt failed, Failures how many have in a row, Status the
	// answer's to the attempt, also of a label that has moved by it; 0 without one.
	Error    string
	Failures int
	Status   int
}

// kind is the queue's entries that are labels.
type kind struct{}

// Name is part of [queue.Kind].
func (kind) Name() bus.JobName { return bus.JobLabel }

// Library is part of [queue.Kind].
func (kind) Library() rdb.Library { return kindLibrary }

// MaxInFlight is part of [queue.Kind]: labels have no lane.
func (kind) MaxInFlight() int { return 0 }

// Settings is part of [queue.Kind].
func (kind) Settings(context.Context) []any { return []any{strconv.FormatUint(rand.Uint64(), 36)} }

// Discarded is part of [queue.Kind].
func (kind) Discarded([]any) any { return nil }

// moveResult holds the fields that a move adds to a result, under the same names in
// lua/lib/kind.lua.
type moveResult struct {
	Version     any // of the metadata that was evaluated; "" for any
	Edition     string
	State       string // the new one
	Why         []byte // JSON
	RunsOn      bool
	Steps       int    // moves that the run has made
	Publication string // see tell in lua/lib/labels.lua
	Status      any    // by which a webhook was acknowledged; "" if the label has moved for another reason
}

func (r moveResult) list() []any {
	return []any{r.Version, r.Edition, r.State, r.Why, r.RunsOn, r.Steps, r.Publication, r.Status}
}

// Result is part of [queue.Kind]: it returns the arguments of RESULTS of lua/lib/kind.lua.
func (kind) Result(payload queue.Payload, detail any) []any {
	visit := payload.(*Visit)
	r, ok := detail.(Result)
	if !ok {
		r.Outcome = again
	}
	values := []any{string(r.Outcome), visit.taken, ""}
	if r.Standing != nil {
		values[2] = int(*r.Standing)
	}
	status := any("")
	if r.Status > 0 {
		status = r.Status
	}
	switch r.Outcome {
	case Moved:
		version := any("")
		if r.Evaluated {
			version = visit.Version
		}
		why, err := json.Marshal(r.Why)
		if err != nil { // it has values of JSON only
			why = []byte("{}")
		}
		return append(values, moveResult{
			Version: version, Edition: visit.definitions, State: string(r.To), Why: why, RunsOn: r.RunsOn, Steps: r.Steps,
			Publication: publication(r.In), Status: status,
		}.list()...)
	case Failed:
		return append(values, r.Error, r.Failures)
	case Attempted, Errored:
		return append(values, r.Failures, status, r.Error)
	}
	return values
}

// Payload is part of [queue.Kind]: it reads the reply of take of lua/lib/kind.lua.
func (kind) Payload(job bus.Job, values []any) (queue.Payload, error) {
	if len(values) != 4 || len(job.Args) != 2 {
		return nil, fmt.Errorf("take label: %d values, %d arguments", len(values), len(job.Args))
	}
	fields, _ := values[3].([]any)
	label, err := readLabel(machines.Name(job.Args[0]), machines.LabelName(job.Args[1]), values[2], fields)
	if err != nil {
		return nil, err
	}
	standing, _ := values[1].(int64)
	label.Standing = bus.Standing(standing)
	return &Visit{
		Label: label, Traceparent: rdb.Text(fields[fieldTraceparent]),
		Acknowledged: int(rdb.Integer(rdb.Text(fields[fieldAcknowledged]), 0)),
		definitions:  rdb.Text(values[0]), taken: rdb.Text(fields[fieldTaken]),
	}, nil
}
