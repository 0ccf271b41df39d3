package engine

import (
	"cmp"
	"context"
	"time"

	"routemaster/internal/machines"
)

// TenderInterval is how often [Tender.Tick] is to be called.
const TenderInterval = 2 * time.Second

// tendAgain is how often walks are tended whose definitions have not changed. It bounds how late a
// trigger is if a process whose clock is ahead has put its walk off, or if the trigger came back
// just when its walk ended. Missed triggers are made up for.
const tendAgain = time.Minute

// Tender runs the walks of timed triggers, and makes all partitions have the same definitions.
// Every worker has one.
type Tender struct {
	stores *Bus
	now    func() time.Time
	tended []tended // by number of the partition
}

// tended is the edition by which a partition's walks were tended last, and when.
type tended struct {
	edition string
	at      time.Time
}

// NewTender makes a tender.
func NewTender(stores *Bus, now func() time.Time) *Tender {
	return &Tender{stores: stores, now: now, tended: make([]tended, len(stores.All()))}
}

// Tick adds the walks that the definitions need, if they are new, and now and then again. It fails
// with [bus.ErrUnavailable] while a partition is away, after the work that does not need that
// partition.
func (t *Tender) Tick(ctx context.Context) error {
	now := t.now()
	settled := t.stores.Settle(ctx, now)
	return cmp.Or(settled, cmp.Or(t.stores.Each(func(number int, st *Store) error {
		return t.tended[number].tend(ctx, st, now)
	})...))
}

func (t *tended) tend(ctx context.Context, st *Store, now time.Time) error {
	definitions, err := st.Definitions(ctx)
	if err != nil {
		return err
	}
	if definitions.Edition == t.edition && now.Sub(t.at).Abs() < tendAgain {
		return nil
	}
	latest := func(w machines.Walk) time.Time { return dueNext(w.Trigger, now).Add(machines.MaxAhead) }
	if err := st.Tend(ctx, definitions.Walks(), latest); err != nil {
		return err
	}
	t.edition, t.at = definitions.Edition, now
	return nil
}
