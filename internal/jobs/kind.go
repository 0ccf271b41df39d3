package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Run is the [queue.Payload] of a job that a worker has taken, to hand it to its service.
type Run struct {
	ID       ID
	Type     TypeName
	Strategy Strategy
	// Attempts is how many attempts are left, this one included, MaxAttempts how many there are.
	Attempts, MaxAttempts int
	// Data is JSON.
	Data []byte
	// URL is where the job is POSTed; empty for below the operator's.
	URL string
	// Timeout is from when the service has taken the job until it has to report.
	Timeout time.Duration
	// Holds is how often in a row the service has asked for time.
	Holds int
	// Standing is the standing of the type's service, before this attempt.
	Standing bus.Standing
	// Sequence is its number among the jobs of its type, which no other ever had.
	Sequence int64
	// Traceparent is of the request that enqueued it; empty if that had none.
	Traceparent string
}

// LaneStanding is part of [queue.Payload].
func (r *Run) LaneStanding() bus.Standing { return r.Standing }

// Owners is part of [queue.Payload]: the type, and the host of its service unless that is the
// operator's.
func (r *Run) Owners() []queue.Owner {
	return []queue.Owner{queue.Owner(r.Type), queue.HostOwner(r.URL)}
}

// LogAttrs is part of [queue.Payload].
func (r *Run) LogAttrs() []slog.Attr {
	return []slog.Attr{
		slog.String("job_type", string(r.Type)), slog.String("id", r.ID.String()), slog.Int("attempts", r.Attempts),
	}
}

// Outcome says what came of handing a job to its service: the [queue.Result].Detail of its task.
// The result's RetryAt is, of a job that was
//
//   - [RunAccepted]: its deadline;
//   - [RunSucceeded]: zero;
//   - [RunFailed]: zero if it is not tried again, else when;
//   - [RunHeld]: until when the jobs of its type are held back. It costs no attempt.
//   - [RunUnsent]: the same, though its service has not said so.
//   - [RunAgain]: when it is handed over again. It costs no attempt, and holds nothing back.
//
// A job that is to be tried once is archived as failed, whatever RetryAt says, unless it was
// accepted, succeeded or was not sent.
type Outcome struct {
	Result RunResult
	// Reason says why the attempt failed, unless the service reported the failure; for an accepted
	// job, why a report was not read.
	Reason string
	// Reported is whether it was the service that said so.
	Reported bool
	// Standing is the standing of the service from now on.
	Standing bus.Standing
	// Status is the HTTP status of the service's answer, 0 for none, and Excerpt its beginning. Public
	// is whether clients may see both.
	Status  int
	Excerpt string
	Public  bool
}

// RunResult is the result of handing a job to its service.
type RunResult string

// The results.
const (
	RunAccepted  RunResult = "accepted"
	RunSucceeded RunResult = "succeeded"
	RunFailed    RunResult = "failed"
	RunHeld      RunResult = "held"
	RunUnsent    RunResult = "unsent"
	// RunAgain is also the result of a task whose handler did not come to one.
	RunAgain RunResult = "again"
)

// Ended is a job that a worker took and found ended, or whose attempt had ended: its deadline has
// passed, it has expired, or the worker that had it died.
type Ended struct {
	ID   ID
	Type TypeName
	// Status is [Queued] if it is tried again.
	Status Status
	// Reason says why the attempt ended; empty if it expired.
	Reason string
}

// kind is the queue's entries that are jobs.
type kind struct{}

// Name is part of [queue.Kind].
func (kind) Name() bus.JobName { return bus.JobJob }

// Library is part of [queue.Kind].
func (kind) Library() rdb.Library { return kindLibrary }

// MaxInFlight is part of [queue.Kind]: each type has a limit of its own.
func (kind) MaxInFlight() int { return 0 }

// Settings is part of [queue.Kind].
func (kind) Settings(context.Context) []any { return []any{rand.Float64()} }

// Result is part of [queue.Kind].
func (kind) Result(_ queue.Payload, detail any) []any {
	o, ok := detail.(Outcome)
	if !ok {
		return []any{string(RunAgain), "the worker failed", ""}
	}
	return []any{string(o.Result), o.Reason, int(o.Standing), o.Reported, o.Status, o.Excerpt, o.Public}
}

// Discarded is part of [queue.Kind].
func (kind) Discarded(values []any) any {
	return Ended{
		ID: ID(rdb.Text(values[0])), Type: TypeName(rdb.Text(values[1])),
		Status: Status(rdb.Text(values[2])), Reason: rdb.Text(values[3]),
	}
}

// runReply is the reply of payload_of of lua/lib/kind.lua.
type runReply struct {
	Type, Strategy, Attempts, MaxAttempts, Data, URL, Timeout, Holds, Standing, Sequence, Traceparent any
}

// Payload is part of [queue.Kind].
func (kind) Payload(job bus.Job, v []any) (queue.Payload, error) {
	if len(v) != 11 {
		return nil, fmt.Errorf("take job: %d values", len(v))
	}
	reply := runReply{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]}
	number := func(value any) int64 { n, _ := value.(int64); return n }
	return &Run{
		ID: ID(job.Args[0]), Type: TypeName(rdb.Text(reply.Type)), Strategy: Strategy(rdb.Text(reply.Strategy)),
		Attempts: int(number(reply.Attempts)), MaxAttempts: int(number(reply.MaxAttempts)),
		Data: []byte(rdb.Text(reply.Data)), URL: rdb.Text(reply.URL),
		Timeout: time.Duration(number(reply.Timeout)) * time.Millisecond, Holds: int(number(reply.Holds)),
		Standing: bus.Standing(number(reply.Standing)), Sequence: rdb.Integer(rdb.Text(reply.Sequence), 0),
		Traceparent: rdb.Text(reply.Traceparent),
	}, nil
}
