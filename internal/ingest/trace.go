package ingest

import (
	"context"
	"log/slog"

	"routemaster/internal/telemetry"
)

// startSpan begins the span of a group commit, whose parents are the traced requests. It gives each
// publication the spans that it comes from, sampled ones first, as a batch remembers only a few. It
// returns nil if no request is traced.
func (h *home) startSpan(groups []*group) *telemetry.Span {
	var traceparents []string
	for _, g := range groups {
		for _, r := range g.requests {
			if r.traceparent != "" {
				traceparents = append(traceparents, r.traceparent)
			}
		}
	}
	if traceparents == nil {
		return nil
	}
	_, span := h.options.Tracer.StartFrom(context.Background(), traceparents, "commit")
	for _, g := range groups {
		var unsampled []string
		for _, r := range g.requests {
			switch {
			case r.traceparent == "":
			case telemetry.IsSampled(r.traceparent):
				g.publication.Traceparents = append(g.publication.Traceparents, span.Follow(r.traceparent))
			default:
				unsampled = append(unsampled, r.traceparent)
			}
		}
		g.publication.Traceparents = append(g.publication.Traceparents, unsampled...)
	}
	return span
}

// endSpan ends the span of a group commit, which may be nil.
func endSpan(span *telemetry.Span, groups []*group, panicked bool) {
	if span == nil {
		return
	}
	requests, events, failure := 0, 0, ""
	for _, g := range groups {
		requests += len(g.requests)
		events += len(g.publication.Events)
		if g.receipt.Err != nil {
			failure = g.receipt.Err.Error()
		}
	}
	if panicked {
		failure = "the store panicked"
	}
	span.End("commit", failure, slog.Int("requests", requests), slog.Int("scripts", len(groups)), slog.Int("events", events))
}
