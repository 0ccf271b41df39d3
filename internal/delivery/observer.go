package delivery

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
)

// observer records deliveries in the metrics, the traces and the log.
type observer struct {
	recorder *telemetry.Recorder
	tracer   *telemetry.Tracer
	reporter *vendors.Reporter
	log      *slog.Logger
	now      func() time.Time
}

// observation is the state of observing one attempt.
type observation struct {
	*observer
	batch  *store.Delivery
	events int
	start  time.Time
	span   *telemetry.Span
}

// leftOut records how many events of a batch cannot be read, and why the first cannot.
func (o *observer) leftOut(batch *store.Delivery, unreadable int, cause error) {
	if unreadable > 0 {
		if batch.Attempts == 1 {
			o.recorder.Count(telemetry.UnreadableEvents, unreadable)
		}
		o.reporter.Error(o.log, "lost events that cannot be read", cause, fieldsOf(batch, slog.Int("unreadable", unreadable))...)
	}
}

// optionsUnknown records that a subscriber's options could not be read.
func (o *observer) optionsUnknown(batch *store.Delivery, err error) {
	telemetry.Often(o.log, string(batch.Client)).LogAttrs(context.Background(), slog.LevelWarn, "cannot read a subscriber's options; its batch is tried again",
		fieldsOf(batch, slog.Any("error", err))...)
}

// dropped records that no event of a batch can be read, so that there is nothing to deliver.
func (o *observer) dropped(batch *store.Delivery) {
	o.log.LogAttrs(context.Background(), slog.LevelError, "dropped a batch without a readable event", fieldsOf(batch)...)
}

// begin records that events of a batch are about to be sent. It returns the context of the
// delivery's span.
func (o *observer) begin(ctx context.Context, batch *store.Delivery, events int) (context.Context, observation) {
	n := observation{observer: o, batch: batch, events: events, start: o.now()}
	if !batch.IsTest() && batch.Attempts == 1 {
		n.countFirst()
	}
	ctx, n.span = o.tracer.StartFrom(ctx, batch.Traceparents, "deliver")
	return ctx, n
}

// countFirst counts the first attempt of a batch.
func (n observation) countFirst() {
	if !n.batch.DueAt.IsZero() {
		n.recorder.Took(telemetry.StartLatency, max(n.start.Sub(n.batch.DueAt), 0))
	}
	n.recorder.Count(telemetry.FirstBatches, 1, string(n.batch.Client))
	n.recorder.Count(telemetry.FirstLatency, milliseconds(n.ageAt(n.start)), string(n.batch.Client))
}

// ageAt is how long ago the batch's oldest event was stored.
func (n observation) ageAt(now time.Time) time.Duration { return max(now.Sub(n.batch.CreatedAt), 0) }

func milliseconds(d time.Duration) int { return int(d.Milliseconds()) }

// end records the result of the delivery.
func (n observation) end(ctx context.Context, attempt outbound.Attempt, d *decision) {
	telemetry.OutOfFiles(n.log, attempt.OutOfFiles, "connecting to a callback")
	if attempt.Reused {
		n.recorder.Count(telemetry.Connections, 1, "true")
	}
	if attempt.Connected {
		n.recorder.Count(telemetry.Connections, 1, "false")
	}
	switch {
	case n.batch.IsTest(): // it says nothing of how the deliveries go
	case d.Works:
		n.countPart(d, attempt.Duration)
	default:
		n.count(d, attempt.Duration)
	}
	if d.err == bus.ErrorReceipt {
		n.recorder.Count(telemetry.UnreadableReceipts, 1, string(n.batch.Client))
	}
	if n.events < n.batch.Total() {
		n.recorder.Count(telemetry.Slices, 1)
	}
	n.endSpan(d.failure())
	n.writeLog(ctx, attempt, d)
	n.observeDeaths(ctx, d)
}

// count counts a delivery that has succeeded or failed, and how long it took.
func (n observation) count(d *decision, took time.Duration) {
	subscriber, status := string(n.batch.Client), telemetry.Success
	if d.failure() != nil {
		status = telemetry.Failure
	} else {
		n.recorder.Took(telemetry.EndToEndLatency, n.ageAt(n.start.Add(took)))
		n.recorder.Count(telemetry.LastLatency, milliseconds(n.ageAt(n.start)), subscriber)
	}
	ms := milliseconds(took)
	n.recorder.Count(telemetry.Deliveries, 1, subscriber, status)
	n.recorder.Count(telemetry.DeliveredEvents, n.events, subscriber, status)
	n.recorder.Count(telemetry.DeliveryTime, ms, subscriber, status)
	n.recorder.Count(telemetry.DeliveryTimeSquare, ms*ms, subscriber, status)
	n.recorder.Took(telemetry.DeliveryDuration, took, status)
}

