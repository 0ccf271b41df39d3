package rdb

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Listener receives messages published on a channel, on a connection of its own. It misses messages
// published while it has no connection.
type Listener struct {
	messages <-chan *redis.Message
	close    func() error
}

// subscribing is the part of the Redis library's client that no [library] may name.
type subscribing interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// NewListener listens on a channel from now on. It fails with [bus.ErrUnavailable].
func (p *Partition) NewListener(ctx context.Context, channel string) (*Listener, error) {
	db := p.client.place.connect(p.namespace, 0, p.state)
	pubsub := db.(subscribing).Subscribe(ctx, channel)
	closeAll := func() error { return errors.Join(pubsub.Close(), db.Close()) }
	if _, err := pubsub.Receive(ctx); err != nil { // until Redis has confirmed it
		_ = closeAll()
		return nil, Wrap("listen", err)
	}
	return &Listener{messages: pubsub.Channel(), close: closeAll}, nil
}

// Each calls a function with everything that is published, until the listener is closed. It
// connects again whenever it has to.
func (l *Listener) Each(do func(text string)) {
	for message := range l.messages {
		do(message.Payload)
	}
}

// Close ends it.
func (l *Listener) Close() error { return Wrap("close", l.close()) }
