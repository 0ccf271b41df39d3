package delivery

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/logs"
	"routemaster/internal/telemetry/tracing"
)

// observer records deliveries in the metrics, the traces and the log.
type observer struct {
	recorder *telemetry.Recorder
	tracer   *tracing.Tracer
	reporter *exceptions.Reporter
	files    *logs.FileWarner
	log      *slog.Logger
	now      func() time.Time
}

// observation is the state of observing one attempt.
type observation struct {
	*observer
	batch  *store.Delivery
	events int
	start  time.Time
	span   *tracing.Span
}

// leftOut records how many events of a batch cannot be read, and why the first cannot.
func (o *observer) leftOut(batch *store.Delivery, unreadable int, cause error) {
	if unreadable > 0 {
		o.recorder.Unreadable(batch, unreadable)
		o.reporter.Error(o.log, "lost events that cannot be read", cause, fieldsOf(batch, slog.Int("unreadable", unreadable))...)
	}
}

// dropped records that no event of a batch can be read, so that there is nothing to deliver.
func (o *observer) dropped(batch *store.Delivery) {
	o.log.LogAttrs(context.Background(), slog.LevelError, "dropped a batch without a readable event", fieldsOf(batch)...)
}

// begin records that events of a batch are about to be sent. It returns the context of the
// delivery's span.
func (o *observer) begin(ctx context.Context, batch *store.Delivery, events int) (context.Context, observation) {
	n := observation{observer: o, batch: batch, events: events, start: o.now()}
	o.recorder.Taken(batch, n.start)
	ctx, n.span = o.tracer.StartFrom(ctx, batch.Traceparents, "deliver")
	return ctx, n
}

// end records the result of the delivery.
func (n observation) end(ctx context.Context, attempt outbound.Attempt, result queue.Result) {
	n.files.Check(attempt.OutOfFiles, "connecting to a callback")
	if attempt.Reused {
		n.recorder.Connected(true)
	}
	if attempt.Connected {
		n.recorder.Connected(false)
	}
	n.recorder.Delivered(n.batch, n.events, n.start, attempt.Duration, attempt.Err)
	n.endSpan(attempt.Err)
	n.writeLog(ctx, attempt, result)
}

func (n observation) endSpan(err error) {
	if n.span == nil {
		return
	}
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	n.span.End("deliver", failure, fieldsOf(n.batch, slog.Int("events", n.events))...)
}

func (n observation) writeLog(ctx context.Context, attempt outbound.Attempt, result queue.Result) {
	level, event := slog.LevelDebug, "delivered"
	if attempt.Err != nil {
		level, event = slog.LevelWarn, "failed to deliver"
	}
	if !n.log.Enabled(ctx, level) { // true for most deliveries: skip making the fields
		return
	}
	fields := fieldsOf(n.batch, slog.Int("events", n.events), slog.Duration("duration", attempt.Duration.Round(time.Microsecond)))
	if attempt.Err != nil {
		fields = append(fields, cause(attempt), slog.Duration("next_try_in", n.untilNext(result)))
	}
	n.log.LogAttrs(ctx, level, event, fields...)
	if attempt.Gone() {
		n.log.LogAttrs(ctx, level, "subscriber returned 410 Gone", fieldsOf(n.batch)...)
	}
}

// cause says in one field why a delivery failed: the status if there was a response, else the
// error.
func cause(attempt outbound.Attempt) slog.Attr {
	if attempt.Status > 0 {
		return slog.Int("status", attempt.Status)
	}
	return slog.Any("error", attempt.Err)
}

// untilNext is the minimum time until the batch is delivered again.
func (n observation) untilNext(result queue.Result) time.Duration {
	next := result.RetryAt
	if detail, ok := result.Detail.(store.DeliveryResult); ok && detail.ThrottledUntil.After(next) {
		next = detail.ThrottledUntil
	}
	return next.Sub(n.now()).Round(time.Millisecond)
}

// fieldsOf returns the fields that identify a delivery in the log, and more.
func fieldsOf(batch *store.Delivery, more ...slog.Attr) []slog.Attr {
	return append(batch.LogAttrs(), more...)
}
