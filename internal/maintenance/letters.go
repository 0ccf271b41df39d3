package maintenance

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// trimTimeout bounds how long one run of autodrop trims. The next run does the rest.
const trimTimeout = time.Second

// trimLetters drops dead letters that are too many or too old for their subscriber, or whose
// subscriber is gone. Failures are left to the next run: making room must not wait for it.
func (m *Maintenance) trimLetters(ctx context.Context) {
	dropped, err := m.letters.Trim(ctx, m.now(), m.until(trimTimeout))
	if dropped.Letters > 0 {
		m.droppedLetters(ctx, dropped, m.log, "dropped dead letters that were too many")
	}
	if dropped.Gone > 0 {
		m.log.Info("removed dead letters of subscribers that are gone", "letters", dropped.Gone)
	}
	telemetry.LogFailure(m.log, "could not trim dead letters", err)
}

// dropLetters drops the oldest dead letters. It reports whether none is left that can be dropped.
func (m *Maintenance) dropLetters(ctx context.Context, d *drop) (noneLeft bool, err error) {
	return m.dropReadable(ctx, d, func() (some bool, err error) {
		dropped, err := m.letters.DropOldest(ctx, m.now())
		d.letters.Add(dropped)
		return dropped.Letters > 0, err
	})
}

// droppedLetters records dead letters that were dropped.
func (m *Maintenance) droppedLetters(ctx context.Context, d store.DroppedLetters, log *slog.Logger, message string) {
	total, byClient := 0, m.eventsByClient(ctx, d.Events)
	for name, events := range byClient {
		total += events
		m.recorder.Count(telemetry.DroppedDeadLetters, events, string(name))
		m.recorder.Count(telemetry.LostEvents, events, string(name), string(bus.LostDeadLetters))
	}
	log.Warn(message, "letters", d.Letters, "events", total, subscribers(byClient))
}
