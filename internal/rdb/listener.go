package rdb

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Listener gets what is published on a channel, on a connection of its own. What is published while
// it has no connection is lost.
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
	pubsub := p.db.(subscribing).Subscribe(ctx, channel)
	if _, err := pubsub.Receive(ctx); err != nil { // until Redis has confirmed it
		_ = pubsub.Close()
		return nil, Wrap("listen", err)
	}
	return &Listener{messages: pubsub.Channel(), close: pubsub.Close}, nil
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
