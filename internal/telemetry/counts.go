package telemetry

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"routemaster/internal/bus"
)

// Limits of the memory used while Redis is unavailable: counters, and lists of tokens. Known ones
// continue to count, new ones are lost.
const (
	maxCounts   = 20_000
	maxByTokens = 2_000
)

// flushTimeout bounds one flush, so that a process stops in time even if Redis hangs.
const flushTimeout = 3 * time.Second

// Store is where the counters of the bus are kept.
type Store interface {
	// Tokens reads the public names of clients, by token.
	Tokens(ctx context.Context) (map[bus.Token]bus.ClientName, error)
	// AddCounters adds to counters, and removes the added ones from increments: after an error,
	// increments has the rest.
	AddCounters(ctx context.Context, increments map[bus.Counter]int64) error
}

// counts are the counts since the last flush.
type counts struct {
	store Store
	log   *slog.Logger
	// flushing is held during a flush. It guards failing: whether the last flush failed.
	flushing sync.Mutex
	failing  bool

	mu         sync.Mutex
	increments map[bus.Counter]int64
	// byTokens counts events of subscribers of whom only the tokens are known, with one entry for
	// all receivers of a publish. A flush looks up their names.
	byTokens map[tokenCounter]int64
}

// tokenCounter is a counter for each of some subscribers.
type tokenCounter struct {
	metric *Metric
	tokens bus.Tokens
}

func newCounts(st Store, log *slog.Logger) *counts {
	return &counts{
		store: st, log: log,
		increments: map[bus.Counter]int64{}, byTokens: map[tokenCounter]int64{},
	}
}

// addOne adds to one counter and, if it has a name, to its total.
func (c *counts) addOne(counter, total bus.Counter, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(counter, n)
	if total.Name != "" {
		c.add(total, n)
	}
}

// add adds to a counter; the caller holds mu.
func (c *counts) add(counter bus.Counter, n int64) {
	before, known := c.increments[counter]
	if n > 0 && (known || len(c.increments) < maxCounts) {
		c.increments[counter] = sum(before, n)
	}
}

// addFor counts events for each of some subscribers.
func (c *counts) addFor(m *Metric, subscribers bus.Tokens, events int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counter := tokenCounter{m, subscribers}
	before, known := c.byTokens[counter]
	if events > 0 && (known || len(c.byTokens) < maxByTokens) {
		c.byTokens[counter] = sum(before, events)
		if m.Total != "" {
			c.add(m.BusTotal(), events*int64(subscribers.Len()))
		}
	}
}

// sum adds numbers that are not negative. It saturates instead of overflowing.
func sum(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// Run flushes the counters at an interval until the context is done. Call [Recorder.Flush] once
// more at the end. A flush that has begun goes on, for 3 s at most: if it were abandoned, the last
// flush might add its numbers again.
func (r *Recorder) Run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.Flush(context.WithoutCancel(ctx))
		case <-ctx.Done():
			return
		}
	}
}

// Flush adds the counts to the counters in Redis. Counts it cannot add stay for the next flush. If
// Redis' reply is lost, the same numbers are added twice.
func (r *Recorder) Flush(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	c := r.counts
	c.flushing.Lock()
	defer c.flushing.Unlock()
	err := c.flush(ctx)
	if err != nil && !c.failing { // each change is logged once
		c.log.Warn("counters cannot be stored; keeping them in memory", "error", err)
	}
	c.failing = err != nil
}

func (c *counts) flush(ctx context.Context) error {
	if err := c.nameTokens(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	taken := c.increments
	c.increments = make(map[bus.Counter]int64, len(taken))
	c.mu.Unlock()
	err := c.store.AddCounters(ctx, taken)
	c.mu.Lock()
	defer c.mu.Unlock()
	for counter, n := range taken { // AddCounters has removed the stored ones
		c.add(counter, n)
	}
	return err
}

// nameTokens turns the events by tokens into a counter for each subscriber.
func (c *counts) nameTokens(ctx context.Context) error {
	c.mu.Lock()
	nothing := len(c.byTokens) == 0
	c.mu.Unlock()
	if nothing {
		return nil
	}
	names, err := c.store.Tokens(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for counter, events := range c.byTokens {
		for token := range counter.tokens.All() {
			name := bus.PublicName(bus.Token(token), names[bus.Token(token)])
			c.add(counter.metric.Bus(string(name)), events)
		}
	}
	clear(c.byTokens)
	return nil
}
