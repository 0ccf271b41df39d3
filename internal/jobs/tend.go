package jobs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"routemaster/internal/rdb"
)

// Limits of how many jobs one step cancels and removes, so that it does not keep Redis from serving
// others, and of how many types one round trip looks after.
const (
	removedPerStep = 100
	typesPerTrip   = 20
)

// tended is the result of type_tend.lua: archived jobs removed, jobs of a type that is being
// deleted that are left, and whether it did as much as it may in one step.
type tended struct {
	removed, open int
	isFull        bool
}

func tendArgs(name string, now time.Time) []any { return []any{name, micros(now), removedPerStep} }

func readTended(r rdb.Result) (t tended, err error) {
	reply, err := r.List()
	if err != nil {
		return t, rdb.Wrap("tend job type", err)
	}
	return tended{int(reply[0].(int64)), int(reply[1].(int64)), reply[2].(int64) == 1}, nil
}

// Purge removes archived jobs that were kept as long as their type says, goes on with deletions
// of types, and wakes jobs that wait although they have their turn. It takes steps while goesOn
// says so, and returns how many jobs it removed, also with an error. It fails with
// [bus.ErrUnavailable].
func (s *Store) Purge(ctx context.Context, now time.Time, goesOn func() bool) (removed int, err error) {
	names, err := s.TypeNames(ctx)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(names, typesPerTrip) {
		for len(some) > 0 && goesOn() {
			var done int
			var stepErr error
			some, done, stepErr = s.tend(ctx, some, now)
			removed += done
			err = cmp.Or(err, stepErr) // a damaged type must not keep others from being tended
		}
	}
	return removed, err
}

// tend takes a step for each of some types. It returns the types that need another.
func (s *Store) tend(ctx context.Context, names []string, now time.Time) (more []string, removed int, err error) {
	var calls []rdb.Call
	for _, name := range names {
		calls = append(calls, scriptTypeTend.Call(tendArgs(name, now)...), scriptTypeWake.Call(name, true))
	}
	results := s.redis.RunAll(ctx, calls...)
	for i, name := range names {
		t, stepErr := readTended(results[2*i])
		removed += t.removed
		if t.isFull || t.open > 0 {
			more = append(more, name)
		}
		left, wakeErr := results[2*i+1].Int()
		if left == 1 {
			wakeErr = s.wake(ctx, name, false)
		}
		err = cmp.Or(err, stepErr, rdb.Wrap("wake jobs", wakeErr))
	}
	return more, removed, err
}

// archives are the lists of archived jobs, the one with the oldest head first, as they were read a
// moment ago: while Redis is nearly full the oldest jobs are dropped again and again, and reading
// the lists of all types each time would cost more than the drop. It is safe for concurrent use.
type archives struct {
	sync.Mutex
	heads []archiveHead
	read  time.Time
}

// archiveHead is a list of archived jobs, and when the oldest of them was archived (µs).
type archiveHead struct {
	name   string
	status Status
	oldest int64
}

// archivesTTL is how long the order of the lists is kept.
const archivesTTL = 5 * time.Second

// DropArchived removes the oldest archived jobs, a slice of one type's with one status: for when
// Redis is about to be full. It returns how many; 0 means that none is left. It fails with
// [bus.ErrUnavailable].
func (s *Store) DropArchived(ctx context.Context, now time.Time) (int, error) {
	a := s.archives
	a.Lock()
	defer a.Unlock()
	if time.Since(a.read) > archivesTTL {
		a.heads = nil
	}
	for fresh := false; ; {
		if len(a.heads) == 0 && fresh {
			return 0, nil
		}
		if len(a.heads) == 0 {
			var err error
			if a.heads, err = s.archiveHeads(ctx); err != nil {
				return 0, err
			}
			fresh, a.read = true, time.Now()
			continue
		}
		head := a.heads[0]
		a.heads = a.heads[1:]
		reply, err := s.redis.Run(ctx, scriptArchiveDrop, head.name, string(head.status), removedPerStep, micros(now)).List()
		if err != nil {
			a.heads = nil // to look again
			return 0, rdb.Wrap("drop archived jobs", err)
		}
		if head.oldest = rdb.Integer(rdb.Text(reply[1]), 0); head.oldest > 0 {
			at, _ := slices.BinarySearchFunc(a.heads, head, archiveHead.compare)
			a.heads = slices.Insert(a.heads, at, head)
		}
		if removed := reply[0].(int64); removed > 0 {
			return int(removed), nil
		}
	}
}

func (h archiveHead) compare(to archiveHead) int { return cmp.Compare(h.oldest, to.oldest) }

// archiveHeads returns the lists that have archived jobs, in order.
func (s *Store) archiveHeads(ctx context.Context) (heads []archiveHead, err error) {
	names, err := s.TypeNames(ctx)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(names, listsPerTrip/len(Archived)) {
		var read []rdb.ScoredReply
		err := s.redis.Reads(ctx, "drop archived jobs", func(pipe rdb.Commands) {
			for _, name := range some {
				for _, status := range Archived {
					read = append(read, pipe.ZRangeWithScores(ctx, s.keys.ArchivedJobs(name, string(status)), 0, 0))
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for i, one := range read {
			for _, z := range one.Val() { // one that is no list has no head
				heads = append(heads, archiveHead{some[i/len(Archived)], Archived[i%len(Archived)], int64(z.Score)})
			}
		}
	}
	slices.SortFunc(heads, archiveHead.compare)
	return heads, nil
}
