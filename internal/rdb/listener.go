package rdb

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Listener gets what is published on a channel, on a connection of its own. What is published while
// it has no connection is lost.
type Listener struct{ pubsub *redis.PubSub }

// NewListener listens on a channel from now on. It fails with [bus.ErrUnavailable].
func (p *Partition) NewListener(ctx context.Context, channel string) (*Listener, error) {
	pubsub := p.client.db.Subscribe(ctx, channel)
	if _, err := pubsub.Receive(ctx); err != nil { // until Redis has confirmed it
		_ = pubsub.Close()
		return nil, Wrap("listen", err)
	}
	return &Listener{pubsub}, nil
}

// Each calls a function with everything that is published, until the listener is closed. It
// connects again whenever it has to.
func (l *Listener) Each(do func(text string)) {
	for message := range l.pubsub.Channel() {
		do(message.Payload)
	}
}

// Close ends it.
func (l *Listener) Close() error { return Wrap("close", l.pubsub.Close()) }
