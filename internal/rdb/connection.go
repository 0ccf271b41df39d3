package rdb

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// connection is a separate connection to a partition, for long calls. It is safe for concurrent
// use.
type connection struct {
	connect func() library
	// open is done when it is closed.
	open context.Context
	stop context.CancelFunc

	mu sync.Mutex
	db library
}

func (p *Partition) newConnection(longest time.Duration) *connection {
	c := &connection{connect: func() library { return p.client.place.connect(p.namespace, longest, p.state) }}
	c.open, c.stop = context.WithCancel(context.Background())
	c.db = c.connect()
	return c
}

// run runs a command. If the context ends meanwhile, it closes the connection for good. Closing
// ends the command's waits; err is then the context's error, if any.
func (c *connection) run(ctx context.Context, command func(context.Context, library) error) (closed bool, err error) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)() // it may not be connected yet
	c.mu.Lock()
	db := c.db
	c.mu.Unlock()
	err = command(calling, db)
	if ctx.Err() != nil || c.open.Err() != nil || errors.Is(err, redis.ErrClosed) {
		return true, ctx.Err()
	}
	if _, moved := redis.IsMovedError(err); moved {
		c.renew(db)
	}
	return false, err
}

// renew connects anew the next time, because the partition is at another node.
func (c *connection) renew(old library) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() == nil && c.db == old {
		_ = c.db.Close()
		c.db = c.connect()
	}
}

// Close closes the connection, and ends its running commands.
func (c *connection) Close() error {
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.db.Close()
}
