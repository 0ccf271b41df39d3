package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options say which Redis to use, and how.
type Options struct {
	// URL is a redis, rediss or unix URL.
	URL string
	// Namespace is the prefix of all keys; it may be empty.
	Namespace string
	// Connections is how many calls may be under way at once, besides one for each [Waiter].
	Connections int
	// Abreast is how many batches of one subscriber may be delivered at once, at least 1. With 1
	// its batches are delivered in order.
	Abreast int
	// OnLink, if given, is called when Redis stops answering, with the reason, and with
	// nil when it answers again. It may be called from several goroutines.
	OnLink func(err error)
	// OnRefusal, if given, is called when Redis, though there, refuses a call because it is full or
	// read-only: the first time, and when that comes again after a minute.
	OnRefusal func(err error)
}

// Store reads and writes the bus's state in one Redis. It is safe for concurrent use.
type Store struct {
	redis   *redis.Client
	options redis.Options
	keys    keys
	link    *link
	abreast int
}

// CheckURL returns an error unless url is one that [Open] takes. The error may show the URL.
func CheckURL(url string) error {
	_, err := redis.ParseURL(url)
	return err
}

// dialTimeout bounds how long a call can take to find that Redis is not there.
const dialTimeout = 2 * time.Second

// Open prepares a store. It does not connect yet, so the error is about the options alone.
func Open(o Options) (*Store, error) {
	// The library would report every failed try by itself; OnLink tells each change once.
	logging.Disable()
	options, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	// The library keeps a pool of its own for pipelines, which is how scripts are sent.
	options.PoolSize = max(o.Connections, 1)
	options.PipelinePoolSize = options.PoolSize
	options.DialTimeout = dialTimeout
	options.DialerRetries = 1
	// A call that is sent again when its answer was lost might take effect twice:
	// only the callers know which ones bear that.
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	s := &Store{options: *options, keys: keys{o.Namespace}, link: &link{onChange: o.OnLink, onRefusal: o.OnRefusal}, abreast: max(o.Abreast, 1)}
	s.redis = s.connect(*options)
	return s, nil
}

func (s *Store) connect(options redis.Options) *redis.Client {
	client := redis.NewClient(&options)
	client.AddHook(s.link)
	return client
}

// Close ends the connections.
func (s *Store) Close() error { return wrap("close", s.redis.Close()) }

// Ping returns [bus.ErrUnavailable] unless Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	return wrap("ping", s.redis.Ping(ctx).Err())
}

// pipelined runs plain commands in one round trip.
func (s *Store) pipelined(ctx context.Context, what string, commands func(redis.Pipeliner)) error {
	_, err := s.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		commands(pipe)
		return nil
	})
	return wrap(what, err)
}

// link watches the result of every command and tells when Redis goes away and comes back.
type link struct {
	onChange, onRefusal func(err error)
	down                atomic.Bool
	lastRefusal         atomic.Int64 // ms since the Unix epoch
}

// refusalOver is how long Redis must not have refused anything for a refusal to be news.
const refusalOver = time.Minute

func (l *link) saw(err error) {
	switch judge(err) {
	case answered:
		if l.down.CompareAndSwap(true, false) && l.onChange != nil {
			l.onChange(nil)
		}
	case away:
		if l.down.CompareAndSwap(false, true) && l.onChange != nil {
			l.onChange(err)
		}
	case refused:
		now := time.Now().UnixMilli()
		if last := l.lastRefusal.Swap(now); now-last > refusalOver.Milliseconds() && l.onRefusal != nil {
			l.onRefusal(err)
		}
	case silent:
	}
}

// DialHook is part of [redis.Hook].
func (l *link) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of [redis.Hook].
func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		l.saw(err)
		return err
	}
}

// ProcessPipelineHook is part of [redis.Hook].
func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		l.saw(err)
		return err
	}
}
