package store

import (
	"context"
	"errors"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// CopiedByReplays is the result of one run.
type CopiedByReplays struct {
	// Events is how many events were put into the queues of subscribers, Lost how many were skipped.
	Events, Lost map[bus.Token]int
	// Ended are the replays that have ended.
	Ended []Replay
}

// lookInterval is the pause after which it is looked how far a subscriber has come whose queue has
// no room for the next slice.
const lookInterval = 20 * time.Millisecond

// Copy continues all replays while goesOn returns true: it copies a slice of each in turn, as long
// as its subscriber has room in its queue. It opens batches at the time now. It returns what it has
// done, also with an error: an error of one replay does not stop the others, and the next run
// retries it. It fails with [bus.ErrUnavailable], or when a key is not of its type. Two runs at
// once do no harm.
func (r *Replays) Copy(ctx context.Context, now time.Time, goesOn func() bool) (done CopiedByReplays, err error) {
	ids, err := r.redis.SMembers(ctx, r.keys.RunningReplays()).Result()
	if err != nil || len(ids) == 0 {
		return done, rdb.Wrap("copy replays", err)
	}
	found, err := r.read(ctx, "copy replays", ids)
	if err != nil {
		return done, err
	}
	done.Events, done.Lost = map[bus.Token]int{}, map[bus.Token]int{}
	active := make([]*copier, len(found))
	for i, replay := range found {
		active[i] = newCopier(r, replay, now, &done)
	}
	for len(active) > 0 {
		left, hasCopied := active[:0], false
		for _, c := range active {
			if !goesOn() {
				return done, err
			}
			progress, stepErr := c.step(ctx)
			err = errors.Join(err, stepErr)
			hasCopied = hasCopied || progress == copied
			if progress != stopped {
				left = append(left, c)
			}
		}
		active = left
		if !hasCopied && len(active) > 0 {
			pause(ctx, lookInterval)
		}
	}
	return done, err
}

// pause waits for some time, or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
