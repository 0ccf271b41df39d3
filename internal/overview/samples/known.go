package samples

import (
	"context"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
)

// knownTTL is how long seldom changing data is cached.
const knownTTL = 10 * time.Second

// known caches data of subscribers and topics between samples, so that samples cost Redis less.
type known struct {
	// since is since when it is remembered.
	since time.Time
	// details are details of subscribers.
	details map[bus.Token]*detail
	// unread are those whose details have changed, and could not be read.
	unread []bus.Token
	// strict are the lanes of those whose order is strict.
	strict map[bus.Token]inspect.LaneOptions
	// conditions are the state of deliveries, batches the batches that were among the oldest.
	conditions inspect.Conditions
	batches    inspect.Batches
	// risks are the data that Redis would lose; nil if not read.
	risks *[]string
	// publishers are the public names of the topics' publishers.
	publishers map[string]string
}

// detail is the data of a subscriber besides its backlog.
type detail struct {
	topics []string
	// failure is the result of its last delivery if none has succeeded since, and blocked whether a
	// batch holds it up.
	failure string
	blocked bool
}

// forget drops the cache after knownTTL, or if the clock was set back.
func (k *known) forget(now time.Time) {
	if age := now.Sub(k.since); age < 0 || age >= knownTTL {
		*k = known{
			since: now, details: map[bus.Token]*detail{}, strict: map[bus.Token]inspect.LaneOptions{},
			batches: k.batches, publishers: map[string]string{},
		}
	}
}

// read reads the details of subscribers that are not cached, or whose conditions have changed, and
// the results of their last deliveries. It retries failed reads the next time.
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
