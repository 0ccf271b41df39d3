package rest

import (
	"log/slog"
	"time"

	"routemaster/internal/activity"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
)

// Service has the middleware of an API, reads its requests and writes its responses.
type Service struct {
	// Auth authenticates callers.
	Auth *Authenticator
	// Buffers are for the bodies of requests.
	Buffers *Buffers
	Log     *slog.Logger
	// Reporter, if given, reports panics and unexpected errors.
	Reporter *vendors.Reporter
	// Tracer, if given, traces the requests.
	Tracer *telemetry.Tracer
	// Recorder, if given, counts the requests.
	Recorder *telemetry.Recorder
	// Refusals, if given, counts refused requests.
	Refusals *Refusals
	// Activity keeps the changes made by root or in the console.
	Activity *activity.Log
	Now      func() time.Time
}
