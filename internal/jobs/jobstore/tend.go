package jobstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"routemaster/internal/rdb"
)

// What one step removes at most, so that it does not keep Redis from serving others, and how many
// types one round trip looks after.
const (
	removedPerStep = 200
	typesPerTrip   = 20
)

// tended is what type_tend.lua did: archived jobs removed, and jobs of a type that is being deleted
// that are left.
type tended struct{ removed, open int }

func tendArgs(name string, now time.Time) []any { return []any{name, micros(now), removedPerStep} }

func readTended(r rdb.Result) (t tended, err error) {
	reply, err := r.List()
	if err != nil {
		return t, rdb.Wrap("tend job type", err)
	}
	return tended{int(reply[0].(int64)), int(reply[1].(int64))}, nil
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

// tend takes a step for each of some types. It returns those that need another.
func (s *Store) tend(ctx context.Context, names []string, now time.Time) (more []string, removed int, err error) {
	var calls []rdb.Call
	for _, name := range names {
		calls = append(calls, scriptTypeTend.Call(tendArgs(name, now)...), scriptTypeWake.Call(name, true))
	}
	results := s.redis.RunAll(ctx, calls...)
	for i, name := range names {
		t, stepErr := readTended(results[2*i])
		removed += t.removed
		if t.removed >= removedPerStep || t.open > 0 {
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

// DropArchived removes the oldest archived jobs, a slice of one type's with one status: for when
// Redis is about to be full. It returns how many; 0 means that none is left. It fails with
// [bus.ErrUnavailable].
func (s *Store) DropArchived(ctx context.Context) (int, error) {
	n, err := s.redis.Run(ctx, scriptArchiveDrop, removedPerStep).Int()
	return n, rdb.Wrap("drop archived jobs", err)
}
