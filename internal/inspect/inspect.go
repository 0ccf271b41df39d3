// Package inspect reads the data that operators and clients look at, and that neither a publish nor
// a delivery needs: lists of topics and subscribers, backlogs, a subscriber's attempts and batches,
// counters, and the state of a bus on a cluster.
package inspect

import (
	"embed"
	"errors"

	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// scriptBatchRemove is described in its header.
var scriptBatchRemove = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "batch_remove"))

// Errors that callers branch on.
var (
	// ErrUnknownBatch means that the subscriber has no such batch.
	ErrUnknownBatch = errors.New("there is no such batch")
	// ErrInFlight means that the batch is being delivered.
	ErrInFlight = errors.New("the batch is being delivered")
)

// Inspector reads the data of a store. It hides the parts of an attempt that a client may not see:
// see [ForClient]. It is safe for concurrent use.
type Inspector struct {
	store *store.Store
	redis *rdb.Partition
	keys  layout.Keys
}

// Of returns the inspector of a store.
func Of(st *store.Store) *Inspector {
	p := st.Partition()
	return &Inspector{
		store: st, redis: p, keys: layout.Keys{Namespace: p.Namespace()},
	}
}
