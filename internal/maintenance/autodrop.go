package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// dropFor bounds one run, so that a worker that is to stop, and the other housekeeping, need not
// wait for long. What is left is dropped by the next run, which then comes at once.
const dropFor = 2 * time.Second

// Autodrop drops idempotency keys when Redis is about to be full: above the high mark, until the low mark is reached
// or none is left. Only if Redis is above the high mark even then, it drops the oldest batches until the low mark is reached or
// nothing is left. It is the handler of [bus.JobAutodrop].
func (m *Maintenance) Autodrop(ctx context.Context, _ *store.Task) store.Outcome {
	memory, err := m.store.Memory(ctx)
	if errors.Is(err, rdb.ErrMemoryUnknown) {
		m.memoryUnknown.Do(func() { m.log.Info("autodrop rests", "error", err) })
		return store.Done
	}
	if err != nil {
		return m.again("autodrop", err)
	}
	if memory.Evicts {
		m.evicts.Do(func() {
			m.log.Error("redis evicts keys when it is full, and with them events: set its maxmemory-policy to noeviction")
		})
	}
	_, high, low := m.limits.Marks(memory.Max)
	if memory.Used <= high {
		m.exhausted = false
		return store.Done
	}
	d := &drop{low: low, used: memory.Used, until: m.now().Add(dropFor), events: map[bus.Token]int{}}
	noKeys, err := m.dropKeys(ctx, d)
	if noKeys && d.used > high {
		err = m.drop(ctx, d)
	}
	m.tell(ctx, d, high)
	switch {
	case err != nil:
		return m.again("autodrop", err)
	case noKeys && d.used <= high: // so no batch need go
		return store.Done
	case d.used > low && !d.exhausted:
		return store.Outcome{RetryAt: m.now()}
	}
	return store.Done
}

// drop is one run of autodrop.
type drop struct {
	low, used int64 // bytes
	until     time.Time
	keys      int
	batches   int
	events    map[bus.Token]int
	// exhausted is whether nothing is left to drop.
	exhausted bool
}

// goesOn is whether there is more to do in this run, and time for it.
func (m *Maintenance) goesOn(d *drop) bool { return d.used > d.low && m.now().Before(d.until) }

// dropKeys drops idempotency keys of all clients, the oldest slice of each first, and reports whether none is left of those that
// were there. It does not go on with those that come meanwhile: under load they never end, and it would never
// come to the batches that fill Redis.
func (m *Maintenance) dropKeys(ctx context.Context, d *drop) (noneLeft bool, err error) {
	tokens, err := m.store.Tokens(ctx)
	if err != nil {
		return false, err
	}
	names := slices.Compact(slices.Sorted(maps.Values(tokens)))
	for range store.IdempotencySlices {
		freeing, err := m.awaitFreeing(ctx, d)
		if err != nil || freeing || !m.goesOn(d) {
			return false, err
		}
		keys, err := m.store.DropIdempotencyKeys(ctx, names)
		if err != nil || keys == 0 {
			return err == nil, err
		}
		d.keys += keys
	}
	freeing, err := m.awaitFreeing(ctx, d)
	return !freeing && err == nil, err
}

// awaitFreeing sees how much memory Redis uses, when it has freed what it frees in the background: else batches would be dropped
// for memory that is about to be free. It reports whether that takes so long that the next run must go on with it.
func (m *Maintenance) awaitFreeing(ctx context.Context, d *drop) (freeing bool, err error) {
	const tries, pause = 200, time.Millisecond
	for range tries {
		memory, err := m.store.Memory(ctx)
		if err != nil {
			return false, err
		}
		if d.used = memory.Used; !memory.Freeing {
			return false, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return true, nil
}

func (m *Maintenance) drop(ctx context.Context, d *drop) error {
	for m.goesOn(d) {
		dropped, err := m.store.DropOldest(ctx)
		if err != nil {
			return err
		}
		if len(dropped) == 0 {
			d.exhausted = true
			return nil
		}
		for _, batch := range dropped {
			d.batches++
			d.events[batch.Subscriber] += batch.Events
		}
		memory, err := m.store.Memory(ctx)
		if err != nil {
			return err
		}
		d.used = memory.Used
	}
	return nil
}

// tell logs what was dropped, once a run, and once that nothing is left to drop, until there is again.
func (m *Maintenance) tell(ctx context.Context, d *drop, high int64) {
	log := m.log.With("bytes_used", d.used, "low_mark", d.low, "high_mark", high)
	if d.keys > 0 {
		log.Warn("dropped idempotency keys: redis is about to be full; what is published again may be stored twice", "keys", d.keys)
		m.recorder.DroppedKeys(telemetry.OutOfMemory, d.keys)
	}
	if d.batches > 0 {
		total := 0
		for _, events := range d.events {
			total += events
		}
		names := m.eventsByName(ctx, d.events)
		log.Error("dropped the oldest batches: redis is about to be full", "batches", d.batches, "events", total, subscribers(names))
		m.recorder.DroppedBatches(d.batches)
		for name, events := range names {
			m.recorder.Dropped(name, events)
		}
	}
	if d.exhausted && !m.exhausted {
		log.Error("redis is about to be full, and there is no batch to drop")
	}
	m.exhausted = d.exhausted
}

// eventsByName is the numbers of events by the names of their subscribers.
func (m *Maintenance) eventsByName(ctx context.Context, events map[bus.Token]int) map[bus.ClientName]int {
	names, err := m.store.Tokens(ctx)
	if err != nil {
		names = nil // then it shows what PublicName makes of a token
	}
	named := map[bus.ClientName]int{}
	for token, n := range events {
		named[bus.PublicName(token, names[token])] += n
	}
	return named
}

// subscribers is the numbers of events for the log.
func subscribers(events map[bus.ClientName]int) slog.Attr {
	var numbers []any
	for _, name := range slices.Sorted(maps.Keys(events)) {
		numbers = append(numbers, slog.Int(string(name), events[name]))
	}
	return slog.Group("subscribers", numbers...)
}
