package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/condition"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/telemetry"
)

const (
	// maxSteps is how many moves a run makes before it pauses, and runPause for how long.
	maxSteps = 50
	runPause = time.Minute
	// pendingInterval is how often a gate is evaluated again that a client's change did not open.
	pendingInterval = time.Minute
	// An evaluation that fails is made again after firstRetry, doubling up to maxRetry.
	firstRetry = 10 * time.Second
	maxRetry   = 10 * time.Minute
)

// RunnerConfig configures a [Runner].
type RunnerConfig struct {
	// Client sends the requests to webhooks and feeds.
	Client *outbound.Client
	// Tracer, if given, makes a span of each call of a webhook.
	Tracer *telemetry.Tracer
	// Recorder counts. It may be nil.
	Recorder *telemetry.Recorder
}

// Runner does the due work of a label that a worker has taken: it evaluates its gate, or calls the
// webhook of its action, and decides what follows. Nothing is locked meanwhile. It also walks over
// the labels of a state when a trigger is due for all of them. It is safe for concurrent use.
type Runner struct {
	config    RunnerConfig
	stores    *Bus
	evaluator *Evaluator
	log       *slog.Logger
	now       func() time.Time
}

// NewRunner makes a runner.
func NewRunner(stores *Bus, config RunnerConfig, log *slog.Logger, now func() time.Time) *Runner {
	return &Runner{
		config: config, stores: stores, evaluator: New(config.Client, config.Recorder, now),
		log: log, now: now,
	}
}

// Run is the handler of [bus.JobLabel]: it makes one step.
func (r *Runner) Run(ctx context.Context, task *queue.Task) queue.Result {
	visit := task.Payload.(*Visit)
	definitions, err := r.stores.Of(visit.Machine, visit.Name).DefinitionsOf(ctx, visit)
	if err != nil {
		telemetry.LogFailure(r.log, "could not read the definitions of state machines", err)
		return queue.Result{RetryAt: r.now().Add(firstRetry)}
	}
	result, retryAfter := r.step(ctx, definitions, visit)
	r.observe(visit, result, retryAfter)
	q := queue.Result{Detail: result, Hosts: hostsOf(definitions, visit)}
	if retryAfter > 0 {
		q.RetryAt = r.now().Add(retryAfter)
	}
	return q
}

// hostsOf are the hosts to which the state of a visit sends requests, as owners of its time.
func hostsOf(d *machines.Definitions, visit *Visit) []queue.Owner {
	m, state := d.Machine(visit.Machine), d.State(visit.Machine, visit.State)
	hosts := []queue.Owner{}
	if state == nil {
		return hosts
	}
	for _, url := range state.URLs(m) {
		hosts = append(hosts, queue.HostOwner(machines.ExpandURL(url, visit.Machine, visit.Name)))
	}
	return hosts
}

// step does the due work. It also returns the time until there is work again, 0 if that is not
// known.
func (r *Runner) step(ctx context.Context, d *machines.Definitions, visit *Visit) (Result, time.Duration) {
	m, state := d.Machine(visit.Machine), d.State(visit.Machine, visit.State)
	switch {
	case state == nil:
		return r.leave(d, visit)
	case visit.Steps >= maxSteps:
		return Result{Outcome: Paused}, runPause
	case state.MayOpen():
		return r.evaluate(ctx, m, state, visit)
	case state.Gate != nil: // an end
		return Result{Outcome: Closed, Standing: changedTo(bus.Proven, visit)}, 0
	case !visit.ErroredAt.IsZero():
		return Result{Outcome: Idle}, 0
	}
	return r.act(ctx, m, state, visit)
}

// leave moves a label on from a state that has vanished.
func (r *Runner) leave(d *machines.Definitions, visit *Visit) (Result, time.Duration) {
	to := d.Successor(visit.Machine, visit.State)
	if to == "" {
		return failed(visit, fmt.Errorf("the machine has no state %s any more", visit.State))
	}
	return moved(d.Machine(visit.Machine), visit, to, machines.Why{Trigger: machines.TriggerReview}), 0
}

