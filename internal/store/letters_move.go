package store

import (
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// The limits of one call that redelivers or discards, unless one letter has more events.
const (
	MaxMovedLetters = 100
	MaxMovedEvents  = 10_000
)

// LetterSelection says which dead letters are to be redelivered or discarded.
type LetterSelection struct {
	// IDs are the letters' UIDs, if given. Unknown UIDs and letters of other subscribers are ignored.
	IDs []bus.BatchID
	// Filter says which are meant, if no IDs are given.
	LetterFilter
}

// MovedLetters is the result of one call that redelivers or discards.
type MovedLetters struct {
	// Letters and Events are how many.
	Letters, Events int
	// Remaining is how many more letters the selection has: call again while it is not 0. It is
	// exact up to 10,000; of those behind, all count, of any reason and status.
	Remaining int
}

// Redeliver puts dead letters of a subscriber back into its queue, oldest first, at most
// [MaxMovedLetters] or [MaxMovedEvents]. They become batches again, each with its events, queue
// behind the batches that wait there, and may die again. A letter whose events are lost is removed.
// Redeliver is one atomic step: after an error it was done or not. It fails with
// [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func (l *Letters) Redeliver(ctx context.Context, token bus.Token, s LetterSelection) (MovedLetters, error) {
	return l.move(ctx, "redeliver dead letters", scriptLetterRedeliver, token, s, bus.NewOptionsVersion())
}

// Discard removes dead letters of a subscriber, oldest first, at most [MaxMovedLetters] or
// [MaxMovedEvents], in one atomic step. It fails with [bus.ErrUnavailable].
func (l *Letters) Discard(ctx context.Context, token bus.Token, s LetterSelection) (MovedLetters, error) {
	return l.move(ctx, "discard dead letters", scriptLetterDiscard, token, s)
}

// move runs a script for the oldest letters of a selection.
func (l *Letters) move(
	ctx context.Context, what string, script *rdb.Script, token bus.Token, s LetterSelection, args ...any,
) (m MovedLetters, err error) {
	ids, more, err := l.find(ctx, token, s)
	if err != nil {
		return m, err
	}
	args = append([]any{string(token), MaxMovedEvents}, args...)
	for _, id := range ids {
		args = append(args, id)
	}
	change := l.redis.Change(ctx, script, args...)
	if change.Err != nil {
		return m, rdb.Wrap(what, change.Err)
	}
	if !change.Changed {
		return m, bus.ErrNotSubscribed
	}
	m.Letters, m.Events = change.Int(0), change.Int(1)
	m.Remaining = change.Int(2) + more
	return m, nil
}

// find returns the oldest letters of a selection, oldest first, and how many more it has.
func (l *Letters) find(ctx context.Context, token bus.Token, s LetterSelection) (ids []string, more int, err error) {
	switch {
	case s.IDs != nil:
		ids, err = l.findNamed(ctx, token, s.IDs)
		more = max(0, len(ids)-MaxMovedLetters)
	case s.all():
		ids, more, err = l.findAll(ctx, token, s.LetterFilter)
	default:
		ids, more, err = l.findMatching(ctx, token, s.LetterFilter)
	}
	return ids[:min(len(ids), MaxMovedLetters)], more, rdb.Wrap("find dead letters", err)
}

func (l *Letters) findNamed(ctx context.Context, token bus.Token, named []bus.BatchID) (ids []string, err error) {
	scores := make([]rdb.Reply[float64], len(named))
	err = l.redis.Reads(ctx, "find dead letters", func(pipe rdb.Commands) {
		for i, id := range named {
			scores[i] = pipe.ZScore(ctx, l.keys.DeadLetters(token), string(id))
		}
	})
	var found []rdb.Scored
	for i, id := range named {
		if scores[i].Err() == nil {
			found = append(found, rdb.Scored{Member: string(id), Score: scores[i].Val()})
		}
	}
	slices.SortFunc(found, rdb.Scored.Compare)
	for _, m := range slices.Compact(found) {
		ids = append(ids, m.Member)
	}
	return ids, err
}

