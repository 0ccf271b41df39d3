package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/outbound"
	"routemaster/internal/telemetry"
)

// IdempotencyHeader has the token of a visit.
const IdempotencyHeader = "X-Idempotency-Token"

// act calls the webhook of an action, unless it was acknowledged before.
func (r *Runner) act(
	ctx context.Context, m *machines.Machine, state *machines.State, visit *Visit,
) (result Result, retryAfter time.Duration) {
	attempt := outbound.Attempt{Status: visit.Acknowledged}
	if visit.Acknowledged == 0 {
		attempt = r.call(ctx, m, state, visit)
	}
	standing := changedTo(standingAfter(attempt), visit)
	if attempt.Doubtful {
		standing = nil
	}
	defer func() { result.Standing = standing }()
	if attempt.Err != nil {
		return r.missed(state.Action, visit, attempt)
	}
	to, err := r.successor(ctx, m, state, visit)
	if err != nil {
		// The webhook is called again, with the same token: so this counts as an attempt, and ends.
		attempt.Err = err
		return r.missed(state.Action, visit, attempt)
	}
	result = moved(m, visit, to, machines.Why{Status: attempt.Status})
	result.Status = attempt.Status
	return result, 0
}

// call calls the webhook of an action, and counts and traces that.
func (r *Runner) call(ctx context.Context, m *machines.Machine, state *machines.State, visit *Visit) outbound.Attempt {
	ctx, span := r.config.Tracer.StartFrom(ctx, []string{visit.Traceparent}, "webhook")
	attempt := r.send(ctx, m, state.Action, &visit.Label)
	machine, of := string(m.Name), string(state.Name)
	r.config.Recorder.Count(telemetry.Webhooks, 1, machine, of, strconv.Itoa(attempt.Status))
	r.config.Recorder.Took(telemetry.WebhookDuration, attempt.Duration, machine, of)
	if span != nil {
		failure := ""
		if attempt.Err != nil {
			failure = attempt.Err.Error()
		}
		span.End("webhook", failure, visit.LogAttrs()...)
	}
	return attempt
}

// send sends the webhook of an action.
func (r *Runner) send(ctx context.Context, m *machines.Machine, a *machines.Action, label *machines.Label) outbound.Attempt {
	url := machines.ExpandURL(a.Webhook, label.Machine, label.Name)
	header := http.Header{"Content-Type": {"application/json"}, IdempotencyHeader: {label.IdempotencyToken()}}
	telemetry.Propagate(ctx, header)
	for _, rule := range m.Webhooks {
		if rule.Holds(a.Webhook, label.Machine, label.Name) {
			for name, value := range rule.Headers {
				header.Set(name, value)
			}
		}
	}
	body, err := machines.Encode(struct {
		Label    machines.LabelName `json:"label"`
		Metadata json.RawMessage    `json:"metadata"`
	}{label.Name, label.Metadata})
	if err != nil {
		return outbound.Attempt{Err: fmt.Errorf("metadata: %w", err)}
	}
	return r.config.Client.Send(ctx, outbound.Request{
		URL: url, Header: header, Timeout: a.Timeout,
		Body: func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }, Length: int64(len(body)),
	})
}

// missed is the result of an attempt that failed, or after which no state was found to go to.
func (r *Runner) missed(
	a *machines.Action, visit *Visit, attempt outbound.Attempt,
) (Result, time.Duration) {
	result := Result{
		Outcome: Attempted, Failures: visit.Attempts + 1, Status: attempt.Status, Error: bus.Reason(attempt.Err.Error()),
	}
	if attempt.Doubtful { // the next is over a new connection, and counts
		result.Failures = visit.Attempts
		return result, time.Millisecond
	}
	if attempt.Gone() || result.Failures >= a.Attempts {
		result.Outcome = Errored
		return result, 0
	}
	wait := max(backoff(a, result.Failures, rand.Float64()), min(attempt.RetryAfter, machines.MaxBackoff))
	return result, wait
}

// successor returns where a label goes after its action. If its metadata decides, that is read
// again: it may have been changed while the webhook was called.
func (r *Runner) successor(
	ctx context.Context, m *machines.Machine, state *machines.State, visit *Visit,
) (machines.StateName, error) {
	if state.Next.Path == nil {
		return state.Next.Default, nil
	}
	label, _, err := r.stores.Of(visit.Machine, visit.Name).Label(ctx, visit.Machine, visit.Name)
	if err != nil {
		return "", fmt.Errorf("next: %w", err)
	}
	e, err := r.evaluator.Begin(ctx, m, &label, true)
	if err != nil {
		return "", fmt.Errorf("next: %w", err)
	}
	return e.Next(state.Next)
}

// standingAfter returns the standing of a state after an attempt of its action.
func standingAfter(a outbound.Attempt) bus.Standing {
	if a.Failure() == bus.EndpointFailure {
		return bus.Failing
	}
	return bus.Proven
}

// backoff is the time before the next attempt of an action, after so many that failed: up to a
// fifth less by chance, so that labels which failed together do not come together again.
func backoff(a *machines.Action, failures int, chance float64) time.Duration {
	wait := a.Backoff
	for range failures - 1 {
		if wait *= 2; wait >= machines.MaxBackoff {
			break
		}
	}
	wait = min(wait, machines.MaxBackoff)
	return wait - time.Duration(chance/5*float64(wait))
}
