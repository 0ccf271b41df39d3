package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
)

// Each partition stores the definitions that its labels follow, and no single step replaces all of
// them. So the first partition decides which definitions the bus has, and the others follow. Before
// that, every partition must confirm that no label is left in a state which vanishes:
//
//  1. A replacement is prepared in the first partition, then in all others. Each refuses that if
//     labels rest in such a state, and else lets none come to it from then on.
//  2. It is put into the first one, if it is still prepared there. That is the decision.
//  3. The others follow.
//
// A process that dies on the way leaves a preparation. Every worker checks for that now and then,
// and makes the partitions follow. A preparation in the first partition is ended once it is old,
// and cannot be decided after that; the preparations that others still have are ended when the
// first has it no more.

const (
	// maxReplacements is how often a replacement is tried while others are at it, and
	// replacementsPause apart.
	maxReplacements   = 100
	replacementsPause = 10 * time.Millisecond
	// preparationTimeout is how long a preparation may last. It takes some ms.
	preparationTimeout = 10 * time.Second
	// lookTimeout is how long a partition is waited for that is asked which definitions it has, and
	// followTimeout for one that is to follow, or to end a preparation.
	lookTimeout   = 500 * time.Millisecond
	followTimeout = 2 * time.Second
)

// Apply replaces the definitions in all partitions. Applying the same definitions changes nothing.
// Definitions that this version of the program cannot read can be replaced too. Labels in states
// that vanish move as moves says, in addition to earlier moves that are unfinished. Apply returns
// the version of the definitions. It fails with a [bus.Invalid] for definitions that are too long,
// a [machines.LabelsRestError], or [bus.ErrUnavailable], also while a partition is away. In that
// case the definitions may have been replaced.
func (s *Bus) Apply(
	ctx context.Context, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	began := time.Now()
	for range maxReplacements {
		version, err = s.tryApply(ctx, next, moves, now.Add(time.Since(began)))
		if !errors.Is(err, machines.ErrChanged) {
			return version, err
		}
		if len(s.all) == 1 {
			continue
		}
		select {
		case <-time.After(replacementsPause):
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", bus.ErrUnavailable, ctx.Err())
		}
	}
	return 0, machines.ErrReplacing
}

func (s *Bus) tryApply(
	ctx context.Context, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	if err := s.Settle(ctx, now); err != nil {
		return 0, err
	}
	current, err := s.all[0].Replaceable(ctx)
	if err != nil {
		return 0, err
	}
	if len(moves) == 0 && current.Version > 0 && bytes.Equal(current.Source, next.Source) {
		return current.Version, nil
	}
	if len(s.all) == 1 {
		return s.all[0].Put(ctx, current, next, moves, now)
	}
	unfinished, err := s.unfinished(ctx, current.Moves)
	if err != nil {
		return 0, err
	}
	r, err := NewReplacement(current, next, moves, unfinished, now)
	if err != nil {
		return 0, err
	}
	return r.Version, s.replace(ctx, r, now)
}

// unfinished returns the earlier moves that still have labels in some partition.
func (s *Bus) unfinished(ctx context.Context, moves []machines.StateMove) ([]machines.StateMove, error) {
	found := make([][]machines.StateMove, len(s.all))
	errs := s.Each(func(i int, st *Store) (err error) {
		found[i], err = st.Unfinished(ctx, moves)
		return err
	})
	all := slices.Concat(found...)
	return slices.DeleteFunc(slices.Clone(moves), func(m machines.StateMove) bool { return !slices.Contains(all, m) }), cmp.Or(errs...)
}

// replace replaces the definitions of several partitions.
func (s *Bus) replace(ctx context.Context, r *Replacement, now time.Time) error {
	preparation := r.Preparation(strconv.FormatInt(now.UnixMilli(), 10) + " " + rand.Text())
	err := s.prepare(ctx, r, preparation)
	if err == nil {
		err = s.all[0].Replace(ctx, r, preparation)
		if errors.Is(err, bus.ErrUnavailable) {
			return err // it may be decided, and workers find out
		}
	}
	after := context.WithoutCancel(ctx)
	if err != nil {
		s.abandon(after, preparation)
		return err
	}
	// It is decided. Workers finish partitions that do not follow now.
	s.others(after, followTimeout, func(ctx context.Context, _ int, st *Store) error {
		return st.Replace(ctx, r, preparation)
	})
	return nil
}

