package rdb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Options say which Redis to use, and how.
type Options struct {
	// URL is a redis, rediss or unix URL, or one of sentinels or of a cluster, which names several
	// hosts: redis+sentinel://user:password@host:26379,host:26379/master/0 or
	// redis+cluster://user:password@host:6379,host:6379; rediss for TLS.
	URL string
	// Connections is how many calls may be under way at once, besides one for each [Waiter]; to each
	// node of a cluster.
	Connections int
	// MinReplicas is how many replicas must confirm a [Partition.Change] before it succeeds.
	MinReplicas int
	// Log, if given, gets a line when Redis becomes unavailable or a partition is held, when that
	// ends, and when Redis refuses calls.
	Log *slog.Logger
}

// library is the part of *redis.Client that this package uses. No exported type may lead to the
// client by fields or methods, nor may an inlined function: each package that imports this one
// would compile some 1,500 methods, for seconds, as the client has a generic type of itself. So has
// redis.Options.
type library interface {
	redis.Cmdable
	Do(ctx context.Context, args ...any) *redis.Cmd
	AddHook(redis.Hook)
	Close() error
}

// Client is a Redis, or a Redis Cluster. It is safe for concurrent use.
type Client struct {
	place       place
	isCluster   bool // also said by the type of place, which must not be inlined: see library
	minReplicas int
}

// Open prepares a client. It does not connect yet, so its error is about the options alone.
func Open(o Options) (*Client, error) {
	// The library would log every failed try; the connection state logs each change once.
	logging.Disable()
	from, err := openSource(o.URL, o.Connections)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &Client{minReplicas: o.MinReplicas}
	if c.isCluster = from.Nodes != nil; c.isCluster {
		c.place = newNodes(from, log)
	} else {
		c.place = newSingle(from, log)
	}
	return c, nil
}

// CheckURL returns an error unless url is one that [Open] takes. The error may show the URL.
//
//go:noinline
func CheckURL(url string) error {
	_, err := parseSource(url)
	return err
}

// IsClusterURL reports whether a URL names a Redis Cluster.
//
//go:noinline
func IsClusterURL(url string) bool {
	from, err := parseSource(url)
	return err == nil && from.Nodes != nil
}

// Passwords returns the passwords of Redis and of its sentinels in a URL that [Open] takes; empty
// where there is none.
//
//go:noinline
func Passwords(url string) []string {
	from, err := parseSource(url)
	if err != nil {
		return nil
	}
	return from.Passwords()
}

// Close closes the connections.
func (c *Client) Close() error { return Wrap("close", c.place.close()) }

// Ping returns [bus.ErrUnavailable] unless Redis answers, or some node of a cluster.
func (c *Client) Ping(ctx context.Context) error { return Wrap("ping", c.place.ping(ctx)) }
