package engine

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"routemaster/internal/telemetry"
)

// observe counts the result of a step and logs it: normal results at the level debug, others as
// warnings. Neither metadata nor headers are logged.
func (r *Runner) observe(visit *Visit, result Result, retryAfter time.Duration) {
	outcome := string(result.Outcome)
	r.config.Recorder.Count(telemetry.LabelSteps, 1, string(visit.Machine), string(visit.State), outcome)
	if slices.Contains(telemetry.BusOutcomes, outcome) {
		r.config.Recorder.Count(telemetry.BusLabelSteps, 1, string(visit.Machine), outcome)
	}
	level, event := slog.LevelWarn, ""
	switch result.Outcome {
	case Failed:
		event = "could not evaluate the gate of a label"
	case Attempted:
		event = "the webhook of an action failed"
	case Errored:
		event = "the webhook of an action failed for good: the label is errored"
	case Paused:
		event = "paused a run of a label that has made too many moves"
	default:
		level, event = slog.LevelDebug, "looked at a label"
	}
	if !r.log.Enabled(context.Background(), level) {
		return
	}
	fields := append(visit.LogAttrs(), slog.String("outcome", outcome))
	if result.To != "" {
		fields = append(fields, slog.String("to", string(result.To)))
	}
	if result.Status > 0 {
		fields = append(fields, slog.Int("status", result.Status))
	}
	if result.Error != "" {
		fields = append(fields, slog.String("error", result.Error))
	}
	if retryAfter > 0 {
		fields = append(fields, slog.Duration("next_try_in", retryAfter))
	}
	log := telemetry.Often(r.log, string(visit.Machine)+" "+string(visit.State))
	log.LogAttrs(context.Background(), level, event, fields...)
}