// moved is the result of a step to a state.
func moved(m *machines.Machine, visit *Visit, to machines.StateName, why machines.Why) Result {
	why.Hops = visit.Hops
	return Result{
		Outcome: Moved, To: to, Why: why, Steps: visit.Steps + 1, RunsOn: m.State(to).RunsOn(), In: m,
	}
}

// failed is the result of an evaluation that failed.
func failed(visit *Visit, err error) (Result, time.Duration) {
	failures := visit.Failures + 1
	wait := min(firstRetry<<min(failures-1, 10), maxRetry)
	return Result{Outcome: Failed, Error: bus.Reason(err.Error()), Failures: failures}, wait
}

// evaluate evaluates the condition of a gate.
func (r *Runner) evaluate(
	ctx context.Context, m *machines.Machine, state *machines.State, visit *Visit,
) (result Result, retryAfter time.Duration) {
	e, err := r.evaluator.Begin(ctx, m, &visit.Label, true)
	if err != nil {
		return failed(visit, err)
	}
	defer func() { result.Standing = standingOf(e, state, visit) }()
	to, err := opensTo(e, state)
	if to != "" && e.Asked {
		e, to, err = r.reconsider(ctx, e, state, visit, to)
	}
	switch {
	case err != nil:
		return failed(visit, err)
	case to != "":
		result = moved(m, visit, to, machines.Why{Trigger: visit.Trigger, Values: e.Values(state.Gate.Condition)})
		result.Evaluated = true
		return result, 0
	case visit.Pending:
		return Result{Outcome: Closed}, pendingInterval
	}
	return Result{Outcome: Closed}, 0
}

// opensTo returns the state to which a gate lets a label go; empty if it does not.
func opensTo(e *Evaluation, state *machines.State) (machines.StateName, error) {
	open, err := state.Gate.Condition.Evaluate(e.Environment)
	if err != nil || !open {
		return "", err
	}
	return e.Next(state.Next)
}

// reconsider evaluates a visit again, with the answers that feeds have given, if the metadata was
// changed meanwhile: the move would be void, and changes that come faster than a feed answers could
// keep the gate shut. If it cannot, it returns its arguments.
func (r *Runner) reconsider(
	ctx context.Context, e *Evaluation, state *machines.State, visit *Visit, to machines.StateName,
) (*Evaluation, machines.StateName, error) {
	label, _, err := r.stores.Of(visit.Machine, visit.Name).Label(ctx, visit.Machine, visit.Name)
	if err != nil || label.Version == visit.Version || label.Moves != visit.Moves || !label.CreatedAt.Equal(visit.CreatedAt) {
		return e, to, nil
	}
	changed := visit.Label
	changed.Metadata, changed.Version = label.Metadata, label.Version
	again, err := e.Again(&changed)
	if err != nil {
		return e, "", err
	}
	newTo, err := opensTo(again, state)
	if errors.Is(err, condition.ErrUnknown) { // it takes another feed
		return e, to, nil
	}
	visit.Label = changed
	return again, newTo, err
}

// standingOf returns the standing of a state's feeds after an evaluation; nil if it is unchanged. A
// state without feeds, which may have had some before a change of the definitions, is proven.
func standingOf(e *Evaluation, state *machines.State, visit *Visit) *bus.Standing {
	standing := bus.Proven
	if e.FeedFailed {
		standing = bus.Failing
	}
	if visit.Standing == bus.Failing && !e.Asked && state.Requests() {
		return nil
	}
	return changedTo(standing, visit)
}

// changedTo is the standing of a visit's state from now on; nil if it is as it was.
func changedTo(standing bus.Standing, visit *Visit) *bus.Standing {
	if visit.Standing == standing {
		return nil
	}
	return &standing
}
