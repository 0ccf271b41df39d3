package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// The limits of one [Client.PublishAll].
const (
	// MaxBulk is the limit of events.
	MaxBulk = 1000
	// MaxBulkBytes is the limit of bytes of their JSON.
	MaxBulkBytes = 1 << 20
)

// PublishOption changes how events are published.
type PublishOption func(*publication)

type publication struct {
	key string
	// ttl is for how long the bus is to remember the key; 0 leaves it to the bus.
	ttl time.Duration
}

// retryTTL is for how long the bus is to remember a key that only a call's own retries use.
const retryTTL = 10 * time.Minute

// WithIdempotencyKey sets the idempotency key, 1 to 128 visible ASCII characters. However often the
// same events are published under one key, the bus stores them once, for as long as it remembers
// the key: an hour after its last use by default. Other events under the same key are refused with
// 409. Without this option each call has a random key, so that its own retries store nothing twice.
// Use the option to be able to publish again after a crash.
func WithIdempotencyKey(key string) PublishOption {
	return func(p *publication) { p.key = key }
}

// WithIdempotencyTTL sets for how long the bus remembers the key: a minute to 24 hours, in whole
// seconds. Many long-lived keys fill the bus's memory; if a client has too many, the bus forgets
// the oldest.
func WithIdempotencyTTL(ttl time.Duration) PublishOption {
	return func(p *publication) { p.ttl = ttl }
}

// Publish publishes an event to its topic. When it returns nil, the bus has stored the event for
// every subscriber and will deliver it. After an error for which [IsTemporary] is true, the event
// may have been stored.
func (c *Client) Publish(ctx context.Context, event Event, options ...PublishOption) error {
	body, err := event.published()
	if err != nil {
		return fmt.Errorf("publish to %s: %w", event.Topic, err)
	}
	return c.publish(ctx, event.Topic, body, options)
}

// PublishAll publishes 1 to [MaxBulk] events to a topic, in order, all or nothing, in one request
// of at most [MaxBulkBytes]. The topics of the events themselves are ignored.
func (c *Client) PublishAll(ctx context.Context, topic string, events []Event, options ...PublishOption) error {
	if len(events) == 0 || len(events) > MaxBulk {
		return fmt.Errorf("publish to %s: got %d events; publish 1 to %d at once", topic, len(events), MaxBulk)
	}
	all := make([][]byte, len(events))
	for i, event := range events {
		var err error
		if all[i], err = event.published(); err != nil {
			return fmt.Errorf("publish to %s: event %d: %w", topic, i, err)
		}
	}
	body := array(all)
	if len(body) > MaxBulkBytes {
		return fmt.Errorf("publish to %s: %d events have %d bytes; publish at most %d at once", topic, len(events), len(body), MaxBulkBytes)
	}
	return c.publish(ctx, topic, body, options)
}

// array makes a JSON array of values.
func array(values [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}

func (c *Client) publish(ctx context.Context, topic string, body []byte, options []PublishOption) error {
	if topic == "" {
		return errors.New("publish: the event has no topic")
	}
	own := rand.Text()
	p := publication{key: own}
	for _, option := range options {
		option(&p)
	}
	if p.key == own && p.ttl == 0 {
		p.ttl = retryTTL
	}
	return c.call(ctx, request{
		method: http.MethodPost, path: "/topics/" + url.PathEscape(topic), operation: "publish to " + topic, body: body, key: p.key, keyTTL: p.ttl,
	}, nil)
}
