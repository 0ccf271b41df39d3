package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
)

// The fields of a record, as FIELDS of lua/lib/labels.lua orders them.
const (
	fieldState = iota
	fieldCreatedAt
	fieldEnteredAt
	fieldMoves
	fieldVersion
	fieldPrevious
	fieldDeletedAt
	fieldBy
	fieldAsked
	fieldTrigger
	fieldPending
	fieldSteps
	fieldFailures
	fieldError
	fieldAttempts
	fieldStatus
	fieldReason
	fieldErroredAt
	fieldTaken
	fieldTraceparent
	fieldAcknowledged
	fieldHops
	fieldCount
)

// readLabel reads the fields of a record. Of a label that was deleted, the state is empty.
func readLabel(machine machines.Name, name machines.LabelName, metadata any, values []any) (machines.Label, error) {
	if len(values) != fieldCount {
		return machines.Label{}, fmt.Errorf("read label: %d fields", len(values))
	}
	number := func(field int) int64 { return rdb.Integer(rdb.Text(values[field]), 0) }
	label := machines.Label{
		Machine: machine, Name: name, State: machines.StateName(rdb.Text(values[fieldState])),
		Metadata:  readMetadata(metadata),
		CreatedAt: fromMillis(values[fieldCreatedAt]), EnteredAt: fromMillis(values[fieldEnteredAt]),
		Moves: number(fieldMoves), Version: number(fieldVersion),
		Previous: machines.StateName(rdb.Text(values[fieldPrevious])), DeletedAt: fromMillis(values[fieldDeletedAt]),
		Trigger: rdb.Text(values[fieldTrigger]), Pending: rdb.Text(values[fieldPending]) == "1",
		Steps: int(number(fieldSteps)), Failures: int(number(fieldFailures)), Error: rdb.Text(values[fieldError]),
		Attempts: int(number(fieldAttempts)), LastStatus: int(number(fieldStatus)), LastError: bus.Reason(rdb.Text(values[fieldReason])),
		ErroredAt: fromMillis(values[fieldErroredAt]), Hops: int(number(fieldHops)),
	}
	if asked := rdb.Text(values[fieldAsked]); asked != "" {
		label.Trigger = asked
	}
	return label, nil
}

// readMetadata reads the metadata of a label. Metadata that another program has changed to a
// non-object counts as empty.
func readMetadata(value any) json.RawMessage {
	if text := rdb.Text(value); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return json.RawMessage("{}")
}

// Label returns a label with the definitions that hold for it. It fails with
// [machines.ErrUnknownLabel], [machines.ErrLabelDeleted] (then with the rest of the label that is
// kept) or [bus.ErrUnavailable].
func (s *Store) Label(
	ctx context.Context, machine machines.Name, name machines.LabelName,
) (label machines.Label, definitions *machines.Definitions, err error) {
	reply, err := s.group.Run(ctx, scriptLabelShow, string(machine), string(name)).List()
	if err != nil {
		return label, nil, rdb.Wrap("read label", err)
	}
	if definitions, err = s.definitions(ctx, rdb.Text(reply[0])); err != nil {
		return label, nil, err
	}
	values, there := reply[2].([]any)
	if !there {
		return label, definitions, machines.ErrUnknownLabel
	}
	if label, err = readLabel(machine, name, reply[1], values); err != nil {
		return label, definitions, err
	}
	if label.State == "" {
		return label, definitions, machines.ErrLabelDeleted
	}
	next, queued := reply[3].(string)
	score, _ := strconv.ParseFloat(next, 64)
	asked := rdb.Text(values[fieldAsked]) != "" // a worker has put it off, and not looked yet
	if score > 0 {
		label.NextAt = time.UnixMilli(int64(math.Ceil(score))).UTC()
	}
	label.Resting = !queued || score > 0 && !asked
	return label, definitions, nil
}

// Hops returns how many moves have set off one another, through topics, up to a move that was
// published: 0 if that is not known any more. It fails with [bus.ErrUnavailable].
func (s *Store) Hops(ctx context.Context, m machines.PublishedMove) (int, error) {
	hops, err := s.group.Run(ctx, scriptLabelHops, string(m.Machine), string(m.Label), m.At, string(m.From), string(m.To)).Int()
	return hops, rdb.Wrap("read hops", err)
}

// createArgs are the arguments of lua/label_create.lua, under the same names there.
type createArgs struct {
	Machine, Name string
	Now           int64 // ms
	Edition       string
	State         string // the first
	Metadata      []byte
	Trigger       string // for which a worker is to look at it; empty for none
	// Publication is how the move is published: see tell in lua/lib/labels.lua. Traceparent may be
	// empty.
	Publication, Traceparent string
	Hops                     int
	By                       string // the client; empty for root
}

func (a createArgs) list() []any {
	return []any{
		a.Machine, a.Name, a.Now, a.Edition, a.State, a.Metadata, a.Trigger, a.Publication, a.Traceparent, a.Hops, a.By,
	}
}

// create makes a label in the first state of its machine, by definitions; a trigger, if not empty,
// queues it for a worker. It fails with [machines.ErrLabelExists], [machines.ErrLabelDeleted],
// [machines.ErrChanged] (the definitions), an [account.FullError] or [bus.ErrUnavailable].
func (s *Store) create(
	ctx context.Context, m *machines.Machine, name machines.LabelName, d *machines.Definitions,
	metadata []byte, trigger string, r *request, now time.Time,
) error {
	args := createArgs{
		Machine: string(m.Name), Name: string(name), Now: now.UnixMilli(), Edition: d.Edition, State: string(m.First().Name),
		Metadata: metadata, Trigger: trigger, Publication: publication(m), Traceparent: r.traceparent, Hops: r.Hops, By: string(r.By),
	}
	return replied("create label", s.group.Change(ctx, scriptLabelCreate, args.list()...))
}

