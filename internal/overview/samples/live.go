package samples

import (
	"context"
	"sync"
	"time"

	"routemaster/internal/overview"
)

// When a [Live] asks Redis.
const (
	// late is how late a sample may be: who looks gets the one before until then.
	late = time.Second
	// watchedFor is how long somebody counts as looking who has asked once.
	watchedFor = 30 * time.Second
	// keptFor is how long the history is kept in memory after that.
	keptFor = 5 * time.Minute
	// seedWindow is from how long ago slots of the history serve for the first rates.
	seedWindow = time.Minute
)

// Live has the figures of a bus for all who look at them in one process: they share its samples.
// While nobody looks, it asks Redis nothing. It is safe for concurrent use.
type Live struct {
	collector *Collector
	series    *series
	now       func() time.Time

	// sampling is held while a sample is taken, and guards sampler and loadedAt.
	sampling sync.Mutex
	sampler  overview.Sampler
	// loadedAt is when the history was read last.
	loadedAt time.Time

	mu        sync.Mutex // guards the fields below
	history   *overview.History
	figures   overview.Figures
	sampledAt time.Time
	watchedAt time.Time
}

// Bounds of the interval of samples. Within 10 s all pages show what happened: see
// docs/decisions/counters-and-figures.md.
const (
	minInterval = 2 * time.Second
	maxInterval = 3500 * time.Millisecond
	// rowsPerSecond is how many subscribers and topics are read in a second, between the bounds.
	rowsPerSecond = 400
)

// Interval is the time between two samples of so many subscribers and topics, so that a large bus
// is not read all the time.
func Interval(rows int) time.Duration {
	return min(max(minInterval, time.Duration(rows)*time.Second/rowsPerSecond), maxInterval)
}

// NewLive makes a Live of the samples of a collector.
func NewLive(c *Collector) *Live {
	return &Live{collector: c, series: newSeries(c.config.Stores.First().Partition()), now: c.now, history: overview.NewHistory()}
}

// Figures returns the figures of a sample that is at most a second older than its [Interval], with
// states and problems. While Redis cannot be read they are the last ones, and say so. The lists are
// shared: nobody may change them.
func (l *Live) Figures(ctx context.Context) overview.Figures {
	l.watch()
	if maxAge := l.interval() + late; l.age() > maxAge {
		l.refresh(ctx, maxAge)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// Tracks returns what the figures have been.
func (l *Live) Tracks(ctx context.Context) overview.Tracks {
	l.Figures(ctx) // which loads it
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Track
}

// Run takes a sample every [Interval] while somebody looks, until the context is done. Without it,
// only who looks takes one.
func (l *Live) Run(ctx context.Context) {
	for {
		select {
		case <-time.After(l.interval()):
			l.tick(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// tick takes a sample if somebody looks, and forgets the history once nobody has for long.
func (l *Live) tick(ctx context.Context) {
	l.mu.Lock()
	unwatched := l.now().Sub(l.watchedAt)
	l.mu.Unlock()
	switch {
	case unwatched <= watchedFor:
		l.refresh(ctx, 0)
	case unwatched > keptFor:
		l.forget()
	}
}

func (l *Live) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchedAt = l.now()
}

// interval is that of the samples now. While Redis is away, there is nothing to spare.
func (l *Live) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.figures.Redis != "" {
		return minInterval
	}
	return Interval(len(l.figures.Subscribers) + len(l.figures.Topics))
}

// age is how old the last sample is.
func (l *Live) age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now().Sub(l.sampledAt)
}

func (l *Live) forget() {
	l.sampling.Lock()
	defer l.sampling.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history, l.loadedAt = overview.NewHistory(), time.Time{}
}

// refresh takes a sample unless there is one that is not older than allowed. All who look wait for
// it, so it does not end with the context of one of them.
func (l *Live) refresh(ctx context.Context, allowed time.Duration) {
	l.sampling.Lock()
	defer l.sampling.Unlock()
	if allowed > 0 && l.age() <= allowed {
		return
	}
	ctx = context.WithoutCancel(ctx)
	sample := l.collector.Collect(ctx, Look)
	if sample.Redis == "" {
		if err := l.load(ctx, sample.At); err != nil {
			sample.Unread = append(sample.Unread, overview.Unread{Part: overview.PartHistory, Why: explain(err)})
		}
	}
	figures := l.sampler.Add(sample)
	l.mu.Lock()
	history := l.history
	l.mu.Unlock()
	figures.History = history.Coverage()
	overview.Judge(&figures, sample, history.Track)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures, l.sampledAt = figures, l.now()
}

// load reads what the history does not have yet, if a slot may have been written since the last
// time. When sampling begins, or begins anew, the last slots make the first rates.
func (l *Live) load(ctx context.Context, now time.Time) error {
	begins := l.age() > watchedFor
	if !begins && l.now().Sub(l.loadedAt) < SeriesInterval {
		return nil
	}
	l.mu.Lock()
	history := l.history
	l.mu.Unlock()
	var last []overview.Slot
	err := l.collector.bounded(ctx, func(ctx context.Context) (err error) {
		if err = l.series.load(ctx, history); err == nil && begins {
			last, err = l.series.last(ctx, now, seedWindow)
		}
		return err
	})
	if err != nil {
		return err
	}
	l.loadedAt = l.now()
	if begins {
		l.sampler = overview.Sampler{}
		for _, slot := range last {
			l.sampler.Seed(slot)
		}
	}
	return nil
}
