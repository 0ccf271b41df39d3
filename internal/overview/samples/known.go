package samples

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
)

// knownTTL is how long what seldom changes is taken for what was read.
const knownTTL = 10 * time.Second

// known is what a collector remembers of subscribers and topics from one sample to the next, so
// that samples cost Redis less.
type known struct {
	// since is since when it is remembered.
	since time.Time
	// details are those of subscribers.
	details map[bus.Token]*detail
	// unread are those whose details have changed, and could not be read.
	unread []bus.Token
	// strict are the lanes of those whose order is strict.
	strict map[bus.Token]inspect.LaneOptions
	// conditions are how the deliveries go, batches those that were among the oldest.
	conditions inspect.Conditions
	batches    inspect.Batches
	// risks are what Redis would lose; nil if they were not read.
	risks *[]string
	// publishers are the public names of those of topics.
	publishers map[string]string
}

// detail is what is read of a subscriber besides what waits for it.
type detail struct {
	topics []string
	// failure is what came of its last delivery if none has succeeded since, and blocked whether a
	// batch holds it up.
	failure string
	blocked bool
}

// forget forgets what may have changed unseen, if it is remembered for long or the clock was set
// back.
func (k *known) forget(now time.Time) {
	if age := now.Sub(k.since); age < 0 || age >= knownTTL {
		*k = known{
			since: now, details: map[bus.Token]*detail{}, strict: map[bus.Token]inspect.LaneOptions{},
			batches: k.batches, publishers: map[string]string{},
		}
	}
}

// read reads what is not known of the subscribers whose conditions have changed, and what came of
// their last deliveries. What it cannot read is left for the next time.
func (k *known) read(ctx context.Context, p *partition) error {
	changed := slices.Concat(k.unread, k.conditions.Changed())
	slices.Sort(changed)
	changed = slices.Compact(changed)
	k.unread = changed
	isNew := slices.DeleteFunc(slices.Clone(changed), func(token bus.Token) bool { return k.details[token] != nil })
	topics, err := p.inspector.TopicsOf(ctx, isNew)
	if err != nil {
		return err
	}
	lanes, err := p.inspector.LaneOptions(ctx, isNew)
	if err != nil {
		return err
	}
	failures, err := p.inspector.Failures(ctx, k.conditions.Failing(changed))
	if err != nil {
		return err
	}
	for _, token := range isNew {
		of := &detail{topics: make([]string, len(topics[token]))}
		for i, topic := range topics[token] {
			of.topics[i] = string(topic)
		}
		if k.details[token] = of; lanes[token].IsStrict {
			k.strict[token] = lanes[token]
		}
	}
	for _, token := range changed {
		k.details[token].failure = failures[token]
	}
	k.unread = nil
	return nil
}
