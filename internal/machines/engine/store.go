package engine

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

//go:embed lua
var luaFiles embed.FS

// Charges to the account of the client that has made a label, in bytes of Redis: for the label
// without its metadata, and for every ten moves that its history has, or fewer. A test compares the
// first with Redis's own figure. A deleted label is charged for all but its metadata, until Redis
// removes the rest of it by itself.
const (
	LabelBytes   = 600
	HistoryBytes = 1500
)

// movesCharged is how many moves are charged at once.
const movesCharged = 10

// SizeOf returns the bytes that the account is charged for a label.
func SizeOf(metadata int64, moves int64) int64 {
	return LabelBytes + metadata + HistoryBytes*((min(moves, machines.Kept)+movesCharged-1)/movesCharged)
}

// library is the labels' addition to the queue's scripts, and more.
var library = append(slices.Clone(account.Library),
	fmt.Sprintf("local LABEL_BYTES = %d\nlocal HISTORY_BYTES = %d\nlocal MOVES_CHARGED = %d\n", LabelBytes, HistoryBytes, movesCharged),
	lua("lib/keys", "lib/entries", "lib/definitions", "lib/labels"))

// kindLibrary is the library of the kind of entries.
var kindLibrary = append(slices.Clone(library), lua("lib/kind"))

// The scripts. Each file's header documents its arguments, result and keys.
var (
	scriptAbandon        = newScript("definitions_abandon")
	scriptLabelShow      = newScript("label_show")
	scriptLabelRests     = newScript("label_rests")
	scriptLabelHops      = newScript("label_hops")
	scriptLabelCreate    = newScript("label_create")
	scriptLabelPatch     = newScript("label_patch")
	scriptLabelDelete    = newScript("label_delete")
	scriptLabelAsk       = newScript("label_ask")
	scriptLabelRetry     = newScript("label_retry")
	scriptOutboxRead     = newScript("outbox_read")
	scriptOutboxUnload   = newScript("outbox_unload")
	scriptDefinitionsPut = newScript("definitions_put")
	scriptPrepare        = newScript("definitions_prepare")
	scriptWalkRead       = newScript("walk_read")
	scriptWalkStep       = newScript("walk_step")
	scriptWalksTend      = newScript("walks_tend")
)

// scriptLibrary is the library of all scripts.
var scriptLibrary = slices.Concat(queue.Library, library, rdb.Library{lua("lib/walks")})

func newScript(name string) *rdb.Script { return rdb.NewScript(scriptLibrary, lua(name)) }

func lua(names ...string) string { return rdb.ReadLua(luaFiles, names...) }

// Store is the machines and labels of one partition, in Redis: definitions, labels, and every step
// that changes them, each one script. It is safe for concurrent use.
//
// A label's entry is in the queue `machines` while a worker has work to do for it, now or later; a
// label that waits for its clients has none. A worker's result for a label is the result of its
// entry: so a move, its history and its consequences are one step with the end of the task.
type Store struct {
	// Trace returns the traceparent of the request that changes a label, or "". It may be nil, and is
	// set before the store is used.
	Trace func(context.Context) string

	redis *rdb.Partition
	// group runs clients' steps on single labels, many of them at once.
	group *rdb.Group
	keys  layout.Keys
	queue *queue.Queue
	// latest are the definitions that were read last.
	latest *definitionCache
	// turns serializes the changes of a label, and rests lets requests wait until one rests.
	turns *turns
	rests *watches
	// client is the caller, empty for root and for the bus itself: see [Store.For].
	client bus.ClientName
}

// labelID names a label.
type labelID struct {
	machine machines.Name
	name    machines.LabelName
}

// NewStore returns the machines and labels of a partition.
func NewStore(p *rdb.Partition) *Store { return NewStores(rdb.Partitions{p})[0] }

// NewStores returns the machines and labels of each partition of a bus, by number. The definitions
// that they have in common are in memory once.
func NewStores(partitions rdb.Partitions) []*Store {
	all, read := make([]*Store, len(partitions)), &readDefinitions{}
	for i, p := range partitions {
		all[i] = &Store{redis: p, group: p.NewGroup(), keys: layout.Keys{Namespace: p.Namespace()}, queue: queue.New(p, kind{})}
		all[i].latest = &definitionCache{all: read}
		all[i].turns, all[i].rests = newTurns(all[i].changeAll), newWatches(all[i].isAtRest)
		read.caches = append(read.caches, all[i].latest)
	}
	return all
}

// For returns the store for requests of a client; the empty name is root's. Labels that the client
// makes are charged to its account. Making, changing or deleting labels of a machine that is for
// other clients fails with [machines.ErrNotClient], and changes nothing.
func (s *Store) For(client bus.ClientName) *Store {
	own := *s
	own.client = client
	return &own
}

// Queue is the queue of the labels' entries, [bus.QueueMachines]. A task of one has a [*Visit] as
// its payload, and a [Result] as the detail of its result.
func (s *Store) Queue() *queue.Queue { return s.queue }

func (s *Store) traceparent(ctx context.Context) string {
	if s.Trace == nil {
		return ""
	}
	return s.Trace(ctx)
}

// refusals are the scripts' words for why they changed nothing.
var refusals = map[string]error{
	"unknown label": machines.ErrUnknownLabel,
	"deleted":       machines.ErrLabelDeleted,
	"exists":        machines.ErrLabelExists,
	"not errored":   machines.ErrNotErrored,
	"changed":       machines.ErrChanged,
	"closing":       errClosing,
}

// replied returns why a script changed nothing, if so.
func replied(what string, c rdb.Change) error {
	if full := account.Refusal(c); full != nil {
		return full
	}
	return c.Refusal(what, refusals)
}

// fromMillis is the time of a text in ms since the Unix epoch; zero for none.
func fromMillis(value any) time.Time {
	ms := rdb.Integer(rdb.Text(value), 0)
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
