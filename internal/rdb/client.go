package rdb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Options say which Redis to use, and how.
type Options struct {
	// URL is a redis, rediss or unix URL, or a redis+sentinel or rediss+sentinel one, which names
	// sentinels and their master: redis+sentinel://user:password@host:26379,host:26379/master/0.
	URL string
	// Connections is how many calls may be under way at once, besides one for each [Waiter].
	Connections int
	// MinReplicas is how many replicas must confirm a [Partition.Change] before it succeeds.
	MinReplicas int
	// Log, if given, gets a line when Redis becomes unavailable, when it is available again, and
	// when it refuses calls.
	Log *slog.Logger
}

// library is what is used of *redis.Client. No exported type may lead to that by fields or methods:
// each package that imports this one would compile some 1,500 methods, which takes seconds, since
// the client has a generic type of itself. So neither redis.Options nor redis.PubSub stand here.
type library interface {
	redis.Cmdable
	Do(ctx context.Context, args ...any) *redis.Cmd
	AddHook(redis.Hook)
	Close() error
}

// Client is a Redis. It is safe for concurrent use.
type Client struct {
	db library
	// forWaiter makes another one, for a [Waiter] that waits for longest at most.
	forWaiter   func(longest time.Duration) library
	state       *connectionState
	minReplicas int
}

// Open prepares a client. It does not connect yet, so its error is about the options alone.
func Open(o Options) (*Client, error) {
	// The library would log every failed try; the connection state logs each change once.
	logging.Disable()
	source, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	source.configure(o.Connections)
	c := &Client{
		db: source.connect(), forWaiter: source.connectWaiter, minReplicas: o.MinReplicas,
		state: &connectionState{log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))},
	}
	c.state.lastUnavailable.Store(time.Now().UnixMilli())
	c.db.AddHook(c.state)
	return c, nil
}

// Close closes the connections.
func (c *Client) Close() error { return Wrap("close", c.db.Close()) }

// Ping returns [bus.ErrUnavailable] unless Redis answers.
func (c *Client) Ping(ctx context.Context) error { return Wrap("ping", c.db.Ping(ctx).Err()) }

// SteadySince is since when no call has found Redis unavailable, at the earliest since the client
// was opened.
func (c *Client) SteadySince() time.Time { return time.UnixMilli(c.state.lastUnavailable.Load()) }

// Partition is the layout whose keys begin with a namespace, which may be empty.
func (c *Client) Partition(namespace string) *Partition {
	return &Partition{Commands: c.db, client: c, namespace: namespace}
}
