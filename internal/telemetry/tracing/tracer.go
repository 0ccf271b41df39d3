// Package tracing makes the spans of publishes, commits and deliveries, and sends them by OTLP.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes the spans of publishes, commits and deliveries, and sends them by OTLP. nil makes none, at no cost.
// It is safe for concurrent use.
//
// The OpenTelemetry SDK reads its own variables (endpoint, headers, sampler, queue, resource) from the environment. Spans wait
// in memory, and are dropped when there are too many.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// closeTimeout bounds how long a tracer that is closed sends the spans that wait.
const closeTimeout = 3 * time.Second

// New makes a tracer whose spans come from a service, unless the environment names another.
func New(service, version string, log *slog.Logger) (*Tracer, error) {
	ctx := context.Background()
	otel.SetErrorHandler(&traceErrors{log: log})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithFromEnv()) // the last wins
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))
	return &Tracer{provider: provider, tracer: provider.Tracer("routemaster")}, nil
}

// Close sends the spans that wait, as far as that is quickly done.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// StartRequest begins the span of a request to us. It goes on with the trace that the request's header names.
func (t *Tracer) StartRequest(ctx context.Context, header http.Header) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
	return t.start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
}

// StartFrom begins a span of what goes back to several others, given as [Traceparent] does. It is the child of the
// first, and has links to the rest.
func (t *Tracer) StartFrom(ctx context.Context, traceparents []string, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	var links []trace.Link
	for i, origin := range traceparents {
		from := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": origin})
		if i == 0 {
			ctx = trace.ContextWithRemoteSpanContext(ctx, trace.SpanContextFromContext(from))
		} else {
			links = append(links, trace.LinkFromContext(from))
		}
	}
	return t.start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...))
}

func (t *Tracer) start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, *Span) {
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, &Span{span}
}

// Traceparent is a context's span as text (W3C traceparent), if it is to be kept, else empty.
func Traceparent(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		return traceparent(span)
	}
	return ""
}

func traceparent(span trace.SpanContext) string {
	return "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + span.TraceFlags().String()
}

// Propagate tells whom a request is sent to which span it belongs to.
func Propagate(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Span is something that takes time. nil is none.
type Span struct{ span trace.Span }

// Follow is what comes after an origin: this span if it is of the same trace, else the origin itself.
func (s *Span) Follow(from string) string {
	if own := s.span.SpanContext(); own.IsSampled() && own.TraceID().String() == from[3:35] {
		return traceparent(own)
	}
	return from
}

// End ends a span, names it, and says what it was about. Failure, if any, says why it failed.
func (s *Span) End(name, failure string, fields ...slog.Attr) {
	if s == nil {
		return
	}
	s.span.SetName(name)
	for _, field := range fields {
		s.span.SetAttributes(asAttribute(field))
	}
	if failure != "" {
		s.span.SetStatus(codes.Error, failure)
	}
	s.span.End()
}

func asAttribute(field slog.Attr) attribute.KeyValue {
	if field.Value.Kind() == slog.KindInt64 {
		return attribute.Int64(field.Key, field.Value.Int64())
	}
	return attribute.String(field.Key, field.Value.String())
}

// traceErrors logs what the SDK complains of: its exporter, when spans do not arrive. At most once a minute.
type traceErrors struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle is part of [otel.ErrorHandler].
func (e *traceErrors) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); now.Sub(e.last) > time.Minute {
		e.last = now
		e.log.Warn("traces do not arrive", "error", err)
	}
}
