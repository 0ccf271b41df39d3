package rest

import (
	"log/slog"
	"time"

	"routemaster/internal/activity"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/tracing"
	"routemaster/internal/web/auth"
	"routemaster/internal/web/server"
)

// Service has the middleware of an API, reads its requests and writes its responses.
type Service struct {
	// Auth tells who calls.
	Auth *auth.Authenticator
	// Buffers are for the bodies of requests.
	Buffers *server.Buffers
	Log     *slog.Logger
	// Reporter, if given, reports panics and unexpected errors.
	Reporter *exceptions.Reporter
	// Tracer, if given, traces the requests.
	Tracer *tracing.Tracer
	// Recorder, if given, counts the requests.
	Recorder *telemetry.Recorder
	// Activity keeps the changes that root makes, or somebody in the console.
	Activity *activity.Log
	Now      func() time.Time
}
