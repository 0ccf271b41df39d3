package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// dropTimeout bounds one run, so that a stopping worker and the other housekeeping do not wait for
// long. The next run, which then comes at once, drops the rest.
const dropTimeout = 2 * time.Second

// Autodrop makes room when Redis is about to be full: when more memory is used than the high mark.
// It first drops idempotency keys, until the low mark is reached or none is left. If Redis is above
// the high mark even then, it drops the spares in the same way, then the oldest events of
// histories, then the oldest dead letters, and last batches: the oldest of the client with the
// largest queue, until another's is larger. Before all that it drops the batches, dead letters and
// histories past their limits, whatever Redis uses, and sets the limits of clients' accounts. It is
// the handler of [bus.JobAutodrop].
func (m *Maintenance) Autodrop(ctx context.Context, _ *queue.Task) queue.Result {
	m.dropExpired(ctx)
	m.trimLetters(ctx)
	m.trimHistories(ctx)
	memory, err := m.store.Partition().Memory(ctx)
	if errors.Is(err, rdb.ErrMemoryUnknown) {
		m.memoryUnknown.Do(func() { m.log.Info("autodrop disabled: redis does not report its memory", "error", err) })
		return m.finish(bus.JobAutodrop, m.tendAccounts(ctx, 0))
	}
	if err != nil {
		return m.finish(bus.JobAutodrop, err)
	}
	if memory.Evicts {
		m.evicts.Do(func() {
			m.log.Error("redis evicts keys when it is full, and with them events: set its maxmemory-policy to noeviction")
		})
	}
	_, high, low := m.limits.Marks(memory.Max)
	// A full Redis refuses to note that, and must be emptied all the same.
	err = m.tendAccounts(ctx, high)
	if memory.Used <= high {
		m.exhausted = false
		return m.finish(bus.JobAutodrop, err)
	}
	d := &drop{used: memory.Used, high: high, low: low, deadline: m.now().Add(dropTimeout), events: map[bus.Token]int{}}
	err = m.drop(ctx, d)
	m.dropped(ctx, d)
	if err == nil && d.unfinished() {
		return queue.Result{RetryAt: m.now()}
	}
	return m.finish(bus.JobAutodrop, err)
}

// drop is one run of autodrop.
type drop struct {
	used, high, low int64 // bytes
	deadline        time.Time
	keys            int
	spares          []int // how many of each
	history         store.DroppedHistory
	letters         store.DroppedLetters
	batches         int
	events          map[bus.Token]int
	// noKeys, noSpares, noHistory, noLetters and exhausted say that no idempotency key, spare,
	// event of a history, dead letter, or batch is left to drop.
	noKeys, noSpares, noHistory, noLetters, exhausted bool
}

// unfinished reports whether the next run has to go on at once. Below the high mark, only keys are
// dropped.
func (d *drop) unfinished() bool {
	if d.noKeys && d.used <= d.high {
		return false
	}
	return d.used > d.low && !d.exhausted
}

// goesOn reports whether there is more to do in this run, and time for it.
func (m *Maintenance) goesOn(d *drop) bool { return d.used > d.low && m.now().Before(d.deadline) }

func (m *Maintenance) drop(ctx context.Context, d *drop) (err error) {
	if d.noKeys, err = m.dropKeys(ctx, d); err != nil || !d.noKeys || d.used <= d.high {
		return err
	}
	if d.noSpares, err = m.dropSpares(ctx, d); err != nil || !d.noSpares || d.used <= d.high {
		return err
	}
	if d.noHistory, err = m.dropHistories(ctx, d); err != nil || !d.noHistory || d.used <= d.high {
		return err
	}
	if d.noLetters, err = m.dropLetters(ctx, d); err != nil || !d.noLetters || d.used <= d.high {
		return err
	}
	d.exhausted, err = m.dropBatches(ctx, d)
	return err
}

// dropKeys drops idempotency keys of all clients, the oldest slice of each first. It reports
// whether it has dropped all keys that existed when it began. It leaves newer keys: under load
// there are always some, and batches, which fill Redis, would never be dropped.
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

