package store

import (
	"cmp"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Options say how a store keeps the bus's data.
type Options struct {
	// IdempotencyKeys is the most idempotency keys of one client, [bus.DefaultIdempotencyKeys] if 0.
	// Beyond them the oldest go.
	IdempotencyKeys int
	// MaxClientTopics is how many topics one client may own or have named first, MaxTopics the maximum
	// for the bus; 0 is no limit.
	MaxClientTopics, MaxTopics int
}

// Store reads and writes the bus's state in one partition. It is safe for concurrent use.
type Store struct {
	redis *rdb.Partition
	keys  layout.Keys
	// keysPerSlice is the most idempotency keys in a slice of them.
	keysPerSlice int
	lanes        laneCache

	maxClientTopics, maxTopics int
}

// New makes a store on a partition.
func New(partition *rdb.Partition, o Options) *Store {
	s := &Store{
		redis: partition, keys: layout.Keys{Namespace: partition.Namespace()},
		maxClientTopics: o.MaxClientTopics, maxTopics: o.MaxTopics,
	}
	s.keysPerSlice = max(cmp.Or(o.IdempotencyKeys, bus.DefaultIdempotencyKeys)/IdempotencySlices, 1)
	return s
}

// TopicLimits returns MaxClientTopics and MaxTopics of [Options].
func (s *Store) TopicLimits() (ofClient, ofBus int) { return s.maxClientTopics, s.maxTopics }

// Partition returns the partition that has the store's data.
func (s *Store) Partition() *rdb.Partition { return s.redis }
