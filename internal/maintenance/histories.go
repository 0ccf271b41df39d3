package maintenance

import (
	"context"

	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// trimHistories removes events past the limits of histories: events that grow too old while a topic
// is idle, and the ones a publish had no time for. Failures are left to the next run: making room
// must not wait for it.
func (m *Maintenance) trimHistories(ctx context.Context) {
	_, err := m.histories.Trim(ctx, m.now(), m.until(trimTimeout))
	telemetry.LogFailure(m.log, "could not trim histories", err)
}

// dropHistories drops the oldest events of all histories. It reports whether none is left that can
// be dropped.
func (m *Maintenance) dropHistories(ctx context.Context, d *drop) (noneLeft bool, err error) {
	d.history = store.DroppedHistory{}
	return m.dropReadable(ctx, d, func() (some bool, err error) {
		dropped, err := m.histories.DropOldest(ctx, m.now())
		d.history.Add(dropped)
		return len(dropped) > 0, err
	})
}
