package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Migration says what [Store.Migrate] does.
type Migration struct {
	// Apply is false for a dry run, which writes nothing.
	Apply bool
	// Back moves batches to where the Ruby original has them.
	Back bool
	// Unreadable also moves batches with events that the other side cannot read.
	Unreadable bool
	// Tell is called for each batch, or kind of key, that is not moved.
	Tell func(Unmoved)
	// Progress, if given, is called now and then.
	Progress func(Migrated)
}

// Unmoved is something that is not moved. It shows no token.
type Unmoved struct {
	Key, Reason string
	// Later is true when nothing is wrong with it: a later run will move it.
	Later bool
}

// Migrated counts what was done, or would be.
type Migrated struct {
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

// Done reports whether there was nothing to be done, now or later.
func (m Migrated) Done() bool { return m == Migrated{} }

// Migrate moves batches from where the Ruby original has them to where this program has them, or back, a slice at a
// time. The bus may run meanwhile, of either kind: each batch is moved in one atomic step, which also sees that it
// has its one job. Batches that are being delivered are left for a later run. It can be stopped by its context and run again.
//
// On the way there it also puts clients' names in the place of their tokens in the counters, and removes gauges that are 0.
// It fails with [bus.ErrUnavailable], or when this Redis cannot be the bus's.
func (s *Store) Migrate(ctx context.Context, m Migration) (Migrated, error) {
	if m.Progress == nil {
		m.Progress = func(Migrated) {}
	}
	run := &migrationRun{Migration: m, store: s, keys: s.keys, layout: s.keys.layout(), older: map[string]int{}}
	for _, step := range []func(context.Context) error{
		s.refuseCluster, run.requireTypes, run.requireNoRotation, run.readHolders, run.moveBatches, run.renameCounters, run.removeGauges,
	} {
		if err := step(ctx); err != nil {
			return run.done, err
		}
	}
	run.tellOlder()
	return run.done, nil
}

// migrationRun is one run of a migration.
type migrationRun struct {
	Migration
	store  *Store
	keys   Keys
	layout layout
	// holders are the workers that have a list of pending jobs.
	holders []any
	// older counts keys of the original's older layouts, by their beginning.
	older map[string]int
	done  Migrated
}

// What the original's older versions kept, which neither its last version nor this program reads.
var olderKeys = []string{"queue:new:", "queue:pending:", "queue:data:", "subscription:", "subscriptions", "api_keys"}

// unmovable says why a script has left a batch; the others are what was done.
var unmovable = map[string]string{
	"busy":      "is being delivered: run this again when it has been",
	"type":      "is not a list, so it is no batch",
	"taken":     "cannot be moved: there is something else, which is no list, in its place",
	"both":      "cannot be moved: there is another batch in its place",
	"ownerless": "has events, but does not say whose",
	"foreign":   "is not as the bus writes it, or the bus does not know whose it is",
	"empty":     "has no event",
	"broken":    "cannot be moved: something that belongs to it is not of its type",
}

// requireTypes fails unless the keys that everything depends on are what the layout says.
func (r *migrationRun) requireTypes(ctx context.Context) error {
	types := map[string]rdb.Reply[string]{}
	err := r.store.redis.Pipelined(ctx, "migrate", func(pipe rdb.Commands) {
		for key := range r.layout.singles {
			types[key] = pipe.Type(ctx, key)
		}
	})
	if err != nil {
		return err
	}
	for _, key := range sorted(types) {
		if is := types[key].Val(); is != "none" && is != string(r.layout.singles[key]) {
			return fmt.Errorf("%s is a %s, must be a %s: this is not the bus's Redis, or not its namespace", key, is, r.layout.singles[key])
		}
	}
	return nil
}

// requireNoRotation fails on the way back while a client's token is being changed: batches that still begin with the old one
// would be nobody's to the original, which drops them.
func (r *migrationRun) requireNoRotation(ctx context.Context) error {
	if !r.Back {
		return nil
	}
	rotations, err := r.store.redis.HGetAll(ctx, r.keys.Rotations()).Result()
	if err != nil || len(rotations) == 0 {
		return rdb.Wrap("migrate", err)
	}
	names, err := r.store.Tokens(ctx)
	if err != nil {
		return err
	}
	for old, token := range rotations {
		// Where neither is left there is nobody whose batches these could be.
		if name := cmp.Or(names[bus.Token(token)], names[bus.Token(old)]); name != "" {
			return fmt.Errorf("a token of %s is being changed, which the original knows nothing of: finish that first, with rtm token rotate OLD", name)
		}
	}
	return nil
}

// readHolders finds the workers of the original that no index lists.
func (r *migrationRun) readHolders(ctx context.Context) error {
	pending := r.keys.Pending(bus.QueueMain, "")
	return rdb.Wrap("migrate", r.store.redis.EachKey(ctx, pending+"*", func(page []string) error {
		for _, key := range page {
			if f, _ := r.layout.family(r.keys, key); f.of == pendingKeys {
				r.holders = append(r.holders, strings.TrimPrefix(key, pending))
			}
		}
		return nil
	}))
}

func (r *migrationRun) moveBatches(ctx context.Context) error {
	return rdb.Wrap("migrate", r.store.redis.EachKey(ctx, r.keys.Namespace+"*", func(page []string) error {
		var there, here []string
		for _, key := range page {
			switch f, bid := r.layout.family(r.keys, key); f.of {
			case originalKeys:
				there = append(there, bid)
			case batchKeys:
				here = append(here, bid)
			}
			r.countOlder(strings.TrimPrefix(key, r.keys.Namespace))
		}
		if r.Back {
			there, here = here, there
		}
		if err := errors.Join(r.move(ctx, there), r.complete(ctx, here)); err != nil {
			return err
		}
		r.Progress(r.done)
		return nil
	}))
}

// source is the key of a batch that is to be moved.
func (r *migrationRun) source(bid string) string {
	if r.Back {
		return r.keys.Batch(bus.BatchID(bid))
	}
	return r.keys.Original(bus.BatchID(bid))
}

// move moves batches whose events can be read.
func (r *migrationRun) move(ctx context.Context, bids []string) error {
	lengths := make([]rdb.Reply[int64], len(bids))
	err := r.store.redis.Reads(ctx, "migrate", func(pipe rdb.Commands) {
		for i, bid := range bids {
			lengths[i] = pipe.LLen(ctx, r.source(bid))
		}
	})
	if err != nil {
		return err
	}
	var some []string
	events := map[string]int{}
	total := 0
	for i, bid := range bids {
		n := int(lengths[i].Val())
		if len(some) > 0 && total+n > rdb.ElementsPerTrip || len(some) == scriptsPerTrip {
			if err := r.moveSome(ctx, some, events); err != nil {
				return err
			}
			some, total = some[:0], 0
		}
		some, total = append(some, bid), total+n
		events[bid] = max(0, n-batchHeader)
	}
	return r.moveSome(ctx, some, events)
}

// moveSome moves batches that are to be read at once. Events has how many each has.
func (r *migrationRun) moveSome(ctx context.Context, bids []string, events map[string]int) error {
	var readable []string
	if r.Unreadable {
		readable = bids
	} else {
		var err error
		if readable, err = r.readable(ctx, bids); err != nil {
			return err
		}
	}
	return r.runScript(ctx, readable, func(bid, code string) {
		switch code {
		case "":
		case "move", "merge":
			r.done.Batches++
			r.done.Events += events[bid]
			if code == "merge" { // it has no header
				r.done.Events += batchHeader
			}
		case "complete": // moved by somebody else just now
			r.done.Completed++
		default:
			r.leave(r.source(bid), unmovable[code], code == "busy")
		}
	})
}

// readable returns the batches all of whose events can be read, and leaves the others. What is no list is the script's to judge.
func (r *migrationRun) readable(ctx context.Context, bids []string) ([]string, error) {
	pages := make([]rdb.Reply[[]string], len(bids))
	err := r.store.redis.Reads(ctx, "migrate", func(pipe rdb.Commands) {
		for i, bid := range bids {
			pages[i] = pipe.LRange(ctx, r.source(bid), 0, rdb.ElementsPerTrip-1)
		}
	})
	if err != nil {
		return nil, err
	}
	var readable []string
	for i, bid := range bids {
		wrong, err := r.firstUnreadable(ctx, bid, pages[i].Val())
		if err != nil {
			return nil, err
		}
		if wrong == "" {
			readable = append(readable, bid)
		} else {
			r.leave(r.source(bid), wrong, false)
		}
	}
	return readable, nil
}

// firstUnreadable says which event of a batch cannot be read by the other side, and why. Page is the beginning of its list.
func (r *migrationRun) firstUnreadable(ctx context.Context, bid string, page []string) (string, error) {
	check := wire.Check
	if r.Back {
		check = wire.CheckForOriginal
	}
	at := 0
	if len(page) > 0 && !strings.HasPrefix(page[0], packedEvent) { // it has its header
		at = min(batchHeader, len(page))
	}
	for from := int64(0); ; {
		for ; at < len(page); at++ {
			if err := check(wire.PackedEvent(page[at])); err != nil {
				return fmt.Sprintf("its element %d, counted from 0, cannot be read: %v", from+int64(at), err), nil
			}
		}
		if len(page) < rdb.ElementsPerTrip {
			return "", nil
		}
		from, at = from+rdb.ElementsPerTrip, 0
		var err error
		page, err = r.store.redis.LRange(ctx, r.source(bid), from, from+rdb.ElementsPerTrip-1).Result()
		if err != nil {
			return "", rdb.Wrap("migrate", err)
		}
	}
}

// packedEvent is how every packed event begins.
const packedEvent = "\x92\xa1e"

// complete gives batches that are in their place the jobs that they have lost.
func (r *migrationRun) complete(ctx context.Context, bids []string) error {
	listed := make([]rdb.Reply[bool], len(bids))
	err := r.store.redis.Pipelined(ctx, "migrate", func(pipe rdb.Commands) {
		for i, bid := range bids {
			listed[i] = pipe.SIsMember(ctx, r.keys.JobsIndex(bus.QueueMain), jobOf(bid))
		}
	})
	if err != nil {
		return err
	}
	var lacking []string
	for i, bid := range bids {
		if !listed[i].Val() {
			lacking = append(lacking, bid)
		}
	}
	for some := range slices.Chunk(lacking, scriptsPerTrip) {
		err := r.runScript(ctx, some, func(_, code string) {
			if code == "complete" {
				r.done.Completed++
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runScript has the script move batches, or look at them.
func (r *migrationRun) runScript(ctx context.Context, bids []string, each func(bid, code string)) error {
	if len(bids) == 0 {
		return nil
	}
	now := time.Now()
	args := append([]any{
		r.Apply, r.Back, now.Add(-bus.DeadAfter).UnixMilli(), now.Add(bus.MaxTimeout).UnixMilli(), r.store.abreast, len(r.holders),
	}, r.holders...)
	for _, bid := range bids {
		args = append(args, bid)
	}
	codes, err := r.store.redis.Run(ctx, scriptMigrateBatch, args...).Strings()
	for i, code := range codes {
		each(bids[i], code)
	}
	return rdb.Wrap("migrate", err)
}

func (r *migrationRun) leave(key, reason string, later bool) {
	if later {
		r.done.Later++
	} else {
		r.done.Refused++
	}
	r.Tell(Unmoved{strings.TrimPrefix(key, r.keys.Namespace), reason, later})
}

func (r *migrationRun) countOlder(key string) {
	for _, older := range olderKeys {
		if key == older || strings.HasSuffix(older, ":") && strings.HasPrefix(key, older) {
			r.older[older]++
		}
	}
}

// tellOlder tells of what is of an older layout.
func (r *migrationRun) tellOlder() {
	for _, older := range sorted(r.older) {
		r.leave(r.keys.Namespace+older, fmt.Sprintf("%d keys of an older version of the original, which its last version does not read either", r.older[older]), false)
	}
}
