package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// Replacement is definitions that are to take the place of others.
type Replacement struct {
	*machines.Definitions
	// base is the edition that is replaced.
	base string
	// vanished are the states that must have no labels, leading the states from which labels may still
	// move into them.
	vanished, leading []machines.StateCount
	// reviews are of the states whose labels are to be looked at.
	reviews []machines.Walk
}

// NewReplacement returns the replacement of current definitions by next ones from at on. Labels in
// states that vanish move as moves says, in addition to the unfinished earlier moves. It fails with
// a [bus.Invalid] for definitions that are too long.
func NewReplacement(
	current, next *machines.Definitions, moves, unfinished []machines.StateMove, at time.Time,
) (*Replacement, error) {
	// Definitions in several files may hold more than one file can.
	if _, err := load(next.Source); err != nil {
		return nil, bus.Invalidf("", "all definitions together: %v", err)
	}
	after := *next
	after.Version, after.AppliedAt = current.Version+1, at
	r := &Replacement{Definitions: &after, base: current.Edition}
	r.vanished, after.Moves = vanishing(current, next, append(moves[:len(moves):len(moves)], unfinished...))
	r.reviews = after.Reviews(current)
	r.leading = leadingTo(current, r.vanished)
	return r, nil
}

// leadingTo returns the states from which a label may go to one of others.
func leadingTo(d *machines.Definitions, others []machines.StateCount) (leading []machines.StateCount) {
	for _, m := range d.Machines {
		for _, state := range m.States {
			if state.Next != nil && slices.ContainsFunc(others, func(to machines.StateCount) bool {
				return to.Machine == m.Name && slices.Contains(state.Next.States(), to.State)
			}) {
				leading = append(leading, machines.StateCount{Machine: m.Name, State: state.Name})
			}
		}
	}
	return leading
}

// leadingMark is appended, in a preparation, to a state that leads to one that vanishes.
const leadingMark = "!"

// Preparation is the text by which a replacement is prepared under an id, which has no newline.
func (r *Replacement) Preparation(id string) string {
	var b strings.Builder
	b.WriteString(id + "\n")
	for _, v := range r.vanished {
		b.WriteString(string(v.Machine) + "/" + string(v.State) + "\n")
	}
	for _, l := range r.leading {
		b.WriteString(string(l.Machine) + "/" + string(l.State) + leadingMark + "\n")
	}
	return b.String()
}

func (r *Replacement) appendVanished(args []any) []any {
	for _, v := range r.vanished {
		args = append(args, string(v.Machine), string(v.State))
	}
	return args
}

// Put replaces definitions as they were read by others, in a bus without partitions. It returns the
// version of the new ones. It fails as [NewReplacement] and [Store.Replace] do.
func (s *Store) Put(
	ctx context.Context, current, next *machines.Definitions, moves []machines.StateMove, now time.Time,
) (version int64, err error) {
	unfinished, err := s.Unfinished(ctx, current.Moves)
	if err != nil {
		return 0, err
	}
	r, err := NewReplacement(current, next, moves, unfinished, now)
	if err != nil {
		return 0, err
	}
	return r.Version, s.Replace(ctx, r, "")
}

// definitionsArgs are the first arguments of lua/definitions_put.lua, under the same names there.
type definitionsArgs struct {
	Edition        string // that is replaced
	Version, Now   int64  // ms
	YAML           []byte // the definitions
	Moves, Outline []byte // JSON; the moves are of labels, and not over
	Prepared       string // the preparation required: see definitions_prepare.lua; empty for none
	Vanished       int    // states
}

func (a definitionsArgs) list() []any {
	return []any{a.Edition, a.Version, a.Now, a.YAML, a.Moves, a.Outline, a.Prepared, a.Vanished}
}

// Replace replaces the definitions, if the given preparation is in place; empty for none. It fails
// with a [machines.LabelsRestError], with [machines.ErrChanged] if the definitions were changed or
// something else is prepared, or with [bus.ErrUnavailable].
func (s *Store) Replace(ctx context.Context, r *Replacement, preparation string) error {
	moves, err := json.Marshal(r.Moves)
	if err != nil {
		return err
	}
	outlined, err := json.Marshal(outlineOf(r.Definitions))
	if err != nil {
		return err
	}
	args := r.appendVanished(definitionsArgs{
		Edition: r.base, Version: r.Version, Now: r.AppliedAt.UnixMilli(), YAML: r.Source, Moves: moves, Outline: outlined,
		Prepared: preparation, Vanished: len(r.vanished),
	}.list())
	for _, walk := range r.reviews {
		args = append(args, string(walk.Machine), walk.Name())
	}
	return replaced("put definitions", s.redis.Change(ctx, scriptDefinitionsPut, args...))
}

