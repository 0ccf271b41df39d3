package samples

import (
	"context"
	"sync"
	"time"

	"routemaster/internal/overview"
)

// When a [Live] asks Redis.
const (
	// late is how late a sample may be: until then, callers get the one before.
	late = time.Second
	// watchedFor is how long one request keeps the bus watched.
	watchedFor = 30 * time.Second
	// keptFor is how long the history is kept in memory after that.
	keptFor = 5 * time.Minute
	// seedWindow is from how long ago slots of the history serve for the first rates.
	seedWindow = time.Minute
)

// Live shares the figures of a bus between all viewers in one process. Without viewers it sends no
// command to Redis. It is safe for concurrent use.
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

// Bounds of the interval of samples. All pages show an event within 10 s: see
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
// states and problems. While Redis cannot be read they are the last ones, and say so. Callers must
// not change the lists, which are shared.
func (l *Live) Figures(ctx context.Context) overview.Figures {
	l.watch()
	if maxAge := l.interval() + late; l.age() > maxAge {
		l.refresh(ctx, maxAge)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// Tracks returns the past values of figures.
func (l *Live) Tracks(ctx context.Context) overview.Tracks {
	l.Figures(ctx) // which loads it
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.Track
}

// Run takes a sample every [Interval] while the bus is watched, until the context is done. Without
// Run, only requests take samples.
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

// tick takes a sample if the bus is watched, and drops the history once it has not been for
// keptFor.
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

// interval returns the current interval of samples. While Redis is unavailable, it is the shortest.
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

// refresh takes a sample unless there is one no older than allowed. All viewers wait for it, so it
// does not end with the context of one of them.
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

// load reads new slots of the history, if one may have been written since the last time. When
// sampling begins or resumes, the last slots give the first rates.
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
