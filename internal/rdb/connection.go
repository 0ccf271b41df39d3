package rdb

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// connection is one of its own to a partition, for what takes long. It is safe for concurrent use.
type connection struct {
	connect func() library
	mu      sync.Mutex
	db      library
	closed  bool
}

func (p *Partition) newConnection(longest time.Duration) *connection {
	connect := func() library { return p.client.place.connect(p.namespace, longest, p.state) }
	return &connection{connect: connect, db: connect()}
}

// run runs a command, after which a context that is done closes the connection for good. Whatever
// the command waits for ends then. Err is nil if it was closed.
func (c *connection) run(ctx context.Context, command func(library) error) (closed bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	c.mu.Lock()
	db := c.db
	c.mu.Unlock()
	err = command(db)
	if ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
		return true, ctx.Err()
	}
	if _, moved := redis.IsMovedError(err); moved {
		c.renew()
	}
	return false, err
}

// renew connects anew the next time, because the partition is at another node.
func (c *connection) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		_ = c.db.Close()
		c.db = c.connect()
	}
}

// Close closes the connection, and ends what runs on it.
func (c *connection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.db.Close()
}
