// Package inspect shows a client what the bus knows of its deliveries: the last attempts, with what
// each came to, and the batches that are queued. It also removes a batch on request. What a client
// may not see of an attempt stays hidden: see [ForClient].
package inspect

import (
	"embed"
	"errors"

	"routemaster/internal/queue"
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

// Inspector looks at the deliveries to all subscribers of a store. It is safe for concurrent use.
type Inspector struct {
	redis *rdb.Partition
	keys  store.Keys
	jobs  queue.Keys
}

// New makes an inspector of a store.
func New(st *store.Store) *Inspector {
	namespace := st.Partition().Namespace()
	return &Inspector{st.Partition(), store.Keys{Namespace: namespace}, queue.Keys{Namespace: namespace}}
}

// Page says which part of a list is wanted.
type Page struct {
	// After is what was returned with the part before; empty for the first.
	After string
	// Limit is how many are wanted at most, at least 1.
	Limit int
}
