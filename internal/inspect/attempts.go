package inspect

import (
	"context"
	"fmt"
	"regexp"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// Filter selects attempts by batch and by outcome. An empty field selects all.
type Filter struct {
	Batch   bus.BatchID
	Outcome bus.Outcome
}

func (f Filter) matches(r wire.AttemptRecord) bool {
	return (f.Batch == "" || f.Batch == r.Batch) && (f.Outcome == "" || f.Outcome == r.Outcome)
}

// maxAttempts is how many records a search reads: no setting keeps more.
const maxAttempts = 1000

// Attempts returns the kept attempts of a subscriber, newest first, as a view shows them, and the
// value of After for the next page, empty if there is none. It fails with a [bus.Invalid] if After
// is malformed, or with [bus.ErrUnavailable].
func (in *Inspector) Attempts(
	ctx context.Context, token bus.Token, view View, f Filter, p Page,
) (some []wire.AttemptRecord, next string, err error) {
	if p.After != "" && !attemptPlace.MatchString(p.After) {
		return nil, "", bus.ErrAfter
	}
	packed, err := in.redis.LRange(ctx, in.keys.Attempts(token), 0, maxAttempts-1).Result()
	if err != nil {
		return nil, "", rdb.Wrap("list attempts", err)
	}
	passed, last, seen := p.After == "", "", places{}
	for _, one := range packed {
		record, err := wire.UnpackAttempt(one)
		if err != nil { // something else wrote it
			continue
		}
		place := seen.next(record)
		switch {
		case !passed:
			passed = place == p.After
		case !f.matches(record):
		case len(some) == p.Limit:
			return some, last, nil
		default:
			some, last = append(some, view(record)), place
		}
	}
	return some, "", nil
}

// attemptPlace matches the place of an attempt in the list.
var attemptPlace = regexp.MustCompile(`^\d{1,16}-\d{1,10}-[A-Za-z0-9_-]{1,40}-\d{1,4}$`)

// places counts the records that have the time, the attempt and the batch in common: slices of a
// batch may be sent, and counted as its first attempt, within one ms.
type places map[string]int

// next names the next record of the list, from the newest. Records go from the end of the list, so
// that with a record all that would follow it are gone too.
func (p places) next(r wire.AttemptRecord) string {
	name := fmt.Sprintf("%d-%d-%s", r.At.UnixMilli(), r.Attempt, r.Batch)
	p[name]++
	return fmt.Sprintf("%s-%d", name, p[name])
}
