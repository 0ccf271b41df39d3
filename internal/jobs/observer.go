package jobs

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/telemetry"
)

// observer records attempts in the metrics, the traces and the log.
type observer struct {
	recorder *telemetry.Recorder
	tracer   *telemetry.Tracer
	log      *slog.Logger
	now      func() time.Time
}

// observation is the state of observing one attempt.
type observation struct {
	*observer
	run  *Run
	span *telemetry.Span
}

// begin records that a job is about to be sent. It returns the context of the attempt's span.
func (o *observer) begin(ctx context.Context, run *Run) (context.Context, observation) {
	n := observation{observer: o, run: run}
	ctx, n.span = o.tracer.StartFrom(ctx, []string{run.Traceparent}, "job")
	return ctx, n
}

// end records the result of the attempt.
func (n observation) end(ctx context.Context, a outbound.Attempt, d decision) {
	telemetry.OutOfFiles(n.log, a.OutOfFiles, "connecting to a service")
	if d.Result != RunUnsent {
		n.recorder.Count(telemetry.JobAttempts, 1, string(n.run.Type), string(d.Result))
		n.recorder.Took(telemetry.JobDuration, a.Duration, string(n.run.Type))
	}
	if status := d.ended(n.run); status != "" {
		n.recorder.Count(telemetry.EndedJobs, 1, string(n.run.Type), string(status), telemetry.Worker)
	}
	if n.span != nil {
		failure := ""
		if a.Err != nil {
			failure = a.Err.Error()
		}
		n.span.End("job", failure, n.run.LogAttrs()...)
	}
	n.writeLog(ctx, a, d)
}

// writeLog logs an attempt that went as it should at the level debug, and others as warnings.
func (n observation) writeLog(ctx context.Context, a outbound.Attempt, d decision) {
	level, event := slog.LevelWarn, ""
	switch {
	case d.Result == RunHeld:
		event = "held back the jobs of a service that is not ready"
	case d.Result == RunFailed:
		event = "failed to run a job"
	case d.Result == RunUnsent: // Redis' state is in the log
		level, event = slog.LevelDebug, "kept a job until replicas confirm that it was taken"
	case d.Result == RunAgain:
		event = "posting a job again over a new connection"
	case d.Reason != "":
		event = "cannot read the report in a service's answer"
	case a.Err != nil:
		event = "awaiting the report of a service that did not answer"
	default:
		level, event = slog.LevelDebug, "handed over a job"
	}
	if !n.log.Enabled(ctx, level) { // true for most attempts: skip making the fields
		return
	}
	fields := append(n.run.LogAttrs(), slog.String("outcome", string(d.Result)),
		slog.Duration("duration", a.Duration.Round(time.Microsecond)))
	switch {
	case a.Status > 0:
		fields = append(fields, slog.Int("status", a.Status))
		if d.Result == RunAccepted && d.Reason != "" {
			fields = append(fields, slog.String("reason", bus.ShownReason(d.Reason, true)))
		}
	case a.Err != nil:
		fields = append(fields, slog.Any("error", a.Err))
	case d.Reason != "":
		fields = append(fields, slog.String("reason", d.Reason))
	}
	if d.Reported {
		fields = append(fields, slog.Bool("reported", true))
	}
	if level > slog.LevelDebug && !d.retryAt.IsZero() {
		what := "next_try_in"
		if d.Result == RunAccepted {
			what = "deadline_in"
		}
		fields = append(fields, slog.Duration(what, d.retryAt.Sub(n.now()).Round(time.Millisecond)))
	}
	telemetry.Often(n.log, string(n.run.Type)).LogAttrs(ctx, level, event, fields...)
}

// Discarded takes note of a job that came up only because its time was over: it has expired, or its
// attempt is lost. It is for the entries that the queue of the jobs discards.
func (r *Runner) Discarded(entry any) {
	ended, ok := entry.(Ended)
	if !ok {
		return
	}
	level, event := slog.LevelWarn, "lost an attempt at a job"
	if ended.Status == Expired { // as its client wished
		level, event = slog.LevelDebug, "a job has expired"
	} else {
		r.observer.recorder.Count(telemetry.LostJobAttempts, 1, string(ended.Type))
		r.observer.recorder.Count(telemetry.JobOutcomes, 1, string(ended.Type), telemetry.Lost)
	}
	if ended.Status.IsArchived() {
		r.observer.recorder.Count(telemetry.EndedJobs, 1, string(ended.Type), string(ended.Status), telemetry.Worker)
	}
	log := telemetry.Often(r.observer.log, string(ended.Type))
	log.LogAttrs(context.Background(), level, event, slog.String("job_type", string(ended.Type)),
		slog.String("id", ended.ID.String()), slog.String("status", string(ended.Status)), slog.String("reason", ended.Reason))
}
