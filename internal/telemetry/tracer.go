package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
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

	"routemaster/internal/bus"
)

// Tracer makes spans. It is safe for concurrent use. A nil Tracer makes none, at no cost.
//
// The OpenTelemetry SDK reads its own variables (endpoint, headers, sampler, queue, resource)
// from the environment. Spans are queued in memory, and dropped when the queue is full.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// closeTimeout bounds how long a close sends queued spans.
const closeTimeout = 3 * time.Second

// NewTracer makes a tracer. Service is the service name of the spans, unless the environment gives
// another. It fails if the environment is not valid.
func NewTracer(service, version string, log *slog.Logger) (*Tracer, error) {
	ctx := context.Background()
	otel.SetErrorHandler(&traceErrors{log: log})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithFromEnv()) // the environment wins
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))
	return &Tracer{provider: provider, tracer: provider.Tracer("routemaster")}, nil
}

// Close sends queued spans for up to 3 s, and ends the tracer.
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

// StartRequest begins the span of an incoming request. The span continues the trace in the
// request's header, if there is one.
func (t *Tracer) StartRequest(ctx context.Context, header http.Header) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": header.Get("traceparent"),
		// It may come in several lines (W3C Trace Context, section 3.3; RFC 9110, section 5.3).
		"tracestate": strings.Join(header.Values("tracestate"), ","),
	})
	caller := trace.SpanContextFromContext(ctx)
	ctx, span := t.start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	if caller.IsValid() && !span.span.SpanContext().IsSampled() {
		ctx = context.WithValue(ctx, unsampledKey{}, true)
	}
	return ctx, span
}

// unsampledKey marks the context of a request that its caller does not want sampled.
type unsampledKey struct{}

// StartFrom begins a span of work that several other spans caused, given by [Traceparent]. It is a
// child of the first one that is sampled, if one is, else of the first, and links to the others. It
// is the root of a trace if that one is empty.
func (t *Tracer) StartFrom(ctx context.Context, traceparents []string, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	causes := make([]trace.SpanContext, len(traceparents))
	for i, text := range traceparents {
		causes[i] = spanOf(text)
	}
	var links []trace.Link
	parent := max(slices.IndexFunc(causes, trace.SpanContext.IsSampled), 0)
	for i, cause := range causes {
		if i == parent {
			ctx = trace.ContextWithRemoteSpanContext(ctx, cause)
		} else {
			links = append(links, trace.Link{SpanContext: cause})
		}
	}
	return t.start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...))
}

func (t *Tracer) start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, *Span) {
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, &Span{span}
}

// Traceparent returns a context's span in the notation of the W3C's traceparent header, with a
// semicolon and its tracestate after it if there is one, without spaces. It is "" if the span is
// not sampled, unless the caller asked for that: then later spans are not sampled either.
func Traceparent(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if span.IsSampled() || span.IsValid() && ctx.Value(unsampledKey{}) != nil {
		return traceparent(span)
	}
	return ""
}

// maxState is how long a tracestate may be that is kept, in bytes: as long as it must be passed on
// (W3C Trace Context, section 3.3.1.5).
const maxState = 512

func traceparent(span trace.SpanContext) string {
	text := "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + span.TraceFlags().String()
	if state := span.TraceState().String(); state != "" && len(state) <= maxState {
		text += ";" + withoutSpaces.Replace(state)
	}
	return text
}

// Characters that a tracestate may have, and the bus's notation may not.
var (
	withoutSpaces = strings.NewReplacer("%", "%25", " ", "%20")
	withSpaces    = strings.NewReplacer("%25", "%", "%20", " ")
)

// spanOf is the span that [Traceparent] has written down; one that is not valid, if it has not.
func spanOf(text string) trace.SpanContext {
	parent, state, _ := strings.Cut(text, ";")
	carrier := propagation.MapCarrier{"traceparent": parent, "tracestate": withSpaces.Replace(state)}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// IsSampled reports whether a text of [Traceparent] is sampled.
func IsSampled(text string) bool { return spanOf(text).IsSampled() }

// Propagate adds a context's span to the header of an outgoing request.
func Propagate(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Span is a span of a trace. A nil Span does nothing.
type Span struct{ span trace.Span }

// Follow returns the traceparent of this span if it is of the same trace as another's
// traceparent, else the other's. The span must not be nil.
func (s *Span) Follow(other string) string {
	own := s.span.SpanContext()
	if own.IsSampled() && own.TraceID().String() == traceID(other) {
		return traceparent(own)
	}
	return other
}

// traceID returns the trace ID in a traceparent, which has the form version-traceid-spanid-flags.
func traceID(traceparent string) string {
	const start, length = len("00-"), 2 * len(trace.TraceID{})
	return traceparent[start : start+length]
}

// End ends a span and gives it a name and attributes. Failure says why the work failed, and is ""
// if it did not.
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

// traceErrors logs the SDK's errors, such as those of failed exports, at most once a minute.
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
		e.log.Warn("traces cannot be sent", "error", bus.ShortError(err))
	}
}
