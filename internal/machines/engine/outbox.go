package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// publication is the publish part of a machine's definition as JSON, which the scripts note with
// each move; empty if the machine does not publish its moves.
func publication(m *machines.Machine) string {
	if m == nil || m.Publish == nil {
		return ""
	}
	text, _ := json.Marshal(m.Publish) // of strings
	return string(text)
}

// OutboxMove is a move that is to be published, with the publish part of its machine's definition
// at the time of the move.
type OutboxMove struct {
	machines.Publish
	Label machines.LabelName
	At    time.Time
	// From is nil for a creation, To for a deletion.
	From, To *machines.StateName
}

// OutboxSlice is the moves of a machine that are published together.
type OutboxSlice struct {
	Machine machines.Name
	// Partition is where they were made, empty on a bus without partitions.
	Partition string
	// First is the number of the first move: all of a machine's are numbered in their partition.
	First int64
	Moves []OutboxMove
}

// Part returns the moves from one on, up to another, by their indexes.
func (s *OutboxSlice) Part(from, to int) *OutboxSlice {
	return &OutboxSlice{Machine: s.Machine, Partition: s.Partition, First: s.First + int64(from), Moves: s.Moves[from:to]}
}

// Outbox returns the oldest moves of a machine that are to be published, at most limit; the same
// ones until they are removed. It fails with [bus.ErrUnavailable].
func (s *Store) Outbox(ctx context.Context, machine machines.Name, limit int) (slice OutboxSlice, err error) {
	reply, err := s.redis.Run(ctx, scriptOutboxRead, string(machine), limit).List()
	if err != nil {
		return slice, rdb.Wrap("read moves to publish", err)
	}
	slice.Machine = machine
	if s.redis.IsOneOfSeveral() {
		slice.Partition = s.redis.Name()
	}
	slice.First, _ = reply[0].(int64)
	for _, text := range reply[1:] {
		move, err := ReadOutboxMove(rdb.Text(text))
		if err != nil {
			return slice, fmt.Errorf("read moves to publish of %s: %w", machine, err)
		}
		slice.Moves = append(slice.Moves, move)
	}
	return slice, nil
}

// ReadOutboxMove reads an element of an outbox, as tell of lua/lib/labels.lua writes it.
func ReadOutboxMove(text string) (move OutboxMove, err error) {
	lines := strings.SplitN(text, "\n", 3)
	if len(lines) != 3 {
		return move, fmt.Errorf("%q is no move", bus.Reason(text))
	}
	var at int64
	err = json.Unmarshal([]byte(lines[0]), &move.Publish)
	if err == nil {
		err = json.Unmarshal([]byte(lines[2]), &[]any{&at, &move.From, &move.To})
	}
	move.Label, move.At = machines.LabelName(lines[1]), time.UnixMilli(at)
	return move, err
}

// Unload removes moves that were published from the outbox, unless others have. It returns how many
// are left. It fails with [bus.ErrUnavailable].
func (s *Store) Unload(ctx context.Context, slice *OutboxSlice) (left int, err error) {
	left, err = s.redis.Run(ctx, scriptOutboxUnload, string(slice.Machine), slice.First, len(slice.Moves)).Int()
	return left, rdb.Wrap("remove moves that were published", err)
}
