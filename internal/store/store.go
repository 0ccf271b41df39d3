package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"routemaster/internal/bus"
)

// Options say which Redis to use, and how.
type Options struct {
	// URL is a redis, rediss or unix URL, or a redis+sentinel or rediss+sentinel one, which names sentinels
	// and their master: redis+sentinel://user:password@host:26379,host:26379/master/0.
	URL string
	// Namespace is the prefix of all keys; it may be empty.
	Namespace string
	// Connections is how many calls may be under way at once, besides one for each [Waiter].
	Connections int
	// Abreast is how many batches of one subscriber may be delivered at once, at least 1. With 1
	// its batches are delivered in order.
	Abreast int
	// MinReplicas is how many replicas must confirm a publication, or another change that a client asked for, before
	// the call succeeds.
	MinReplicas int
	// IdempotencyKeys is the most idempotency keys of one client, [bus.DefaultIdempotencyKeys] if 0. Beyond them the oldest go.
	IdempotencyKeys int
	// MaxClientTopics is how many topics one client may own or have named first, MaxTopics how many there may be; 0
	// is no limit.
	MaxClientTopics, MaxTopics int
	// Origins makes [Delivery].Origins be read.
	Origins bool
	// OnLink, if given, is called when Redis stops answering, with the reason, and with
	// nil when it answers again. It may be called from several goroutines.
	OnLink func(err error)
	// OnRefusal, if given, is called when Redis, though there, refuses a call because it is full or
	// read-only: the first time, and when that comes again after a minute.
	OnRefusal func(err error)
	// OnGone, if given, is called for each batch that is dropped as it comes up, because its subscriber is gone. It may
	// be called from several goroutines.
	OnGone func(batch DroppedBatch)
}

// Store reads and writes the bus's state in one Redis. It is safe for concurrent use.
type Store struct {
	redis       *redis.Client
	source      source
	keys        keys
	link        *link
	onGone      func(DroppedBatch)
	abreast     int
	minReplicas int
	origins     bool
	// keysPerSlice is the most idempotency keys in a slice of them.
	keysPerSlice int

	maxClientTopics, maxTopics int
}

// Open prepares a store. It does not connect yet, so the error is about the options alone.
func Open(o Options) (*Store, error) {
	// The library would report every failed try by itself; OnLink tells each change once.
	logging.Disable()
	source, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	source.configure(o.Connections)
	s := &Store{
		source: source, keys: keys{o.Namespace}, link: &link{onChange: o.OnLink, onRefusal: o.OnRefusal},
		abreast: max(o.Abreast, 1), minReplicas: o.MinReplicas, origins: o.Origins, onGone: o.OnGone,
		maxClientTopics: o.MaxClientTopics, maxTopics: o.MaxTopics,
	}
	s.keysPerSlice = max(cmp.Or(o.IdempotencyKeys, bus.DefaultIdempotencyKeys)/IdempotencySlices, 1)
	if s.onGone == nil {
		s.onGone = func(DroppedBatch) {}
	}
	s.link.lastTrouble.Store(time.Now().UnixMilli())
	s.redis = source.connect()
	s.redis.AddHook(s.link)
	return s, nil
}

// Close ends the connections.
func (s *Store) Close() error { return wrap("close", s.redis.Close()) }

// SteadySince is since when no call has found Redis away, at the earliest since the store was opened.
func (s *Store) SteadySince() time.Time { return time.UnixMilli(s.link.lastTrouble.Load()) }

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

// pipelinedReads is pipelined for reads that do not depend on each other: the answer to one is missing where something else
// has put what is not of its type.
func (s *Store) pipelinedReads(ctx context.Context, what string, commands func(redis.Pipeliner)) error {
	err := s.pipelined(ctx, what, commands)
	if judge(err) == answered {
		return nil
	}
	return err
}

// link watches the result of every command and tells when Redis goes away and comes back.
type link struct {
	onChange, onRefusal func(err error)
	down                atomic.Bool
	// All in ms since the Unix epoch.
	lastRefusal, backAt, lastTrouble atomic.Int64
}

// refusalOver is how long Redis must not have refused anything for a refusal to be news.
const refusalOver = time.Minute

// backFor is how long after its return a failure is not news: the library goes on to hand out errors that it remembers.
const backFor = 2 * time.Second

func (l *link) saw(err error) {
	now := time.Now().UnixMilli()
	switch judge(err) {
	case answered:
		if l.down.CompareAndSwap(true, false) && l.onChange != nil {
			l.backAt.Store(now)
			l.onChange(nil)
		}
	case away:
		l.lastTrouble.Store(now)
		if now-l.backAt.Load() > backFor.Milliseconds() && l.down.CompareAndSwap(false, true) && l.onChange != nil {
			l.onChange(err)
		}
	case refused:
		if last := l.lastRefusal.Swap(now); now-last > refusalOver.Milliseconds() && l.onRefusal != nil {
			l.onRefusal(err)
		}
	case silent:
	}
}

// DialHook is part of [redis.Hook]. Sentinels that do not know the master answer nil, which must not be taken for
// the answer of a call.
func (l *link) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		if errors.Is(err, redis.Nil) {
			err = errUnknownMaster
		}
		return conn, err
	}
}

var errUnknownMaster = errors.New("the sentinels that answer know no master of that name")

// sawIn is saw, except that a call which we gave up, because its own time was over, says nothing.
func (l *link) sawIn(ctx context.Context, err error) {
	if deadline, ok := ctx.Deadline(); err != nil && ok && !time.Now().Before(deadline) {
		return
	}
	l.saw(err)
}

// ProcessHook is part of [redis.Hook].
func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		l.sawIn(ctx, err)
		return err
	}
}

// ProcessPipelineHook is part of [redis.Hook].
func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		l.sawIn(ctx, err)
		return err
	}
}
