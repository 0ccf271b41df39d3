package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// Progress is how far a walk has come.
type Progress struct {
	// At is the time of the trigger that was handled last, in ms since the Unix epoch; 0 before the
	// first.
	At int64 `json:"at"`
	// Due is the time of the trigger for which labels are looked at now, and After the name of the
	// last of them; 0 and empty between two times.
	Due   int64              `json:"due,omitempty"`
	After machines.LabelName `json:"after,omitempty"`
}

func walkID(w machines.Walk) string { return string(w.Machine) + "/" + w.Name() }

// Progress returns how far a walk has come. It fails with [bus.ErrUnavailable].
func (s *Store) Progress(ctx context.Context, w machines.Walk) (p Progress, err error) {
	text, err := s.redis.HGet(ctx, s.keys.Walks(), walkID(w)).Result()
	if errors.Is(err, rdb.Nil) {
		return p, nil
	}
	if err != nil {
		return p, rdb.Wrap("read walk", err)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read walk %s: %w", walkID(w), err)
	}
	return p, nil
}

// Forget forgets how far a walk has come that the definitions do not need. It fails with
// [bus.ErrUnavailable].
func (s *Store) Forget(ctx context.Context, machine machines.Name, name string) error {
	return rdb.Wrap("forget walk", s.redis.HDel(ctx, s.keys.Walks(), string(machine)+"/"+name).Err())
}

// Slice returns the next labels of a walk, at most limit, and fewer if their metadata is long; none
// behind the last. Each has the fields that the evaluation of its gate needs. It fails with
// [bus.ErrUnavailable].
func (s *Store) Slice(ctx context.Context, w machines.Walk, after machines.LabelName, limit int) ([]machines.Label, error) {
	reply, err := s.redis.Run(ctx, scriptWalkRead, string(w.Machine), string(w.State), string(after), limit).List()
	if err != nil {
		return nil, rdb.Wrap("read labels", err)
	}
	labels := make([]machines.Label, 0, len(reply)/3)
	for triple := range slices.Chunk(reply, 3) {
		fields := triple[2].([]any)
		labels = append(labels, machines.Label{
			Machine: w.Machine, Name: machines.LabelName(rdb.Text(triple[0])), State: w.State,
			Metadata: readMetadata(triple[1]), EnteredAt: fromMillis(fields[0]), Previous: machines.StateName(rdb.Text(fields[1])),
		})
	}
	return labels, nil
}

// Step queues labels of a walk that were chosen by definitions, and notes its progress. It fails
// with [machines.ErrChanged] if the definitions are others now, or [bus.ErrUnavailable].
func (s *Store) Step(
	ctx context.Context, d *machines.Definitions, w machines.Walk, p Progress, names []machines.LabelName,
) error {
	noted, err := json.Marshal(p)
	if err != nil {
		return err
	}
	args := []any{string(w.Machine), string(w.State), w.TriggerName(), walkID(w), noted, d.Edition}
	for _, name := range names {
		args = append(args, string(name))
	}
	return replied("walk", s.redis.Change(ctx, scriptWalkStep, args...))
}

// tendedWalks is how many walks [Store.Tend] takes at once, which takes Redis half a ms.
const tendedWalks = 100

// Tend adds the walks that are not in the queue, and wakes walks that would come up after latest.
// It fails with [bus.ErrUnavailable].
func (s *Store) Tend(ctx context.Context, walks []machines.Walk, latest func(machines.Walk) time.Time) error {
	for some := range slices.Chunk(walks, tendedWalks) {
		args := make([]any, 0, 3*len(some))
		for _, w := range some {
			args = append(args, string(w.Machine), w.Name(), latest(w).UnixMilli())
		}
		if err := s.redis.Run(ctx, scriptWalksTend, args...).Err(); err != nil {
			return rdb.Wrap("add walks", err)
		}
	}
	return nil
}

// Instant returns how many labels workers are to look at now. It fails with [bus.ErrUnavailable].
func (s *Store) Instant(ctx context.Context, now time.Time) (int64, error) {
	return s.queue.Due(ctx, bus.QueueMachines, now)
}
