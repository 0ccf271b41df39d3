// Package migrate moves the Ruby original's data in Redis to this program's layout, or back. The
// two differ in one thing: a batch's list is at batch:{uid} here and at batches:{uid} there. All
// references to a batch are the same.
//
// The bus may run meanwhile, of either kind: each batch is moved in one atomic step, see
// lua/batch.lua. A run goes over all keys a slice at a time. It can be stopped anywhere and
// repeated.
package migrate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// Options configure a run.
type Options struct {
	// Apply is false for a dry run, which writes nothing.
	Apply bool
	// Back moves batches to where the Ruby original has them.
	Back bool
	// Unreadable also moves batches with events that the other side cannot read.
	Unreadable bool
	// Report is called for each batch, or kind of key, that is not moved.
	Report func(Unmoved)
	// Progress, if given, is called after each slice of the keys.
	Progress func(Result)
}

// Unmoved is something that is not moved. It shows no token.
type Unmoved struct {
	Key, Reason string
	// Later is true when nothing is wrong with it: a later run will move it.
	Later bool
}

// Result counts the changes that were made, or would be.
type Result struct {
	// Batches were moved, with Events in them.
	Batches int `json:"batches"`
	Events  int `json:"events"`
	// Completed batches were in their place, and got a job.
	Completed int `json:"completed"`
	// Renamed counters had a token in their name; of the removed gauges all were 0.
	Renamed int `json:"renamed_counters"`
	Removed int `json:"removed_gauges"`
	// Later and Refused were not moved.
	Later   int `json:"later"`
	Refused int `json:"refused"`
}

// NothingLeft reports whether there was nothing to be done, now or later.
func (r Result) NothingLeft() bool { return r == Result{} }

// Run moves all batches of a partition, except batches that are being delivered. Towards this
// program's layout it also replaces clients' tokens in the counters by their names, and removes
// gauges that are 0. It fails with [bus.ErrUnavailable], or when this Redis cannot be the bus's.
func Run(ctx context.Context, partition *rdb.Partition, o Options) (Result, error) {
	if o.Progress == nil {
		o.Progress = func(Result) {}
	}
	r := &run{
		Options: o, redis: partition, keys: layout.Keys{Namespace: partition.Namespace()},
		older: map[string]int{},
	}
	steps := []func(context.Context) error{
		r.redis.RefuseClusterNode, r.requireTypes, r.requireNoRotation, r.requireNoOptions, r.requireNoHistory, r.announce, r.readHolders, r.moveBatches,
	}
	if !r.Back {
		steps = append(steps, r.renameCounters, r.removeGauges)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r.result, err
		}
	}
	r.reportOlder()
	return r.result, nil
}

// run is one run of a migration.
type run struct {
	Options
	redis *rdb.Partition
	keys  layout.Keys
	// holders are the workers that have a list of pending jobs.
	holders []any
	// older counts keys of the original's older layouts, by their beginning.
	older  map[string]int
	result Result
}

// announce makes the workers look for the original's additions to this program's batches, for a
// day.
func (r *run) announce(ctx context.Context) error {
	if !r.Apply {
		return nil
	}
	return rdb.Wrap("migrate", r.redis.Run(ctx, scriptAnnounce).Err())
}

// requireTypes fails unless the keys that all batches share are of their types.
func (r *run) requireTypes(ctx context.Context) error {
	k := r.keys
	want := map[string]rdb.Kind{
		k.Topics(): rdb.Set, k.Subscribers(): rdb.Set, k.Tokens(): rdb.Hash, k.Rotations(): rdb.Hash,
		k.BatchesIndex(): rdb.SortedSet, k.BatchGauge(): rdb.Hash, k.EventGauge(): rdb.Hash,
		k.Counters(): rdb.Hash, r.keys.Workers(): rdb.Hash,
	}
	for _, q := range bus.Queues {
		want[r.keys.JobsIndex(q)], want[r.keys.PendingIndex(q)] = rdb.Set, rdb.Set
		want[r.keys.Scheduled(q)], want[r.keys.Instant(q)] = rdb.SortedSet, rdb.List
	}
	types := map[string]rdb.Reply[string]{}
	err := r.redis.Pipelined(ctx, "types", func(pipe rdb.Commands) {
		for key := range want {
			types[key] = pipe.Type(ctx, key)
		}
	})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if is := types[key].Val(); is != "none" && is != string(want[key]) {
			return fmt.Errorf("%s is a %s, must be a %s: this is not the bus's Redis, or not its namespace",
				key, is, want[key])
		}
	}
	return nil
}

// requireNoRotation fails on the way back while a client's token is being changed. The original
// would drop batches that still have the old token, because it would not know their subscriber.
func (r *run) requireNoRotation(ctx context.Context) error {
	if !r.Back {
		return nil
	}
	rotations, err := r.redis.HGetAll(ctx, r.keys.Rotations()).Result()
	if err != nil || len(rotations) == 0 {
		return rdb.Wrap("list rotations", err)
	}
	names, err := r.names(ctx)
	if err != nil {
		return err
	}
	for old, token := range rotations {
		// Without either token there is no client left, and so no batch.
		if name := cmp.Or(names[token], names[old]); name != "" {
			return fmt.Errorf("a token of %s is being changed, which the original knows nothing of: "+
				"finish that first, with %s", name, bus.Command("token rotate", name))
		}
	}
	return nil
}

// names are the clients' names, by token.
func (r *run) names(ctx context.Context) (map[string]string, error) {
	names, err := r.redis.HGetAll(ctx, r.keys.Tokens()).Result()
	return names, rdb.Wrap("list tokens", err)
}

// readHolders finds the workers of the original that no index lists.
func (r *run) readHolders(ctx context.Context) error {
	pending := r.keys.Pending(bus.QueueMain, "")
	return r.redis.EachKey(ctx, pending+"*", func(page []string) error {
		for _, key := range page {
			if worker := strings.TrimPrefix(key, pending); worker != "" && bus.IsURLSafe(worker) {
				r.holders = append(r.holders, worker)
			}
		}
		return nil
	})
}

func (r *run) report(key, reason string, later bool) {
	if later {
		r.result.Later++
	} else {
		r.result.Refused++
	}
	r.Report(Unmoved{strings.TrimPrefix(key, r.keys.Namespace), reason, later})
}

// olderKeys are keys, or prefixes of keys, of the original's older versions, which neither its last
// version nor this program reads.
var olderKeys = []string{
	"queue:new:", "queue:pending:", "queue:data:", "subscription:", "subscriptions", "api_keys",
}

func (r *run) countOlder(key string) {
	for _, older := range olderKeys {
		if key == older || strings.HasSuffix(older, ":") && strings.HasPrefix(key, older) {
			r.older[older]++
		}
	}
}

func (r *run) reportOlder() {
	for _, older := range slices.Sorted(maps.Keys(r.older)) {
		r.report(r.keys.Namespace+older, fmt.Sprintf(
			"%d keys of an older version of the original, which its last version does not read either",
			r.older[older]), false)
	}
}
