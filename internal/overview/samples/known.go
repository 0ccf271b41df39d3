package samples

import (
	"context"
	"maps"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
)

// knownTTL is how long what seldom changes is taken for what was read.
const knownTTL = 10 * time.Second

// known is what a collector remembers of subscribers and topics from one sample to the next, so that
// samples cost Redis less.
type known struct {
	// since is since when it is remembered, isFull whether the first three below are.
	since  time.Time
	isFull bool
	topics map[bus.Token][]bus.TopicName
	lanes  map[bus.Token]stats.LaneOptions
	// failures are what came of the last deliveries that failed.
	failures map[bus.Token]string
	// conditions are how the deliveries go, batches the oldest that were met last.
	conditions stats.Conditions
	batches    stats.Batches
	// publishers are the public names of those of topics.
	publishers map[string]string
}

// forget forgets what may have changed unseen, if it is remembered for long or the clock was set
// back.
func (k *known) forget(now time.Time) {
	if age := now.Sub(k.since); age < 0 || age >= knownTTL {
		*k = known{since: now, failures: k.failures, batches: k.batches}
	}
}

// read reads what is not known of the subscribers of a sample, and what came of their deliveries
// since the last one.
func (k *known) read(ctx context.Context, p *partition, d *draft) (err error) {
	var tokens, changed []bus.Token
	isNew := false
	for _, b := range d.backlogs {
		tokens = append(tokens, b.Token)
		if k.conditions.Changed(b.Token) {
			changed = append(changed, b.Token)
		}
		_, has := k.topics[b.Token]
		isNew = isNew || !has
	}
	if !k.isFull || isNew {
		k.isFull = false
		if k.topics, err = p.stats.TopicsOf(ctx, tokens); err != nil {
			return err
		}
		if k.lanes, err = p.stats.LaneOptions(ctx, tokens); err != nil {
			return err
		}
		k.failures, changed = nil, tokens
	}
	found, err := p.inspector.Failures(ctx, changed)
	if err != nil {
		k.isFull = false
		return err
	}
	if k.failures == nil {
		k.failures = map[bus.Token]string{}
	}
	for _, token := range changed {
		delete(k.failures, token)
	}
	maps.Copy(k.failures, found)
	k.isFull = true
	return nil
}