// awaitFreeing waits until Redis has freed memory in the background, and reads how much it uses.
// Without the wait, batches would be dropped for memory that is about to be free. It reports
// whether Redis is still freeing after a while: then the next run goes on.
func (m *Maintenance) awaitFreeing(ctx context.Context, d *drop) (freeing bool, err error) {
	const tries, pause = 200, time.Millisecond
	for range tries {
		memory, err := m.store.Partition().Memory(ctx)
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

// dropBatches drops the oldest batches of the client that has most queued, a slice at a time. It
// reports whether none is left of any.
func (m *Maintenance) dropBatches(ctx context.Context, d *drop) (noneLeft bool, err error) {
	queues, err := m.queues(ctx)
	if err != nil {
		return false, err
	}
	return m.dropSteps(ctx, d, func() (some bool, err error) {
		dropped, err := m.dropFromLargest(ctx, d, &queues)
		for _, batch := range dropped {
			d.batches++
			d.events[batch.Subscriber] += batch.Events
		}
		return len(queues) > 0, err
	})
}

// dropSteps takes steps until the low mark is reached, the run's time is over, or a step drops
// nothing: then nothing is left.
func (m *Maintenance) dropSteps(ctx context.Context, d *drop, step func() (some bool, err error)) (noneLeft bool, err error) {
	for m.goesOn(d) {
		if some, err := step(); err != nil || !some {
			return err == nil, err
		}
		memory, err := m.store.Partition().Memory(ctx)
		if err != nil {
			return false, err
		}
		d.used = memory.Used
	}
	return false, nil
}

// dropReadable is dropSteps for data worth less than batches. If foreign data in its keys makes a
// drop fail, batches must still be dropped: it then reports that none is left, too.
func (m *Maintenance) dropReadable(ctx context.Context, d *drop, step func() (some bool, err error)) (noneLeft bool, err error) {
	noneLeft, err = m.dropSteps(ctx, d, step)
	if rdb.Answered(err) {
		return noneLeft || err != nil, nil
	}
	return false, err
}

// dropped records the drops of a run. When nothing is left to drop, it logs that once, until there
// is something again.
func (m *Maintenance) dropped(ctx context.Context, d *drop) {
	log := m.log.With("bytes_used", d.used, "low_mark", d.low, "high_mark", d.high)
	if d.keys > 0 {
		log.Warn("dropped idempotency keys: redis is about to be full; what is published again may be stored twice", "keys", d.keys)
		m.recorder.Count(telemetry.DroppedKeys, d.keys, telemetry.OutOfMemory)
	}
	for i, n := range d.spares {
		if n > 0 {
			m.spares[i].Dropped(log, n)
		}
	}
	if events := d.history.Events(); events > 0 {
		log.Warn("dropped the oldest events of histories: redis is about to be full", "events", events, "topics", len(d.history))
		for topic, events := range d.history {
			m.recorder.Count(telemetry.DroppedHistory, events, string(topic))
		}
	}
	if d.letters.Letters > 0 {
		m.droppedLetters(ctx, d.letters, log, "dropped the oldest dead letters: redis is about to be full")
	}
	if d.batches > 0 {
		m.droppedBatches(ctx, d, log)
	}
	if d.exhausted && !m.exhausted {
		log.Error("redis is about to be full, and there is no batch to drop")
	}
	m.exhausted = d.exhausted
}

func (m *Maintenance) droppedBatches(ctx context.Context, d *drop, log *slog.Logger) {
	total, byClient := 0, m.eventsByClient(ctx, d.events)
	for name, events := range byClient {
		total += events
		m.recorder.Count(telemetry.DroppedEvents, events, string(name))
		m.recorder.Count(telemetry.RemovedEvents, events, string(name))
		m.recorder.Count(telemetry.LostEvents, events, string(name), string(bus.LostToAutodrop))
	}
	log.Error("dropped the oldest batches: redis is about to be full", "batches", d.batches, "events", total, subscribers(byClient),
		"history", d.history.Events(), "dead_letters", d.letters.Letters)
	m.recorder.Count(telemetry.DroppedBatches, d.batches)
}

// eventsByClient turns numbers of events by token into numbers by the clients' public names.
func (m *Maintenance) eventsByClient(ctx context.Context, events map[bus.Token]int) map[bus.ClientName]int {
	names, err := m.store.Tokens(ctx)
	if err != nil {
		names = nil // [bus.PublicName] then makes a name of each token
	}
	named := map[bus.ClientName]int{}
	for token, n := range events {
		named[bus.PublicName(token, names[token])] += n
	}
	return named
}

// subscribers returns numbers of events by client as a field of the log.
func subscribers(events map[bus.ClientName]int) slog.Attr {
	var numbers []any
	for _, name := range slices.Sorted(maps.Keys(events)) {
		numbers = append(numbers, slog.Int(string(name), events[name]))
	}
	return slog.Group("subscribers", numbers...)
}
