package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// unmovable says why the script has left a batch; its other replies say what was done.
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

// batchesPerStep bounds how many batches one run of the script looks at.
const batchesPerStep = 50

func (r *run) moveBatches(ctx context.Context) error {
	return r.redis.EachKey(ctx, r.keys.Namespace+"*", func(page []string) error {
		var there, here []string
		for _, key := range page {
			if id, ok := cutID(key, r.keys.Original("")); ok {
				there = append(there, id)
			} else if id, ok := cutID(key, r.keys.Batch("")); ok {
				here = append(here, id)
			}
			r.countOlder(strings.TrimPrefix(key, r.keys.Namespace))
		}
		if r.Back {
			there, here = here, there
		}
		if err := errors.Join(r.move(ctx, there), r.complete(ctx, here)); err != nil {
			return err
		}
		r.Progress(r.result)
		return nil
	})
}

// cutID returns the UID of a batch whose key begins with a prefix. Other keys that begin so are not
// followed by a UID.
func cutID(key, prefix string) (id string, ok bool) {
	id, ok = strings.CutPrefix(key, prefix)
	return id, ok && bus.IsUID(id)
}

// source is the key of a batch that is to be moved.
func (r *run) source(id string) string {
	if r.Back {
		return r.keys.Batch(bus.BatchID(id))
	}
	return r.keys.Original(bus.BatchID(id))
}

// move moves batches whose events can be read, not many at a time.
func (r *run) move(ctx context.Context, ids []string) error {
	lengths := make([]rdb.Reply[int64], len(ids))
	err := r.redis.Reads(ctx, "lengths", func(pipe rdb.Commands) {
		for i, id := range ids {
			lengths[i] = pipe.LLen(ctx, r.source(id))
		}
	})
	if err != nil {
		return err
	}
	var some []string
	events := map[string]int{}
	total := 0
	for i, id := range ids {
		n := int(lengths[i].Val())
		if len(some) > 0 && total+n > rdb.ElementsPerTrip || len(some) == batchesPerStep {
			if err := r.moveSome(ctx, some, events); err != nil {
				return err
			}
			some, total = some[:0], 0
		}
		some, total = append(some, id), total+n
		events[id] = max(0, n-store.BatchHeader)
	}
	return r.moveSome(ctx, some, events)
}

// moveSome moves batches whose numbers of events are given.
func (r *run) moveSome(ctx context.Context, ids []string, events map[string]int) error {
	if !r.Unreadable {
		var err error
		if ids, err = r.readable(ctx, ids); err != nil {
			return err
		}
	}
	return r.runScript(ctx, ids, func(id, done string) {
		switch done {
		case "":
		case "move", "merge":
			r.result.Batches++
			r.result.Events += events[id]
			if done == "merge" { // it has no header
				r.result.Events += store.BatchHeader
			}
		case "complete": // moved by another process just now
			r.result.Completed++
		default:
			r.report(r.source(id), unmovable[done], done == "busy")
		}
	})
}

// readable returns the batches with only readable events, and reports the others. It also returns
// keys that are not lists: the script refuses those.
func (r *run) readable(ctx context.Context, ids []string) ([]string, error) {
	pages := make([]rdb.Reply[[]string], len(ids))
	err := r.redis.Reads(ctx, "events", func(pipe rdb.Commands) {
		for i, id := range ids {
			pages[i] = pipe.LRange(ctx, r.source(id), 0, rdb.ElementsPerTrip-1)
		}
	})
	if err != nil {
		return nil, err
	}
	var readable []string
	for i, id := range ids {
		wrong, err := r.firstUnreadable(ctx, id, pages[i].Val())
		if err != nil {
			return nil, err
		}
		if wrong == "" {
			readable = append(readable, id)
		} else {
			r.report(r.source(id), wrong, false)
		}
	}
	return readable, nil
}

// packedEvent is the beginning of every packed event: an array of two, "e".
const packedEvent = "\x92\xa1e"

// firstUnreadable says which event of a batch cannot be read by the other side, and why; "" if all
// can be. Page is the beginning of its list.
func (r *run) firstUnreadable(ctx context.Context, id string, page []string) (string, error) {
	check, at := wire.Check, 0
	if r.Back {
		check = wire.CheckForOriginal
	}
	if len(page) > 0 && !strings.HasPrefix(page[0], packedEvent) { // it has its header
		at = min(store.BatchHeader, len(page))
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
		page, err = r.redis.LRange(ctx, r.source(id), from, from+rdb.ElementsPerTrip-1).Result()
		if err != nil {
			return "", rdb.Wrap("read batch", err)
		}
	}
}

// complete gives batches that are in their place the jobs that they have lost.
func (r *run) complete(ctx context.Context, ids []string) error {
	listed := make([]rdb.Reply[bool], len(ids))
	err := r.redis.Pipelined(ctx, "jobs", func(pipe rdb.Commands) {
		for i, id := range ids {
			job := wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{id}})
			listed[i] = pipe.SIsMember(ctx, r.keys.JobsIndex(bus.QueueMain), job)
		}
	})
	if err != nil {
		return err
	}
	var lacking []string
	for i, id := range ids {
		if !listed[i].Val() {
			lacking = append(lacking, id)
		}
	}
	for some := range slices.Chunk(lacking, batchesPerStep) {
		err := r.runScript(ctx, some, func(_, done string) {
			if done == "complete" {
				r.result.Completed++
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runScript has the script move batches, or look at them.
func (r *run) runScript(ctx context.Context, ids []string, each func(id, done string)) error {
	if len(ids) == 0 {
		return nil
	}
	now := time.Now()
	args := append([]any{
		r.Apply, r.Back, now.Add(-bus.DeadAfter).UnixMilli(), now.Add(bus.MaxTimeout).UnixMilli(),
		len(r.holders),
	}, r.holders...)
	for _, id := range ids {
		args = append(args, id)
	}
	words, err := r.redis.Run(ctx, scriptBatch, args...).Strings()
	for i, word := range words {
		each(ids[i], word)
	}
	return rdb.Wrap("move batches", err)
}
