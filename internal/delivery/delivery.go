// Package delivery delivers one batch to one subscriber, and says how it went.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/tracing"
)

// Config says how to deliver.
type Config struct {
	// ConnectTimeout bounds the making of a connection, and then its TLS handshake.
	ConnectTimeout time.Duration
	// Timeout bounds a whole delivery, from the first byte sent to the answer.
	Timeout time.Duration
	// VerifyTLS says whether a subscriber's certificate must be valid.
	VerifyTLS bool
	// Deny is the addresses that are never connected to.
	Deny bus.DenyList
	// HealRate and DamageRate are added to the subscriber's health points on success and on failure.
	HealRate, DamageRate int
	// MaxBackoff bounds the wait after a failure.
	MaxBackoff time.Duration
	// UserAgent is sent with every delivery.
	UserAgent string
	// MaxIdle is how many idle connections to all callbacks together are kept for the next deliveries.
	MaxIdle int
	// Reporter, if given, reports what must not happen. A failed delivery may.
	Reporter *exceptions.Reporter
	// Tracer, if given, makes spans of the deliveries.
	Tracer *tracing.Tracer
	// Recorder takes note of the deliveries; it may be nil.
	Recorder *telemetry.Recorder
}

// Deliverer delivers batches. It is safe for concurrent use.
type Deliverer struct {
	config    Config
	transport *transport
	log       *slog.Logger
	now       func() time.Time
}

// New makes a deliverer.
func New(config Config, log *slog.Logger, now func() time.Time) *Deliverer {
	return &Deliverer{config: config, transport: newTransport(config, log), log: log, now: now}
}

// Close ends the idle connections.
func (d *Deliverer) Close() { d.transport.close() }

// Deliver posts a task's batch to its subscriber. It is the handler of [bus.JobBatch].
func (d *Deliverer) Deliver(ctx context.Context, task *store.Task) store.Outcome {
	batch := task.Delivery
	payload, unreadable, why := newPayload(batch.Events)
	events := len(payload.events)
	if unreadable > 0 {
		d.config.Recorder.Unreadable(batch, unreadable)
		d.config.Reporter.Error(d.log, "lost events that cannot be read", why, fieldsOf(batch, slog.Int("unreadable", unreadable))...)
	}
	if events == 0 {
		d.log.LogAttrs(ctx, slog.LevelError, "dropped a batch without a readable event", fieldsOf(batch)...)
		return store.Done
	}
	start := d.now()
	d.config.Recorder.Taken(batch, start)
	ctx, span := d.config.Tracer.StartFrom(ctx, batch.Origins, "deliver")
	err := d.post(ctx, batch, payload)
	d.config.Recorder.Delivered(batch, events, start, d.now().Sub(start), err)
	endSpan(span, batch, events, err)
	outcome, wait := store.Outcome{Health: d.config.HealRate, Delivered: events}, time.Duration(0)
	if err != nil {
		outcome, wait = d.failed(batch, err)
	} else if !d.log.Enabled(ctx, slog.LevelDebug) {
		return outcome // most deliveries: no fields are made for nothing
	}
	fields := fieldsOf(batch, slog.Int("events", events), slog.Duration("duration", d.now().Sub(start).Round(time.Microsecond)))
	if err == nil {
		d.log.LogAttrs(ctx, slog.LevelDebug, "delivered", fields...)
		return outcome
	}
	d.log.LogAttrs(ctx, slog.LevelWarn, "failed to deliver", append(fields, reason(err), slog.Duration("next_try_in", wait.Round(time.Millisecond)))...)
	if gone(err) {
		d.log.LogAttrs(ctx, slog.LevelWarn, "the subscriber asks to be unsubscribed", fields...)
	}
	return outcome
}

// fieldsOf tell which delivery a line of the log is about, and more.
func fieldsOf(batch *store.Delivery, more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{
		slog.String("subscriber", string(batch.Client)), slog.String("batch", string(batch.Batch)), slog.Int("attempt", batch.Attempts),
	}, more...)
}

// failed says when to try again, and for how long to leave the subscriber alone.
func (d *Deliverer) failed(batch *store.Delivery, err error) (outcome store.Outcome, wait time.Duration) {
	now := d.now()
	outcome.Health = d.config.DamageRate
	if gone(err) {
		outcome.Health = bus.MinHealth - bus.MaxHealth
	}
	wait = bus.Backoff(batch.Attempts, d.config.MaxBackoff, rand.Float64())
	outcome.Failure = bus.EndpointFailure
	asked := time.Duration(0)
	if status, ok := errors.AsType[*statusError](err); ok {
		outcome.Failure = bus.FailureOf(status.code)
		asked = bus.RetryAfter(status.retryAfter, now, d.config.MaxBackoff)
	}
	if asked > 0 {
		wait = asked
	}
	alone := max(bus.Throttle(batch.Standing, batch.Health, bus.Health(batch.Health, outcome.Health), d.config.MaxBackoff), asked)
	if outcome.Failure == bus.BatchFailure { // the others need not wait
		alone = bus.RefusalThrottle(batch.Refusals+1, now.Sub(batch.RefusedSince), d.config.MaxBackoff)
	}
	outcome.RetryAt = now.Add(wait)
	if alone >= time.Millisecond {
		outcome.ThrottledUntil = now.Add(alone)
	}
	return outcome, max(wait, alone)
}

func endSpan(span *tracing.Span, batch *store.Delivery, events int, err error) {
	if span == nil {
		return
	}
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	span.End("deliver", failure, fieldsOf(batch, slog.Int("events", events))...)
}

// reason says in one field why a delivery failed: the status when there was an answer, else the error.
func reason(err error) slog.Attr {
	if status, ok := errors.AsType[*statusError](err); ok {
		return slog.Int("status", status.code)
	}
	return slog.Any("error", err)
}

// gone reports whether a subscriber says that it is no more.
func gone(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.code == http.StatusGone
}

// statusError is an answer that does not acknowledge a batch.
type statusError struct {
	code       int
	retryAfter string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the subscriber answered %d %s", e.code, http.StatusText(e.code))
}

// post sends a batch. Any 2xx acknowledges it; the error says why it is not acknowledged.
func (d *Deliverer) post(ctx context.Context, batch *store.Delivery, p payload) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, batch.Callback, p.reader())
	if err != nil {
		return plainError(err)
	}
	req.ContentLength = p.length
	// A connection that turns out to be closed is replaced, and the request begun again.
	req.GetBody = func() (io.ReadCloser, error) { return p.reader(), nil }
	req.SetBasicAuth(batch.UUID, "x")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", d.config.UserAgent)
	tracing.Propagate(ctx, req.Header)
	resp, err := d.transport.send(req, d.config.Timeout)
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &statusError{resp.StatusCode, resp.Header.Get("Retry-After")}
	}
	return nil
}

// plainError takes the method and URL off an error of the client: the log line has them.
func plainError(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
