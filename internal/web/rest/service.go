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
	// Auth tells who calls.
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
	// Refusals, if given, counts what is refused.
	Refusals *Refusals
	// Activity keeps the changes that root makes, or somebody in the console.
	Activity *activity.Log
	Now      func() time.Time
}
