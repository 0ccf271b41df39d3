package maintenance

import (
	"context"
	"log/slog"
)

// Spare is data that other packages keep in the same Redis, and that autodrop may drop because
// nothing in it is owed to a client. It goes right after the idempotency keys, before the
// histories, whose events may yet be replayed to a subscriber that has not had them.
type Spare interface {
	// DropOldest drops the oldest of it, a slice of some hundred, and returns how many: 0 if none is
	// left.
	DropOldest(context.Context) (int, error)
	// Dropped records how many a run of autodrop has dropped. The log says how full Redis is.
	Dropped(log *slog.Logger, n int)
}

// dropSpares drops the oldest of each spare, in their order. It reports whether none is left that
// can be dropped.
func (m *Maintenance) dropSpares(ctx context.Context, d *drop) (noneLeft bool, err error) {
	d.spares = make([]int, len(m.spares))
	for i, spare := range m.spares {
		noneLeft, err := m.dropReadable(ctx, d, func() (some bool, err error) {
			dropped, err := spare.DropOldest(ctx)
			d.spares[i] += dropped
			return dropped > 0, err
		})
		if err != nil || !noneLeft {
			return false, err
		}
	}
	return true, nil
}
