package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"routemaster/internal/account"
	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// turnLimits bound the changes of one label: how many may wait in a process, and how many one step
// makes, each of which may need metadata of its own. Bytes are not counted here: the request bodies
// are counted by client until the changes are made.
var turnLimits = rdb.CommitLimits{Waiting: 1024, WaitingBytes: 1, Units: 64, Bytes: 1}

// maxContentionPause bounds the pause before a change is tried again that another process has got
// ahead of.
const maxContentionPause = 32 * time.Millisecond

// request is a change that takes its turn, and its result.
type request struct {
	machines.Change
	traceparent string
	client      bus.ClientName
	now         time.Time

	// label is as it was after this change, if err is nil. Both hold once the change is done.
	label machines.Label
	err   error
	done  bool
}

func (r *request) end(label machines.Label, err error) { r.label, r.err, r.done = label, err, true }

// turns serializes the changes of each label in this process: changes that arrive while others are
// made are made together in the next step. It is safe for concurrent use.
type turns struct {
	commit func(context.Context, labelID, []*request) error

	mu sync.Mutex
	of map[labelID]*turn
}

// turn is the queue of one label. It is there while there are callers.
type turn struct {
	*rdb.CommitQueue[*request]
	callers int
}

func newTurns(commit func(context.Context, labelID, []*request) error) *turns {
	return &turns{commit: commit, of: map[labelID]*turn{}}
}

// do returns nil when the request is done. It fails with [machines.ErrContended] or
// [bus.ErrUnavailable], or when the context is done while the request waits.
func (t *turns) do(ctx context.Context, id labelID, r *request) error {
	queue := t.join(id)
	defer t.leave(id, queue)
	err := queue.Do(ctx, r, rdb.CommitSize{Units: 1})
	switch {
	case errors.Is(err, rdb.ErrFull):
		return machines.ErrContended
	case err == nil && !r.done: // another's commit panicked
		return bus.ErrUnavailable
	}
	return err
}

func (t *turns) join(id labelID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.of[id]
	if queue == nil {
		queue = &turn{CommitQueue: rdb.NewCommitQueue(turnLimits, func(ctx context.Context, requests []*request) error {
			return t.commit(ctx, id, requests)
		})}
		t.of[id] = queue
	}
	queue.callers++
	return queue
}

func (t *turns) leave(id labelID, queue *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if queue.callers--; queue.callers == 0 {
		delete(t.of, id)
	}
}

// changeAll makes changes of one label, in their order, together unless one of them makes the
// label. It returns an error if Redis is unavailable.
func (s *Store) changeAll(ctx context.Context, id labelID, requests []*request) error {
	return inTurn(ctx, requests, func(left []*request) error { return s.tryChanges(ctx, id, left) })
}

// inTurn tries to make changes until all are done. After [maxTries] that other processes got ahead
// of, the remaining ones fail with [machines.ErrContended].
func inTurn(ctx context.Context, requests []*request, try func(left []*request) error) error {
	for tries := 0; ; {
		left := undone(requests)
		if len(left) == 0 {
			return nil
		}
		err := try(left)
		if errors.Is(err, machines.ErrChanged) {
			if tries++; tries < maxTries {
				sleepUnlessDone(ctx, rand.N(min(time.Millisecond<<min(tries, 10), maxContentionPause)))
				continue
			}
			err = machines.ErrContended
		}
		if err != nil {
			endAll(left, err)
			return unavailable(err)
		}
	}
}

// tryChanges reads a label, and makes the first changes that can be made in one step. It fails with
// [machines.ErrChanged] if another process was ahead.
func (s *Store) tryChanges(ctx context.Context, id labelID, requests []*request) error {
	label, definitions, err := s.Label(ctx, id.machine, id.name)
	if definitions == nil {
		return err
	}
	for _, r := range requests {
		if definitions.Version < r.Definitions {
			r.end(label, errBehind)
		}
	}
	if m := definitions.Machine(id.machine); m == nil {
		err = machines.ErrUnknownMachine
	} else {
		for _, r := range undone(requests) {
			if !m.Clients.Allow(r.client) {
				r.end(machines.Label{}, machines.ErrNotClient)
			}
		}
	}
	requests = undone(requests)
	if errors.Is(err, machines.ErrUnknownLabel) {
		return s.addFirst(ctx, id, requests)
	}
	if err != nil {
		return err
	}
	return s.merge(ctx, label, definitions, requests)
}

// addFirst makes a label by the first change that may make it. The changes before that one fail.
func (s *Store) addFirst(ctx context.Context, id labelID, requests []*request) error {
	for _, r := range requests {
		if !r.Create {
			r.end(machines.Label{}, machines.ErrUnknownLabel)
			continue
		}
		metadata, err := machines.Object{}.Merge(r.Patch, r.KeepNull).Pack()
		var label machines.Label
		if err == nil {
			label, err = s.add(ctx, id.machine, id.name, metadata, r, r.now)
		}
		if errors.Is(err, machines.ErrLabelExists) {
			return machines.ErrChanged
		}
		r.end(label, err)
		return unavailable(err)
	}
	return nil
}

// merge merges changes into the metadata of a label as it was read, one after another, and stores
// the result. A change that is refused leaves out itself only. A change with patience fails with
// errMoving if the label does not rest.
func (s *Store) merge(ctx context.Context, label machines.Label, d *machines.Definitions, requests []*request) error {
	metadata, err := machines.ParseObject(label.Metadata)
	if err != nil {
		return err
	}
	p, version, made := patch{}, label.Version, []*request(nil)
	for _, r := range requests {
		if !label.Resting && time.Now().Before(r.Patience) {
			r.end(label, errMoving)
			continue
		}
		merged := metadata.Merge(r.Patch, r.KeepNull)
		packed, err := merged.Pack()
		if err != nil {
			r.end(label, err)
			continue
		}
		metadata, p.metadata, label.Metadata, label.Version = merged, packed, packed, version+1
		if trigger, pending := d.State(label.Machine, label.State).TriggerOf(label.Machine, label.Name, &r.Change); trigger != "" {
			if r.Hops > machines.MaxHops {
				p.paused, p.now = machines.ReasonHops, r.now
				label.ErroredAt, label.ErroredReason = r.now, machines.ReasonHops
			} else {
				p.trigger, p.pending, p.traceparent, p.hops = trigger, p.pending || pending, r.traceparent, max(p.hops, r.Hops)
				label.Resting, label.ErroredReason = false, ""
			}
		}
		r.label, made = label, append(made, r)
	}
	if len(made) == 0 {
		return nil
	}
	label.Version = version
	if p.trigger != "" {
		p.paused = "" // another change has the gate evaluated
	}
	err = s.patch(ctx, &label, d, &p)
	if _, full := errors.AsType[*account.FullError](err); full {
		if len(made) > 1 { // some of them may have room
			return s.tryChanges(ctx, labelID{label.Machine, label.Name}, made[:1])
		}
		made[0].end(label, err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, r := range made {
		r.end(r.label, nil)
	}
	return nil
}

// undone are the requests that are not done.
func undone(requests []*request) (left []*request) {
	for _, r := range requests {
		if !r.done {
			left = append(left, r)
		}
	}
	return left
}

func endAll(requests []*request, err error) {
	for _, r := range undone(requests) {
		r.end(machines.Label{}, err)
	}
}

// unavailable returns an error if Redis could not be reached, so that others would fare no better.
func unavailable(err error) error {
	if !errors.Is(err, bus.ErrUnavailable) || errors.Is(err, machines.ErrReplacing) || errors.Is(err, machines.ErrContended) {
		return nil
	}
	return err
}