// countPart counts a delivery whose receipt has acknowledged or rejected some events.
func (n observation) countPart(d *decision, took time.Duration) {
	subscriber := string(n.batch.Client)
	n.recorder.Count(telemetry.Deliveries, 1, subscriber, telemetry.Partial)
	n.recorder.Count(telemetry.PartialDeliveries, 1, subscriber)
	n.recorder.Count(telemetry.RejectedEvents, d.rejected, subscriber)
	n.recorder.Count(telemetry.DeliveredEvents, d.acknowledged, subscriber, telemetry.Success)
	n.recorder.Took(telemetry.DeliveryDuration, took, telemetry.Success)
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

func (n observation) writeLog(ctx context.Context, attempt outbound.Attempt, d *decision) {
	level, event := slog.LevelDebug, "delivered"
	switch {
	case d.err == bus.ErrorReceipt:
		level, event = slog.LevelWarn, "a receipt cannot be read"
	case d.failure() != nil:
		level, event = slog.LevelWarn, "failed to deliver"
	case d.Works:
		event = "partly delivered"
	}
	if !n.log.Enabled(ctx, level) { // true for most deliveries: skip making the fields
		return
	}
	fields := fieldsOf(n.batch, slog.Int("events", n.events), slog.Duration("duration", attempt.Duration.Round(time.Microsecond)))
	if d.Works {
		fields = append(fields, slog.Int("retried", d.retried), slog.Int("rejected", d.rejected))
	}
	if d.failure() != nil {
		fields = append(fields, d.reason())
		if !d.retryAt.IsZero() {
			fields = append(fields, slog.Duration("next_try_in", n.untilNext(d)))
		}
	}
	log := n.often()
	log.LogAttrs(ctx, level, event, fields...)
	if attempt.Gone() {
		log.LogAttrs(ctx, level, "subscriber returned 410 Gone", fieldsOf(n.batch)...)
	}
}

// often is the logger for messages that one subscriber may cause many times a second.
func (n observation) often() *slog.Logger { return telemetry.Often(n.log, string(n.batch.Client)) }

// observeDeaths records the events that were given up.
func (n observation) observeDeaths(ctx context.Context, d *decision) {
	if d.Slice == nil {
		return
	}
	subscriber := string(n.batch.Client)
	if f := d.Slice.Findings; f != nil && f.Suspect > 0 && n.batch.Basis.Suspect == 0 {
		n.recorder.Count(telemetry.Bisections, 1, subscriber)
	}
	n.recorder.Count(telemetry.LostEvents, d.Slice.Lost, subscriber, string(bus.LostRejected))
	for _, letter := range d.Slice.Letters {
		events := letter.Events.Len()
		if letter.Events == nil {
			events = n.batch.Basis.Total - d.Slice.Removed.Len()
		}
		n.recorder.Count(telemetry.DeadLetterEvents, events, subscriber, string(letter.Reason))
		n.often().LogAttrs(ctx, slog.LevelWarn, "gave up on a batch", fieldsOf(n.batch,
			slog.Int("events", events), slog.String("reason", string(letter.Reason)), slog.Int("status", d.status), slog.String("error", d.err))...)
	}
}

// failure is why nothing was delivered; nil if something was.
func (d *decision) failure() error {
	switch {
	case d.cause != nil:
		return d.cause
	case d.outcome == bus.OutcomeFailed:
		return errNothingTaken
	}
	return nil
}

// errNothingTaken is the failure of a delivery whose receipt names all events for a retry.
var errNothingTaken = errors.New("the receipt has all events tried again")

// reason says in one field why a delivery failed: the status if there was a response that could be
// read, else the error.
func (d *decision) reason() slog.Attr {
	if d.status > 0 && d.err == "" {
		return slog.Int("status", d.status)
	}
	return slog.Any("error", d.failure())
}

// untilNext is the minimum time until the batch is delivered again.
func (n observation) untilNext(d *decision) time.Duration {
	return d.nextAt().Sub(n.now()).Round(time.Millisecond)
}

// fieldsOf returns the fields that identify a delivery in the log, and more.
func fieldsOf(batch *store.Delivery, more ...slog.Attr) []slog.Attr {
	return append(batch.LogAttrs(), more...)
}
