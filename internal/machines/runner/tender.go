package runner

import (
	"context"
	"time"

	"routemaster/internal/machines"
	"routemaster/internal/machines/labelstore"
)

// TenderInterval is how often [Tender.Tick] is to be called.
const TenderInterval = 2 * time.Second

// tendAgain is how often walks are tended whose definitions have not changed. It bounds how late a
// trigger is if a process whose clock is ahead has put its walk off, or if the trigger came back
// just when its walk ended. What was due meanwhile is made up for.
const tendAgain = time.Minute

// Tender has the walks of timed triggers run. Every worker has one.
type Tender struct {
	store   *labelstore.Store
	now     func() time.Time
	version int64
	last    time.Time
}

// NewTender makes a tender.
func NewTender(store *labelstore.Store, now func() time.Time) *Tender {
	return &Tender{store: store, now: now}
}

// Tick adds the walks that the definitions need, if they are new, and now and then again. It fails
// with [bus.ErrUnavailable].
func (t *Tender) Tick(ctx context.Context) error {
	definitions, err := t.store.Definitions(ctx)
	if err != nil {
		return err
	}
	now := t.now()
	if definitions.Version == t.version && now.Sub(t.last).Abs() < tendAgain {
		return nil
	}
	latest := func(w machines.Walk) time.Time { return dueNext(w.Trigger, now).Add(machines.MaxAhead) }
	if err := t.store.Tend(ctx, definitions.Walks(), latest); err != nil {
		return err
	}
	t.version, t.last = definitions.Version, now
	return nil
}