// Prepare keeps labels out of states that a replacement is without, until the definitions are
// replaced or the preparation is abandoned. It fails as [Store.Replace] does.
func (s *Store) Prepare(ctx context.Context, r *Replacement, preparation string) error {
	return replaced("prepare definitions", s.redis.Change(ctx, scriptPrepare, r.appendVanished([]any{r.base, preparation})...))
}

// Abandon ends a preparation, if it is the one that was made last. It fails with
// [bus.ErrUnavailable].
func (s *Store) Abandon(ctx context.Context, preparation string) error {
	return replied("abandon definitions", s.redis.Change(ctx, scriptAbandon, preparation))
}

// Follow replaces the definitions of an edition by another partition's, whatever labels there are.
// It fails with [machines.ErrChanged] if they were replaced meanwhile, or [bus.ErrUnavailable].
func (s *Store) Follow(ctx context.Context, e Edition, other *machines.Definitions) error {
	own, err := s.Replaceable(ctx)
	if err != nil {
		return err
	}
	if own.Edition != e.Text {
		return machines.ErrChanged // perhaps by later ones
	}
	return s.Replace(ctx, &Replacement{Definitions: other, base: own.Edition, reviews: other.Reviews(own)}, e.Preparation)
}

// Edition says which definitions a partition has.
type Edition struct {
	// Text is [machines.Definitions.Edition], empty if there are none.
	Text    string
	Version int64
	// Preparation is the one in progress; empty if there is none.
	Preparation string
}

// HasSame is whether two partitions have the same definitions.
func (e Edition) HasSame(of Edition) bool { return e.Text == of.Text }

// Edition returns which definitions the partition has. It fails with [bus.ErrUnavailable].
func (s *Store) Edition(ctx context.Context) (Edition, error) {
	found, err := s.redis.HMGet(ctx, s.keys.Definitions(), "version", "applied_at", "preparing").Result()
	if err != nil {
		return Edition{}, rdb.Wrap("read version of definitions", err)
	}
	version := rdb.Text(found[0])
	return Edition{editionOf(version, rdb.Text(found[1])), rdb.Integer(version, 0), rdb.Text(found[2])}, nil
}

// Unfinished returns the earlier moves that still have labels. No label is added to them any more,
// as their states are not defined. It fails with [bus.ErrUnavailable].
func (s *Store) Unfinished(ctx context.Context, moves []machines.StateMove) (unfinished []machines.StateMove, err error) {
	counts := make([]rdb.Reply[int64], len(moves))
	err = s.redis.Pipelined(ctx, "count labels", func(pipe rdb.Commands) {
		for i, move := range moves {
			counts[i] = pipe.ZCard(ctx, s.keys.LabelsIn(move.Machine, move.From))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, move := range moves {
		if counts[i].Val() > 0 {
			unfinished = append(unfinished, move)
		}
	}
	return unfinished, nil
}

// vanishing returns the states that must have no labels, and the moves that are needed.
func vanishing(
	current, next *machines.Definitions, moves []machines.StateMove,
) (vanished []machines.StateCount, going []machines.StateMove) {
	for _, move := range moves {
		known := slices.ContainsFunc(going, func(m machines.StateMove) bool { return m.Machine == move.Machine && m.From == move.From })
		if !known && next.State(move.Machine, move.From) == nil && next.State(move.Machine, move.To) != nil {
			going = append(going, move)
		}
	}
	require := func(machine machines.Name, state machines.StateName) {
		moved := slices.ContainsFunc(going, func(m machines.StateMove) bool { return m.Machine == machine && m.From == state })
		if next.State(machine, state) == nil && !moved {
			vanished = append(vanished, machines.StateCount{Machine: machine, State: state})
		}
	}
	for _, m := range current.Machines {
		for _, state := range m.States {
			require(m.Name, state.Name)
		}
	}
	for _, move := range current.Moves {
		require(move.Machine, move.From)
	}
	return vanished, going
}

// replaced returns why a script of definitions changed nothing, if so.
func replaced(what string, c rdb.Change) error {
	if c.Err == nil && c.Text(0) == "labels rest" {
		return readResting(c.Results[1:])
	}
	return replied(what, c)
}

func readResting(values []any) error {
	resting := &machines.LabelsRestError{}
	for triple := range slices.Chunk(values, 3) {
		count, _ := triple[2].(int64)
		resting.States = append(resting.States, machines.StateCount{
			Machine: machines.Name(rdb.Text(triple[0])), State: machines.StateName(rdb.Text(triple[1])), Labels: count,
		})
	}
	return resting
}
