package engine

import (
	"context"
	"sync"
	"time"
)

// A worker mostly needs a few ms for a label, and its webhook may need long. So the looks whether
// it rests are firstLook apart at first, then twice as far each time up to lastLook; from then on
// an eighth of the time that was waited for it, up to slowLook.
const (
	firstLook = 2 * time.Millisecond
	lastLook  = 32 * time.Millisecond
	slowLook  = 250 * time.Millisecond
)

// watches are the labels whose rest requests of this process wait for. Requests that wait for the
// same label share the checks. It is safe for concurrent use.
type watches struct {
	isAtRest func(context.Context, labelID) (bool, error)

	mu sync.Mutex
	of map[labelID]*watch
}

// watch is one label. It is there while requests wait for it.
type watch struct {
	waiters int
	// looks counts the checks that have begun, the last of them at lookedAt. Rested is the number of
	// the last check that found the label at rest, 0 before: it holds for requests that came before
	// it.
	looks, rested int
	lookedAt      time.Time
	// found is closed, and another takes its place, whenever a look finds the label at rest.
	found chan struct{}
}

func newWatches(isAtRest func(context.Context, labelID) (bool, error)) *watches {
	return &watches{isAtRest: isAtRest, of: map[labelID]*watch{}}
}

// await returns when a label rests that was changed before, or cannot be looked at, when it is
// until, or when the context is done.
func (w *watches) await(ctx context.Context, id labelID, until time.Time) {
	begun := time.Now()
	if !begun.Before(until) {
		return
	}
	v, joined := w.join(id)
	defer w.leave(id, v)
	next := begun.Add(firstLook)
	for {
		found, rested := w.state(v)
		if rested > joined || !begun.Before(until) {
			return
		}
		timer := time.NewTimer(min(time.Until(next), time.Until(until)))
		select {
		case <-found:
			timer.Stop()
			continue
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(until) {
			return
		}
		var look int
		if look, next = w.claim(v, joined, now, begun); look == 0 {
			continue
		}
		if rests, err := w.isAtRest(ctx, id); err != nil {
			return
		} else if rests {
			w.tell(v, look)
			return
		}
	}
}

// paceOf is the time between two looks, for a request that has waited for a while, during which
// there were looks.
func paceOf(looks int, waited time.Duration) time.Duration {
	if pace := firstLook << min(looks, 10); pace < lastLook {
		return pace
	}
	return max(lastLook, min(slowLook, waited/8))
}

func (w *watches) join(id labelID) (v *watch, looks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v = w.of[id]; v == nil {
		v = &watch{found: make(chan struct{})}
		w.of[id] = v
	}
	v.waiters++
	return v, v.looks
}

func (w *watches) leave(id labelID, v *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.waiters--; v.waiters == 0 {
		delete(w.of, id)
	}
}

func (w *watches) state(v *watch) (found <-chan struct{}, rested int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return v.found, v.rested
}

// claim returns the number of a look that a request is to make now; 0 if another has begun one so
// lately that it need not. Next is when to ask again.
func (w *watches) claim(v *watch, joined int, now, begun time.Time) (look int, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pace := paceOf(v.looks-joined, now.Sub(begun))
	if next = v.lookedAt.Add(pace); now.Before(next) && v.looks > joined {
		return 0, next
	}
	v.looks++
	v.lookedAt = now
	return v.looks, now.Add(paceOf(v.looks-joined, now.Sub(begun)))
}

// tell notifies all waiting requests that a look has found the label at rest.
func (w *watches) tell(v *watch, look int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.rested = max(v.rested, look)
	close(v.found)
	v.found = make(chan struct{})
}
