// Package delivery delivers one batch to one subscriber, and returns the result.
package delivery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/logs"
	"routemaster/internal/telemetry/tracing"
)

// Config says how to deliver.
type Config struct {
	// Client sends the batches.
	Client *outbound.Client
	// Policy decides what follows from a delivery for its batch and its subscriber.
	Policy Policy
	// Reporter, if given, reports unexpected errors. A failed delivery is expected.
	Reporter *exceptions.Reporter
	// Tracer, if given, makes spans of the deliveries.
	Tracer *tracing.Tracer
	// Recorder counts the deliveries. It may be nil.
	Recorder *telemetry.Recorder
}

// Deliverer delivers batches. It is safe for concurrent use.
type Deliverer struct {
	client   *outbound.Client
	policy   Policy
	observer observer
	now      func() time.Time
}

// New makes a deliverer.
func New(config Config, log *slog.Logger, now func() time.Time) *Deliverer {
	return &Deliverer{
		client: config.Client,
		policy: config.Policy,
		observer: observer{
			recorder: config.Recorder, tracer: config.Tracer, reporter: config.Reporter, files: logs.NewFileWarner(log), log: log, now: now,
		},
		now: now,
	}
}

// Deliver posts a task's batch to its subscriber. It is the handler of [bus.JobBatch].
func (d *Deliverer) Deliver(ctx context.Context, task *queue.Task) queue.Result {
	batch := task.Payload.(*store.Delivery)
	payload, unreadable, cause := newPayload(batch.Events)
	d.observer.leftOut(batch, unreadable, cause)
	if len(payload.events) == 0 {
		d.observer.dropped(batch)
		return queue.Done
	}
	ctx, observation := d.observer.begin(ctx, batch, len(payload.events))
	attempt := d.client.Post(ctx, request(ctx, batch, payload))
	result := d.policy.result(batch, len(payload.events), attempt, d.now(), rand.Float64())
	observation.end(ctx, attempt, result)
	return result
}

// request is the POST of a batch.
func request(ctx context.Context, batch *store.Delivery, p payload) outbound.Request {
	header := http.Header{"Content-Type": {"application/json"}}
	tracing.Propagate(ctx, header)
	return outbound.Request{
		URL: batch.Callback, User: batch.UUID, Password: "x", Header: header, Body: p.reader, Length: p.length,
	}
}
