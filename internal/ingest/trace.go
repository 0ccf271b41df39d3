package ingest

import (
	"context"
	"log/slog"

	"routemaster/internal/store"
	"routemaster/internal/telemetry/tracing"
)

// trace begins the span of a commit, which goes back to the requests that are traced, and tells each publication
// where it comes from.
func (i *Ingest) trace(groups []*grouped) *tracing.Span {
	var origins []string
	for _, g := range groups {
		for _, r := range g.requests {
			if r.origin != "" {
				origins = append(origins, r.origin)
			}
		}
	}
	if origins == nil {
		return nil
	}
	_, span := i.Tracer.StartFrom(context.Background(), origins, "commit")
	for _, g := range groups {
		for _, r := range g.requests {
			if r.origin != "" {
				g.publication.Origins = append(g.publication.Origins, span.Follow(r.origin))
			}
		}
	}
	return span
}

func endCommit(span *tracing.Span, groups []*grouped, receipts []store.Receipt) {
	requests, events := 0, 0
	for _, g := range groups {
		requests += len(g.requests)
		events += len(g.publication.Events)
	}
	failure := ""
	for _, receipt := range receipts {
		if receipt.Err != nil {
			failure = receipt.Err.Error()
		}
	}
	if receipts == nil {
		failure = "the store panicked"
	}
	span.End("commit", failure, slog.Int("requests", requests), slog.Int("scripts", len(groups)), slog.Int("events", events))
}
