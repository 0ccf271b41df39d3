package maintenance

import (
	"context"
	"errors"

	"routemaster/internal/bus"
	"routemaster/internal/history"
	"routemaster/internal/rdb"
)

// trimHistories removes what the histories of topics may not keep: what grows too old while a topic
// is idle, and what a publish had no time for. What fails is left to the next run: making room must
// not wait for it.
func (m *Maintenance) trimHistories(ctx context.Context) {
	deadline := m.now().Add(trimTimeout)
	_, err := m.histories.Trim(ctx, m.now(), func() bool { return m.now().Before(deadline) })
	if err != nil && !errors.Is(err, bus.ErrUnavailable) { // package rdb logs that once
		m.log.Error("could not trim histories", "error", err)
	}
}

// dropHistories drops the oldest events of all histories. It reports whether none is left, or none
// can be dropped because something else has written to their keys.
func (m *Maintenance) dropHistories(ctx context.Context, d *drop) (noneLeft bool, err error) {
	d.history = history.Dropped{}
	noneLeft, err = m.dropSteps(ctx, d, func() (some bool, err error) {
		dropped, err := m.histories.DropOldest(ctx, m.now())
		d.history.Add(dropped)
		return len(dropped) > 0, err
	})
	if rdb.Answered(err) {
		return noneLeft || err != nil, nil
	}
	return false, err
}
