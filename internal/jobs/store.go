package jobs

import (
	"embed"
	"fmt"
	"slices"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

//go:embed lua
var luaFiles embed.FS

// Charges to the account of a type's owner, in bytes of Redis: for a job without its data, and for
// a type without the data of its schedule. Data that jobs share is charged once. A queued job is in
// four keys besides its own, an archived one takes a little less; a test compares these with
// Redis's own figures. A removed job that was to be tried once is charged for a day, for its key.
const (
	JobBytes     = 900
	TypeBytes    = 600
	RemovedBytes = 200
)

// library is the jobs' addition to the queue's scripts, and more.
var library = append(slices.Clone(account.Library),
	fmt.Sprintf("local JOB_BYTES, TYPE_BYTES, REMOVED_BYTES = %d, %d, %d\n", JobBytes, TypeBytes, RemovedBytes), lua("lib/keys", "lib/types", "lib/steps"))

// kindLibrary is the library of the kind of entries.
var kindLibrary = append(slices.Clone(library), lua("lib/kind"))

// The scripts. Each file's header documents its arguments, result and keys.
var (
	scriptTypePut         = newScript("type_put")
	scriptTypeDelete      = newScript("type_delete")
	scriptTypeCounts      = newScript("type_counts")
	scriptTypeWake        = newScript("type_wake")
	scriptTypeTend        = newScript("type_tend")
	scriptArchiveDrop     = newScript("archive_drop")
	scriptJobShow         = newScript("job_show")
	scriptJobEnqueue      = newScript("job_enqueue")
	scriptJobReport       = newScript("job_report")
	scriptJobExtend       = newScript("job_extend")
	scriptJobReplay       = newScript("job_replay")
	scriptJobCancel       = newScript("job_cancel")
	scriptJobFetch        = newScript("job_fetch")
	scriptJobReturn       = newScript("job_return")
	scriptJobConfirm      = newScript("job_confirm")
	scriptScheduleEnqueue = newScript("schedule_enqueue")
)

func newScript(name string) *rdb.Script {
	return rdb.NewScript(slices.Concat(queue.Library, library), lua(name))
}

func lua(names ...string) string { return rdb.ReadLua(luaFiles, names...) }

// Store is the jobs of one partition, in Redis: types, jobs and their archive, and every step that
// changes them, each one script. It is safe for concurrent use.
//
// A job's entry is in the queue `jobs`; a wide lane of that queue bounds how many jobs of a type
// are in progress. The record of a job holds its state, wherever its entry is. So a step that ends
// or moves a job need not find an entry that has just come up: the worker that takes the entry next
// reads the record.
type Store struct {
	redis *rdb.Partition
	// group runs clients' steps on single jobs, many of them at once.
	group *rdb.Group
	keys  layout.Keys
	queue *queue.Queue
	// archives are for [Store.DropArchived].
	archives *archives
	// client is the caller, empty for root and for the bus itself: see [Store.For].
	client bus.ClientName
}

// NewStore returns the jobs of a partition.
func NewStore(p *rdb.Partition) *Store {
	return &Store{redis: p, group: p.NewGroup(), keys: layout.Keys{Namespace: p.Namespace()}, queue: queue.New(p, kind{}), archives: new(archives)}
}

// For returns the store for requests of a client; the empty name is root's. Enqueuing, fetching,
// reporting, extending, cancelling or replaying jobs of a type that is for other clients fails with
// [ErrNotClient], and changes nothing.
func (s *Store) For(client bus.ClientName) *Store {
	own := *s
	own.client = client
	return &own
}

// Queue is the queue of the jobs' entries, [bus.QueueJobs]. The payload of a task is a [*Run], the
// detail of its result an [Outcome], and a discarded entry an [Ended].
func (s *Store) Queue() *queue.Queue { return s.queue }

// refusals are the scripts' words for why they changed nothing.
var refusals = map[string]error{
	"unknown type":    ErrUnknownType,
	"exists":          ErrTypeExists,
	"too many":        ErrTooManyTypes,
	"client has many": ErrTooManyClientTypes,
	"has jobs":        ErrTypeHasJobs,
	"unknown":         ErrUnknownJob,
	"archived":        ErrArchived,
	"removed":         ErrRemoved,
	"other type":      ErrOtherType,
	"queued":          ErrQueued,
	"stale":           ErrStaleAttempt,
	"reported":        ErrReported,
	"cancelled":       ErrCancelled,
	"not in progress": ErrNotInProgress,
	"not client":      ErrNotClient,
	"not pull":        ErrNotPull,
	"too large":       ErrTooLarge,
	"never runs":      ErrNeverRuns,
	"changed":         errChanged,
}

// replied returns the results of a script. If the script changed nothing, it returns the reason as
// the error, with any further values.
func replied(what string, c rdb.Change) (rest []any, err error) {
	if full := account.Refusal(c); full != nil {
		return nil, full
	}
	err = c.Refusal(what, refusals)
	if err == nil {
		return c.Results, nil
	}
	if _, known := refusals[c.Text(0)]; !known {
		return nil, err
	}
	return c.Results[1:], err
}

// micros is a time for a script, in µs since the Unix epoch; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// toMicros is a time as it is read back after it was stored.
func toMicros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// fromMicros is the time of a text that a script returned: zero for none, and for 0.
func fromMicros(value any) time.Time {
	us := rdb.Integer(rdb.Text(value), 0)
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
