package samples

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
)

// knownTTL is how long what seldom changes is taken for what was read.
const knownTTL = 10 * time.Second

// known is what a collector remembers of subscribers from one sample to the next, so that samples
// cost Redis less.
type known struct {
	readAt time.Time
	topics map[bus.Token][]bus.TopicName
	lanes  map[bus.Token]stats.LaneOptions
	// failures are what came of the last deliveries that failed. One that has failed, or lacks health,
	// is read again each time: another delivery may have succeeded, or failed.
	failures map[bus.Token]string
	// owners are those of the oldest batches.
	owners stats.Owners
}

// read reads what is not known of the subscribers of a sample, or not since lately.
func (k *known) read(ctx context.Context, c *Collector, d *draft) (err error) {
	var tokens, suspects []bus.Token
	isNew := false
	for _, b := range d.backlogs {
		tokens = append(tokens, b.Token)
		if b.Health < bus.MaxHealth || k.failures[b.Token] != "" {
			suspects = append(suspects, b.Token)
		}
		_, has := k.topics[b.Token]
		isNew = isNew || !has
	}
	if age := d.At.Sub(k.readAt); !isNew && age >= 0 && age < knownTTL {
		found, err := c.inspector.Failures(ctx, suspects)
		if err == nil {
			k.failures = found
		}
		return err
	}
	k.readAt = time.Time{}
	if k.topics, err = c.stats.TopicsOf(ctx, tokens); err != nil {
		return err
	}
	if k.lanes, err = c.stats.LaneOptions(ctx, tokens); err != nil {
		return err
	}
	if k.failures, err = c.inspector.Failures(ctx, tokens); err != nil {
		return err
	}
	k.readAt = d.At
	return nil
}
