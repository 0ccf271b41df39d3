package store

import (
	"context"
	"math"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// LetterFilter says which dead letters are meant. The zero value means all.
type LetterFilter struct {
	// Reason is empty for any.
	Reason bus.DeathReason
	// Status is the status of the endpoint's last answer, [NoAnswer] if there was none, 0 for any.
	Status int
	// Since and Before bound the time of death: it is not before Since, and before Before. Zero is
	// no bound.
	Since, Before time.Time
}

// NoAnswer is the status of a [LetterFilter] that means letters whose last attempt got no answer.
const NoAnswer = -1

// all reports whether the filter means all letters that died in its time.
func (f LetterFilter) all() bool { return f.Reason == "" && f.Status == 0 }

// matches reports whether the filter means a letter that died in its time.
func (f LetterFilter) matches(reason bus.DeathReason, status int) bool {
	return (f.Reason == "" || reason == f.Reason) &&
		(f.Status == 0 || status == max(f.Status, 0))
}

// scores are the range of the index that the filter means: times of death in ms.
func (f LetterFilter) scores() rdb.ScoreRange {
	r := rdb.ScoreRange{Min: math.Inf(-1), Max: math.Inf(1)}
	if !f.Since.IsZero() {
		r.Min = float64(f.Since.UnixMilli())
	}
	if !f.Before.IsZero() {
		r.Max = float64(f.Before.UnixMilli() - 1)
	}
	return r
}

// LetterPage says which part of a list is wanted.
type LetterPage struct {
	// After is the value that [Letters.List] returned with the previous page; empty for the first.
	After string
	// Limit is how many letters are wanted at most, at least 1.
	Limit int
}

// How much of the index one call looks at, and one round trip of it.
const (
	maxListed     = 1000
	listedPerTrip = 100
)

// List returns dead letters of a subscriber, newest first, and the value of After for the next
// page, empty if there is none. A page may have fewer letters than its limit before the end,
// because one call looks at 1,000 letters at most. List fails with a [bus.Invalid] if After is
// malformed, or with [bus.ErrUnavailable].
func (l *Letters) List(ctx context.Context, token bus.Token, f LetterFilter, p LetterPage) (some []Letter, next string, err error) {
	after, err := parsePlace(p.After)
	if err != nil {
		return nil, "", err
	}
	part := f.scores()
	part.Reverse, part.Limit, part.Max = true, listedPerTrip, min(part.Max, after.Score)
	for last, looked := after, 0; ; part.Offset += listedPerTrip {
		window, err := l.redis.MembersIn(ctx, l.keys.DeadLetters(token), part)
		if err != nil {
			return nil, "", rdb.Wrap("list dead letters", err)
		}
		unseen := behind(after, window)
		letters, err := l.read(ctx, unseen)
		if err != nil {
			return nil, "", err
		}
		for i, letter := range letters {
			if len(some) == p.Limit || looked == maxListed {
				return some, last.Place(), nil
			}
			looked++
			last = unseen[i]
			if letter.ID != "" && f.matches(letter.Reason, letter.Status) {
				some = append(some, letter)
			}
		}
		if len(window) < listedPerTrip {
			return some, "", nil
		}
	}
}

// read reads letters; one that is damaged is the zero value.
func (l *Letters) read(ctx context.Context, members []rdb.Scored) ([]Letter, error) {
	replies := make([]letterReplies, len(members))
	err := l.redis.Reads(ctx, "list dead letters", func(pipe rdb.Commands) {
		for i, m := range members {
			replies[i] = l.ask(ctx, pipe, bus.BatchID(m.Member))
		}
	})
	if err != nil {
		return nil, err
	}
	letters := make([]Letter, len(members))
	for i, m := range members {
		letters[i], _ = replies[i].read(bus.BatchID(m.Member), m.Score)
	}
	return letters, nil
}

// parsePlace reads the place of a letter in the list; an empty text is the beginning.
func parsePlace(text string) (rdb.Scored, error) {
	if text == "" {
		return rdb.Scored{Score: math.Inf(1)}, nil
	}
	return rdb.ParsePlace(text)
}

// behind returns the members, which are in descending order, that come after a place.
func behind(place rdb.Scored, members []rdb.Scored) []rdb.Scored {
	for i, m := range members {
		if m.Compare(place) < 0 {
			return members[i:]
		}
	}
	return nil
}
