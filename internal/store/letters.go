package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/wire"
)

// The scripts. Each file's header states its arguments, its result and what it keeps.
var (
	scriptLetterRedeliver = newScript("letter_redeliver")
	scriptLetterDiscard   = newScript("letter_discard")
	scriptLetterDrop      = newScript("letter_drop")
	scriptLetterTrim      = newScript("letter_trim")
)

// ErrLetterUnknown means that the subscriber has no such dead letter.
var ErrLetterUnknown = errors.New("there is no such dead letter")

// Letters are the dead letters of all subscribers in a store: events that the bus no longer
// delivers, one letter for events that died together. The step that completes a delivery creates
// them: lua/lib/letters.lua. Letters lists them, redelivers them, discards them, and removes them
// if they are too many or too old. It is safe for concurrent use.
type Letters struct {
	redis *rdb.Partition
	keys  layout.Keys
}

// NewLetters returns the dead letters in a store.
func NewLetters(st *Store) *Letters {
	return &Letters{st.Partition(), layout.Keys{Namespace: st.Partition().Namespace()}}
}

// Letter is a dead letter, without its events.
type Letter struct {
	ID bus.BatchID
	// DiedAt is when the bus gave up on the events, CreatedAt when the first of their batch came.
	DiedAt, CreatedAt time.Time
	Reason            bus.DeathReason
	// Status is the status of the endpoint's last answer, 0 if there was none. Error says why there
	// was none, and is empty if there was one.
	Status int
	Error  string
	// Note is the note on the event in the endpoint's receipt.
	Note string
	// Attempts is how often the batch was tried.
	Attempts int
	// Events is how many events are in the letter, Bytes their size, packed.
	Events, Bytes int
	// WebhookID is the id of the last delivery of just these events.
	WebhookID string
}

// LetterEventsPerPage is how many events [Letters.Show] returns at most.
const LetterEventsPerPage = 1000

// Show returns a dead letter of a subscriber and, from an index on, its events as
// [wire.ShowFirst] shows them, at most [LetterEventsPerPage]. It fails with [ErrLetterUnknown] or
// [bus.ErrUnavailable].
func (l *Letters) Show(ctx context.Context, token bus.Token, id bus.BatchID, from int) (Letter, []json.RawMessage, error) {
	var letter letterReplies
	var events rdb.Reply[[]string]
	var diedAt rdb.Reply[float64]
	err := l.redis.Reads(ctx, "show dead letter", func(pipe rdb.Commands) {
		diedAt = pipe.ZScore(ctx, l.keys.DeadLetters(token), string(id))
		letter = l.ask(ctx, pipe, id)
		first := int64(BatchHeader + max(from, 0))
		events = pipe.LRange(ctx, l.keys.DeadLetter(id), first, first+LetterEventsPerPage-1)
	})
	if err != nil {
		return Letter{}, nil, err
	}
	found, ok := letter.read(id, diedAt.Val())
	if !ok || diedAt.Err() != nil {
		return Letter{}, nil, ErrLetterUnknown
	}
	return found, wire.ShowFirst(events.Val()), nil
}

// letterReplies are the replies about a letter.
type letterReplies struct {
	cause  rdb.Reply[map[string]string]
	header rdb.Reply[[]string]
	length rdb.Reply[int64]
}

func (l *Letters) ask(ctx context.Context, pipe rdb.Commands, id bus.BatchID) letterReplies {
	return letterReplies{
		cause:  pipe.HGetAll(ctx, l.keys.DeadLetterCause(id)),
		header: pipe.LRange(ctx, l.keys.DeadLetter(id), 0, BatchHeader-1),
		length: pipe.LLen(ctx, l.keys.DeadLetter(id)),
	}
}

// read makes a letter of the replies, given its time of death (ms). It reports whether there is
// one: one whose events are gone is none.
func (r letterReplies) read(id bus.BatchID, diedAt float64) (letter Letter, ok bool) {
	header, cause := r.header.Val(), r.cause.Val()
	if r.length.Val() <= BatchHeader || len(header) < BatchHeader {
		return letter, false
	}
	return Letter{
		ID: id, DiedAt: time.UnixMilli(int64(diedAt)), CreatedAt: time.UnixMilli(rdb.Integer(header[1], 0)),
		Reason: bus.DeathReason(cause["reason"]), Status: int(rdb.Integer(cause["status"], 0)), Error: cause["error"],
		Note: cause["note"], Attempts: int(rdb.Integer(header[2], 0)), Events: int(r.length.Val() - BatchHeader),
		Bytes: int(rdb.Integer(cause["bytes"], 0)), WebhookID: cause["webhook_id"],
	}, true
}