// isAtRest reports whether no worker has work to do for a label now, or it is gone.
func (s *Store) isAtRest(ctx context.Context, id labelID) (bool, error) {
	rests, err := s.group.Run(ctx, scriptLabelRests, string(id.machine), string(id.name)).Int()
	return rests == 1, rdb.Wrap("look at label", err)
}

// patch is the result of changes of a label.
type patch struct {
	metadata []byte
	// trigger, if not empty, starts an evaluation of the label's gate; pending repeats it each minute
	// until the gate opens. The traceparent comes from the request that caused it.
	trigger     string
	pending     bool
	traceparent string
	hops        int
	// paused, if not empty, is why the label is errored since now. Without a trigger only.
	paused string
	now    time.Time
}

// patchArgs are the arguments of lua/label_patch.lua, under the same names there: a patch, and the
// label as it was read.
type patchArgs struct {
	Machine, Name, Edition string
	Version                int64 // of the metadata
	State                  string
	Metadata               []byte
	Trigger                string
	Pending                bool
	Traceparent            string
	Hops                   int
	Paused                 string
	Now                    int64 // ms
}

func (a patchArgs) list() []any {
	return []any{
		a.Machine, a.Name, a.Edition, a.Version, a.State, a.Metadata, a.Trigger, a.Pending, a.Traceparent, a.Hops, a.Paused, a.Now,
	}
}

// patch replaces the metadata of a label as it was read with its definitions. It fails with
// [machines.ErrUnknownLabel], [machines.ErrLabelDeleted], [machines.ErrChanged] (the definitions,
// the state or the metadata), an [account.FullError] or [bus.ErrUnavailable].
func (s *Store) patch(
	ctx context.Context, label *machines.Label, d *machines.Definitions, p *patch,
) error {
	args := patchArgs{
		Machine: string(label.Machine), Name: string(label.Name), Edition: d.Edition, Version: label.Version,
		State: string(label.State), Metadata: p.metadata, Trigger: p.trigger, Pending: p.pending,
		Traceparent: p.traceparent, Hops: p.hops, Paused: p.paused, Now: p.now.UnixMilli(),
	}
	return replied("patch label", s.group.Change(ctx, scriptLabelPatch, args.list()...))
}

// Delete deletes a label of a machine. It is no error if there is none. It fails with
// [machines.ErrNotClient] or [bus.ErrUnavailable].
func (s *Store) Delete(ctx context.Context, m *machines.Machine, name machines.LabelName, now time.Time) error {
	if !m.Clients.Allow(s.client) {
		return machines.ErrNotClient
	}
	return replied("delete label", s.group.Change(ctx, scriptLabelDelete, string(m.Name), string(name), now.UnixMilli(), publication(m)))
}

// Ask queues a label that is in a state for a worker. It fails with [machines.ErrUnknownLabel],
// [machines.ErrLabelDeleted], [machines.ErrChanged] (the state) or [bus.ErrUnavailable].
func (s *Store) Ask(
	ctx context.Context, machine machines.Name, name machines.LabelName, state machines.StateName, trigger string,
) error {
	return replied("evaluate label", s.group.Change(ctx, scriptLabelAsk, string(machine), string(name), string(state), trigger, s.traceparent(ctx)))
}

// Retry has an errored label try its action again, with all its attempts. It fails with
// [machines.ErrUnknownLabel], [machines.ErrLabelDeleted], [machines.ErrNotErrored] or
// [bus.ErrUnavailable].
func (s *Store) Retry(ctx context.Context, machine machines.Name, name machines.LabelName) error {
	return replied("retry label", s.group.Change(ctx, scriptLabelRetry, string(machine), string(name), s.traceparent(ctx)))
}

// History returns the last moves of a label as it was read, the latest first, at most
// [machines.Kept] and its creation, and how many there were, its creation included. It fails with
// [bus.ErrUnavailable].
func (s *Store) History(ctx context.Context, label *machines.Label) (moves []machines.Move, count int64, err error) {
	list, err := s.redis.LRange(ctx, s.keys.LabelHistory(label.Machine, label.Name), 0, -1).Result()
	if err != nil {
		return nil, 0, rdb.Wrap("read history", err)
	}
	for _, text := range list {
		move, err := readMove(text)
		if err != nil {
			return nil, 0, fmt.Errorf("read history of %s/%s: %w", label.Machine, label.Name, err)
		}
		moves = append(moves, move)
	}
	if label.Moves <= int64(len(moves)) && len(moves) < machines.Kept {
		first := label.State
		if len(moves) > 0 {
			first = moves[len(moves)-1].From
		}
		moves = append(moves, machines.Move{At: label.CreatedAt, To: first})
	}
	return moves, label.Moves + 1, nil
}

// readMove reads a move as note_move of lua/lib/labels.lua writes it.
func readMove(text string) (move machines.Move, err error) {
	var at int64
	var from, to *machines.StateName
	values := []any{&at, &from, &to, &move.Why}
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return move, err
	}
	move.At = time.UnixMilli(at).UTC()
	if from != nil {
		move.From = *from
	}
	if to != nil {
		move.To = *to
	}
	return move, nil
}
