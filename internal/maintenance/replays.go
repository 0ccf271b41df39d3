package maintenance

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// copyTimeout bounds how long one run copies replayed events. The next run does the rest.
const copyTimeout = time.Second

// copyReplays continues the replays. Failures are left to the next run.
func (m *Maintenance) copyReplays(ctx context.Context) {
	done, err := m.replays.Copy(ctx, m.now(), m.until(copyTimeout))
	if len(done.Events) > 0 {
		for name, events := range m.eventsByClient(ctx, done.Events) {
			m.recorder.Count(telemetry.ReplayedEvents, events, string(name))
		}
	}
	if len(done.Lost) > 0 {
		for name, events := range m.eventsByClient(ctx, done.Lost) {
			m.recorder.Count(telemetry.LostEvents, events, string(name), string(bus.LostHistory))
		}
	}
	for _, ended := range done.Ended {
		m.replayEnded(ctx, ended)
	}
	telemetry.LogFailure(m.log, "could not copy replays", err)
}

func (m *Maintenance) replayEnded(ctx context.Context, r store.Replay) {
	fields := []slog.Attr{
		slog.String("replay", string(r.ID)), slog.String("topic", string(r.Topic)), slog.String("state", string(r.State)),
		slog.Int64("copied", r.Copied), slog.Int64("skipped", r.Skipped),
	}
	for name := range m.eventsByClient(ctx, map[bus.Token]int{r.Subscriber: 0}) {
		fields = append(fields, slog.String("subscriber", string(name)))
	}
	if r.Error != "" {
		fields = append(fields, slog.String("reason", r.Error))
	}
	m.log.LogAttrs(ctx, slog.LevelInfo, "a replay ended", fields...)
}
