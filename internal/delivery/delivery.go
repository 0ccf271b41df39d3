// Package delivery delivers one batch to one subscriber, and returns the result.
package delivery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/signature"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
)

// Config says how to deliver.
type Config struct {
	// Client sends the batches.
	Client *outbound.Client
	// Local has the functions that take a callback's batches in this process, as an endpoint would.
	Local map[string]func(context.Context, outbound.Request) outbound.Attempt
	// Policy decides the consequences of a delivery for its batch and its subscriber.
	Policy Policy
	// Reporter, if given, reports unexpected errors. A failed delivery is expected.
	Reporter *vendors.Reporter
	// Tracer, if given, makes spans of the deliveries.
	Tracer *telemetry.Tracer
	// Recorder counts the deliveries. It may be nil.
	Recorder *telemetry.Recorder
	// Options reads the options of a subscriber: see [store.Store.Options].
	Options func(context.Context, bus.Token) (store.OptionsRecord, error)
	// Keyring opens the secrets of subscribers.
	Keyring signature.Keyring
	// AttemptsKept is how many attempts of a subscriber are kept on record; 0 is none.
	AttemptsKept int
	// Excerpt is how many bytes of a response's body each record keeps.
	Excerpt int
}

// Deliverer delivers batches. It is safe for concurrent use.
type Deliverer struct {
	client   *outbound.Client
	local    map[string]func(context.Context, outbound.Request) outbound.Attempt
	policy   Policy
	options  optionsCache
	recorder *attemptRecorder
	observer observer
	expired  *expiredLog
	now      func() time.Time
}

// New makes a deliverer.
func New(config Config, log *slog.Logger, now func() time.Time) *Deliverer {
	return &Deliverer{
		client:   config.Client,
		local:    config.Local,
		policy:   config.Policy,
		options:  optionsCache{read: config.Options, keyring: config.Keyring, log: log},
		recorder: newAttemptRecorder(config.AttemptsKept, config.Excerpt),
		observer: observer{
			recorder: config.Recorder, tracer: config.Tracer, reporter: config.Reporter, log: log, now: now,
		},
		expired: newExpiredLog(log),
		now:     now,
	}
}

// optionsRetryInterval is the pause until a batch comes up again if its options could not be read.
const optionsRetryInterval = time.Second

// Deliver posts a task's batch to its subscriber, or a slice of it. It is the handler of
// [bus.JobBatch].
func (d *Deliverer) Deliver(ctx context.Context, task *queue.Task) queue.Result {
	batch := task.Payload.(*store.Delivery)
	compiled, err := d.options.of(ctx, batch)
	if err != nil {
		d.observer.optionsUnknown(batch, err)
		return queue.Result{RetryAt: d.now().Add(optionsRetryInterval)}
	}
	start := d.now()
	s := cut(batch, compiled, start)
	d.observer.leftOut(batch, s.unreadable, s.cause)
	if len(s.events) == 0 {
		d.observer.dropped(batch)
		return s.nothing(start).result()
	}
	ctx, observation := d.observer.begin(ctx, batch, len(s.events))
	attempt := d.post(ctx, s)
	decision := d.policy.decide(s, attempt, d.now(), rand.Float64())
	decision.Attempt, decision.AttemptsKept = d.recorder.record(s, attempt, decision, start)
	observation.end(ctx, attempt, decision)
	return decision.result()
}

// post sends a slice, or fails if it cannot be signed: it never sends unsigned what should be
// signed.
func (d *Deliverer) post(ctx context.Context, s *slice) outbound.Attempt {
	if s.compiled.sealed != nil {
		return outbound.Attempt{Err: s.compiled.sealed, Error: bus.ErrorSecrets}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	telemetry.Propagate(ctx, header)
	s.setHeader(header)
	for _, kind := range s.signer.Types() {
		d.observer.recorder.Count(telemetry.Signatures, 1, string(kind))
	}
	send := d.client.Send
	if local := d.local[s.batch.Callback]; local != nil {
		send = local
	}
	return send(ctx, outbound.Request{
		URL: s.batch.Callback, User: s.batch.UUID, Password: "x", Header: header, Body: s.reader, Length: s.length,
		KeepBody: d.recorder.keepBody(s), Fresh: s.isTest(), // which is not tried again
	})
}

// Discarded takes note of a batch that came up only to be removed. It is for entries that the queue
// of the deliveries discards.
func (d *Deliverer) Discarded(entry any) {
	switch batch := entry.(type) {
	case store.DroppedBatch:
		d.observer.recorder.CountFor(telemetry.RemovedEvents, batch.Events, bus.Tokens(batch.Subscriber))
	case store.ExpiredBatch:
		d.observer.recorder.Count(telemetry.RemovedEvents, batch.Events, string(batch.Client))
		d.observer.recorder.Count(telemetry.LostEvents, batch.Events, string(batch.Client), string(bus.LostToRetention))
		d.expired.add(batch)
	}
}

// Completed takes note that the result of a delivery is stored.
func (d *Deliverer) Completed(task *queue.Task, result queue.Result) {
	if batch, ok := task.Payload.(*store.Delivery); ok {
		d.observer.recorder.Count(telemetry.RemovedEvents, batch.Removed(result), string(batch.Client))
	}
}