func (l *Letters) findAll(ctx context.Context, token bus.Token, f LetterFilter) (ids []string, more int, err error) {
	part := f.scores()
	part.Limit = MaxMovedLetters
	found, err := l.redis.MembersIn(ctx, l.keys.DeadLetters(token), part)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range found {
		ids = append(ids, m.Member)
	}
	all, err := l.countAll(ctx, token, part)
	return ids, max(0, all-len(ids)), err
}

func (l *Letters) countAll(ctx context.Context, token bus.Token, part rdb.ScoreRange) (int, error) {
	all, err := l.redis.ZCount(ctx, l.keys.DeadLetters(token), rdb.FormatScore(part.Min), rdb.FormatScore(part.Max)).Result()
	return int(all), err
}

// Count returns how many dead letters of a subscriber a filter means. With a reason or a status
// it looks at the 10,000 oldest, and says whether there are others. It fails with
// [bus.ErrUnavailable].
func (l *Letters) Count(ctx context.Context, token bus.Token, f LetterFilter) (letters int, more bool, err error) {
	part := f.scores()
	if f.all() {
		letters, err = l.countAll(ctx, token, part)
		return letters, false, rdb.Wrap("count dead letters", err)
	}
	for part.Limit = lookedPerTrip; part.Offset < maxCounted; part.Offset += lookedPerTrip {
		window, err := l.redis.MembersIn(ctx, l.keys.DeadLetters(token), part)
		if err != nil {
			return 0, false, rdb.Wrap("count dead letters", err)
		}
		found, err := l.matching(ctx, window, f)
		if err != nil {
			return 0, false, err
		}
		if letters += len(found); len(window) < lookedPerTrip {
			return letters, false, nil
		}
	}
	all, err := l.countAll(ctx, token, part)
	return letters, all > maxCounted, rdb.Wrap("count dead letters", err)
}

// The number of letters whose causes are read: in one round trip, and in all once there are enough
// to move.
const (
	lookedPerTrip = 1000
	maxCounted    = 10_000
)

// findMatching looks at all letters until it has enough, and at some more to count them.
func (l *Letters) findMatching(ctx context.Context, token bus.Token, f LetterFilter) (ids []string, more int, err error) {
	part, counted := f.scores(), 0
	for part.Limit = lookedPerTrip; ; part.Offset += lookedPerTrip {
		window, err := l.redis.MembersIn(ctx, l.keys.DeadLetters(token), part)
		if err != nil {
			return nil, 0, err
		}
		found, err := l.matching(ctx, window, f)
		if err != nil {
			return nil, 0, err
		}
		n := min(len(found), MaxMovedLetters-len(ids))
		ids, more = append(ids, found[:n]...), more+len(found)-n
		if len(window) < lookedPerTrip {
			return ids, more, nil
		}
		if len(ids) < MaxMovedLetters {
			continue
		}
		if counted += len(window); counted >= maxCounted {
			all, err := l.countAll(ctx, token, part)
			return ids, more + max(0, all-int(part.Offset)-len(window)), err
		}
	}
}

// matching returns the letters that match a filter.
func (l *Letters) matching(ctx context.Context, window []rdb.Scored, f LetterFilter) (ids []string, err error) {
	causes := make([]rdb.Reply[[]any], len(window))
	err = l.redis.Reads(ctx, "find dead letters", func(pipe rdb.Commands) {
		for i, m := range window {
			causes[i] = pipe.HMGet(ctx, l.keys.DeadLetterCause(bus.BatchID(m.Member)), "reason", "status")
		}
	})
	for i, m := range window {
		cause := causes[i].Val()
		if len(cause) != 2 {
			continue
		}
		reason, _ := cause[0].(string)
		status, _ := cause[1].(string)
		if f.matches(bus.DeathReason(reason), int(rdb.Integer(status, 0))) {
			ids = append(ids, m.Member)
		}
	}
	return ids, err
}
