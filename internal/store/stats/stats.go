// Package stats has what operators and clients look at: lists of topics and subscribers, all of
// one subscriber, what waits in the bus, and counters. No publish and no delivery needs it.
package stats

import (
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Stats reads the data of a store, and keeps its counters. It is safe for concurrent use.
type Stats struct {
	store *store.Store
	redis *rdb.Partition
	keys  store.Keys
	jobs  queue.Keys
}

// Of returns the stats of a store.
func Of(st *store.Store) *Stats {
	p := st.Partition()
	return &Stats{
		store: st, redis: p,
		keys: store.Keys{Namespace: p.Namespace()}, jobs: queue.Keys{Namespace: p.Namespace()},
	}
}