// prepare prepares a replacement in the first partition, and then in all others.
func (s *Bus) prepare(ctx context.Context, r *Replacement, preparation string) error {
	first := s.all[0].Prepare(ctx, r, preparation)
	if _, rest := errors.AsType[*machines.LabelsRestError](first); first != nil && !rest {
		return first
	}
	errs := s.Each(func(i int, st *Store) error {
		if i == 0 {
			return first
		}
		return st.Prepare(ctx, r, preparation)
	})
	resting := &machines.LabelsRestError{}
	for _, err := range errs {
		if here, rest := errors.AsType[*machines.LabelsRestError](err); rest {
			resting.States = addStates(resting.States, here.States)
		} else if err != nil {
			return err
		}
	}
	if len(resting.States) > 0 {
		return resting
	}
	return nil
}

// abandon ends a preparation everywhere, in the first partition last. A preparation that it cannot
// end is ended once it is old.
func (s *Bus) abandon(ctx context.Context, preparation string) {
	s.others(ctx, followTimeout, func(ctx context.Context, _ int, st *Store) error {
		return st.Abandon(ctx, preparation)
	})
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	_ = s.all[0].Abandon(ctx, preparation)
}

// others calls a function for all partitions but the first at once, each for some time at most, and
// returns its errors, by number.
func (s *Bus) others(
	ctx context.Context, timeout time.Duration, do func(ctx context.Context, number int, st *Store) error,
) []error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Each(func(i int, st *Store) error {
		if i == 0 {
			return nil
		}
		return do(ctx, i, st)
	})
}

// Settle makes all partitions follow the first one, and ends abandoned preparations. Every worker
// calls it now and then. If the first one has lost its last definitions, because a replica that did
// not have them yet took its place, it follows the others. Settle fails with [bus.ErrUnavailable]
// while a partition is away, after the work that does not need that partition.
func (s *Bus) Settle(ctx context.Context, now time.Time) error {
	if len(s.all) == 1 {
		return nil
	}
	editions := make([]Edition, len(s.all))
	errs := s.others(ctx, lookTimeout, func(ctx context.Context, i int, st *Store) (err error) {
		editions[i], err = st.Edition(ctx)
		return err
	})
	// The first one is asked after the others have answered: if it does not have their preparation by
	// then, it never will.
	look, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	first, err := s.all[0].Edition(look)
	if err != nil {
		return err
	}
	editions[0] = first
	leader := 0
	for i, e := range editions {
		if e.Version > editions[leader].Version {
			leader = i
		}
	}
	err = s.follow(ctx, leader, editions, errs)
	// A preparation in the first partition may be decided until it is ended there; but not if others
	// are ahead, as then the first has followed them.
	isOld := now.Sub(preparedAt(first.Preparation)).Abs() >= preparationTimeout
	if leader == 0 && first.Preparation != "" && isOld {
		err = cmp.Or(err, s.all[0].Abandon(ctx, first.Preparation))
	}
	return cmp.Or(err, cmp.Or(errs...))
}

// preparedAt is when a preparation was made.
func preparedAt(preparation string) time.Time {
	ms, _, _ := strings.Cut(preparation, " ")
	at, _ := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(at)
}

// follow makes partitions follow a leader: the ones that were reachable and have other definitions.
// In the rest it ends preparations that the first one has no more.
func (s *Bus) follow(ctx context.Context, leader int, editions []Edition, unasked []error) error {
	follows := func(i int) bool { return unasked[i] == nil && !editions[i].HasSame(editions[leader]) }
	var definitions *machines.Definitions
	for i := range editions {
		if follows(i) && definitions == nil {
			var err error
			if definitions, err = s.all[leader].Replaceable(ctx); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	return cmp.Or(s.Each(func(i int, st *Store) error {
		switch e := editions[i]; {
		case follows(i):
			if err := st.Follow(ctx, e, definitions); !errors.Is(err, machines.ErrChanged) {
				return err
			}
		case i > 0 && e.Preparation != "" && editions[0].Preparation == "":
			return st.Abandon(ctx, e.Preparation)
		}
		return nil // others have done it
	})...)
}
