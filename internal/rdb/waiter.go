package rdb

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Waiter waits until a list has an element, on a connection of its own.
type Waiter struct {
	connection *connection
	key        string
}

// waitWhenFull is how long a wait takes while Redis is full.
const waitWhenFull = 20 * time.Millisecond

// NewWaiter prepares a waiter for a list. No wait takes longer than longest.
func (p *Partition) NewWaiter(key string, longest time.Duration) *Waiter {
	return &Waiter{p.newConnection(longest), key}
}

// Wait returns when the list has an element, or at the latest after timeout. It takes nothing: it
// asks Redis to move the last element to its own place. So a lost reply loses no element, and a
// wait can be given up at any moment. When its context is done the waiter is closed for good.
func (w *Waiter) Wait(ctx context.Context, timeout time.Duration) error {
	closed, err := w.connection.run(ctx, func(ctx context.Context, db library) error {
		// Not BLMove, which rounds the time to whole seconds.
		return db.Do(ctx, "blmove", w.key, w.key, "right", "right", timeout.Seconds()).Err()
	})
	if closed {
		return err
	}
	if isFull(err) { // it refuses waits, but still hands out elements, which empties it
		select {
		case <-time.After(min(timeout, waitWhenFull)):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	return Wrap("wait", err)
}

// Close closes the waiter's connection, and ends a wait under way.
func (w *Waiter) Close() error { return Wrap("close", w.connection.Close()) }

// StreamWaiter waits until a stream has a new entry, on a connection of its own. It is not safe for
// concurrent use, but for Close.
type StreamWaiter struct {
	connection *connection
	key        string
	last       string // the id of the last entry that was seen
}

// NewStreamWaiter prepares a waiter for a stream. No wait takes longer than longest.
func (p *Partition) NewStreamWaiter(key string, longest time.Duration) *StreamWaiter {
	return &StreamWaiter{p.newConnection(longest), key, "0-0"}
}

// Wait returns when the stream has entries that came after the last that was seen, or at the latest
// after timeout. The first wait returns at once if there are any. When its context is done the
// waiter is closed for good. It returns the value of each of these entries, which have one field.
func (w *StreamWaiter) Wait(ctx context.Context, timeout time.Duration) (values []string, err error) {
	var streams []redis.XStream
	closed, err := w.connection.run(ctx, func(ctx context.Context, db library) (err error) {
		streams, err = db.XRead(ctx, &redis.XReadArgs{Streams: []string{w.key, w.last}, Block: timeout}).Result()
		return err
	})
	if closed {
		return nil, err
	}
	if errors.Is(err, redis.Nil) { // the timeout
		return nil, nil
	}
	for _, stream := range streams {
		for _, entry := range stream.Messages {
			w.last = entry.ID
			for _, value := range entry.Values {
				values = append(values, Text(value))
			}
		}
	}
	return values, Wrap("wait", err)
}

// Close closes the waiter's connection, and ends a wait under way.
func (w *StreamWaiter) Close() error { return Wrap("close", w.connection.Close()) }
