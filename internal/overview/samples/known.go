package samples

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
)

// knownTTL is how long what seldom changes is taken for what was read.
const knownTTL = 10 * time.Second

// known is what a collector remembers of subscribers and topics from one sample to the next, so that
// samples cost Redis less.
type known struct {
	// since is since when it is remembered.
	since time.Time
	// details are those of subscribers; nil if they could not be read.
	details map[bus.Token]*detail
	// strict are the lanes of those whose order is strict.
	strict map[bus.Token]stats.LaneOptions
	// conditions are how the deliveries go, batches the oldest that were met last.
	conditions stats.Conditions
	batches    stats.Batches
	// publishers are the public names of those of topics.
	publishers map[string]string
}

// detail is what is read of a subscriber besides what waits for it.
type detail struct {
	topics []string
	// failure is what came of its last delivery if that failed, and blocked whether a batch holds it
	// up.
	failure string
	blocked bool
}

// forget forgets what may have changed unseen, if it is remembered for long or the clock was set
// back.
func (k *known) forget(now time.Time) {
	if age := now.Sub(k.since); age < 0 || age >= knownTTL {
		*k = known{since: now, batches: k.batches}
	}
}

// read reads what is not known of the subscribers of a sample, and what came of their deliveries
// since the last one.
func (k *known) read(ctx context.Context, p *partition, d *draft) error {
	was, changed := k.details, k.conditions.Changed()
	if was == nil {
		was, k.strict = make(map[bus.Token]*detail, len(d.backlogs)), map[bus.Token]stats.LaneOptions{}
		changed = make([]bus.Token, len(d.backlogs))
		for i := range d.backlogs {
			changed[i] = d.backlogs[i].Token
		}
	}
	k.details = nil
	isKnown := func(token bus.Token) bool { return was[token] != nil }
	isNew := slices.DeleteFunc(slices.Clone(changed), isKnown)
	topics, err := p.stats.TopicsOf(ctx, isNew)
	if err != nil {
		return err
	}
	lanes, err := p.stats.LaneOptions(ctx, isNew)
	if err != nil {
		return err
	}
	failures, err := p.inspector.Failures(ctx, changed)
	if err != nil {
		return err
	}
	for _, token := range isNew {
		was[token] = &detail{}
		for _, topic := range topics[token] {
			was[token].topics = append(was[token].topics, string(topic))
		}
		if lanes[token].IsStrict {
			k.strict[token] = lanes[token]
		}
	}
	for _, token := range changed {
		was[token].failure = failures[token]
	}
	k.details = was
	return nil
}
