package delivery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// ExpiredInterval is how often to log the batches that were too old: as often as the housekeeping
// logs the batches that it drops.
const ExpiredInterval = 10 * time.Second

// expiredLog logs the batches that were too old as they came up: one line for each subscriber and
// interval, since thousands may come up together. It is safe for concurrent use.
type expiredLog struct {
	log *slog.Logger

	mu      sync.Mutex
	dropped map[bus.ClientName]expiredSum // since the last report
}

// expiredSum is how many batches of a subscriber were dropped, and how many events were lost so.
type expiredSum struct{ batches, events int }

func newExpiredLog(log *slog.Logger) *expiredLog {
	return &expiredLog{log: log, dropped: map[bus.ClientName]expiredSum{}}
}

func (l *expiredLog) add(batch store.ExpiredBatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.dropped[batch.Client]
	l.dropped[batch.Client] = expiredSum{sum.batches + 1, sum.events + batch.Events}
}

// LogExpired logs the batches that were too old and came up since it was called before. It never
// fails.
func (d *Deliverer) LogExpired(context.Context) error {
	d.expired.report()
	return nil
}

// report logs the batches dropped since the last call.
func (l *expiredLog) report() {
	l.mu.Lock()
	dropped := maps.Clone(l.dropped)
	clear(l.dropped)
	l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(dropped)) {
		l.log.Warn("dropped batches that were too old for their subscriber",
			"subscriber", name, "batches", dropped[name].batches, "events", dropped[name].events)
	}
}
