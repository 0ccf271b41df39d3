package store

import (
	"cmp"
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Options say how a store keeps the bus's data.
type Options struct {
	// Abreast is how many batches of one subscriber may be delivered at once, at least 1. With 1
	// its batches are delivered in order.
	Abreast int
	// IdempotencyKeys is the most idempotency keys of one client, [bus.DefaultIdempotencyKeys] if 0.
	// Beyond them the oldest go.
	IdempotencyKeys int
	// MaxClientTopics is how many topics one client may own or have named first, MaxTopics how many
	// there may be; 0 is no limit.
	MaxClientTopics, MaxTopics int
	// Origins makes [Delivery].Origins be read.
	Origins bool
	// OnGone, if given, is called for each batch that is dropped as it comes up, because its
	// subscriber is gone. It may be called from several goroutines.
	OnGone func(batch DroppedBatch)
}

// Store reads and writes the bus's state in one partition. It is safe for concurrent use.
type Store struct {
	redis   *rdb.Partition
	keys    Keys
	onGone  func(DroppedBatch)
	abreast int
	origins bool
	// keysPerSlice is the most idempotency keys in a slice of them.
	keysPerSlice int

	maxClientTopics, maxTopics int
}

// New makes a store on a partition.
func New(partition *rdb.Partition, o Options) *Store {
	s := &Store{
		redis: partition, keys: Keys{partition.Namespace()},
		abreast: max(o.Abreast, 1), origins: o.Origins, onGone: o.OnGone,
		maxClientTopics: o.MaxClientTopics, maxTopics: o.MaxTopics,
	}
	s.keysPerSlice = max(cmp.Or(o.IdempotencyKeys, bus.DefaultIdempotencyKeys)/IdempotencySlices, 1)
	if s.onGone == nil {
		s.onGone = func(DroppedBatch) {}
	}
	return s
}

// SteadySince is [rdb.Client.SteadySince].
func (s *Store) SteadySince() time.Time { return s.redis.Client().SteadySince() }

// Ping is [rdb.Client.Ping].
func (s *Store) Ping(ctx context.Context) error { return s.redis.Client().Ping(ctx) }
