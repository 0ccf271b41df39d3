package maintenance

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
)

// expiryTimeout bounds how long one run of autodrop drops expired batches. The next run does the
// rest.
const expiryTimeout = time.Second

// dropExpired drops batches that are older, or have more events, than their subscriber keeps.
// Failures are left to the next run: making room must not wait for it.
func (m *Maintenance) dropExpired(ctx context.Context) {
	dropped, err := m.retention.Drop(ctx, m.now(), m.until(expiryTimeout))
	if len(dropped) > 0 {
		names, _ := m.store.Tokens(ctx) // without them, of a token's form
		for token, d := range dropped {
			name := bus.PublicName(token, names[token])
			m.recorder.Count(telemetry.RemovedEvents, d.Events, string(name))
			m.recorder.Count(telemetry.LostEvents, d.Events, string(name), string(bus.LostToRetention))
			m.log.Warn("dropped batches that were too old or too many for their subscriber",
				"subscriber", name, "batches", d.Batches, "events", d.Events)
		}
	}
	telemetry.LogFailure(m.log, "could not drop expired batches", err)
}
