package storetest

import (
	"cmp"
	"fmt"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
)

// DeadLetter describes a dead letter for a test. Its UID is [LetterID] of Number.
type DeadLetter struct {
	Number int
	Token  bus.Token
	Reason bus.DeathReason
	// Status is the status of the last answer: 400 if it is 0, none if it is negative.
	Status int
	// Created and DiedAt are in ms after [Start].
	Created, DiedAt int
	Events          []int // see [Packed]
	Revision        int
	WebhookID       string
}

// LetterID is the UID of a test's dead letter.
func LetterID(number int) bus.BatchID { return bus.BatchID(fmt.Sprintf("letter%014d", number)) }

// Bury writes a dead letter as the deliveries do.
func (b *Bus) Bury(l DeadLetter) bus.BatchID {
	b.T.Helper()
	ctx, id, diedAt := b.T.Context(), LetterID(l.Number), After(l.DiedAt).UnixMilli()
	keys := layout.Keys{Namespace: b.Partition.Namespace()}
	list := []any{string(l.Token), After(l.Created).UnixMilli(), 3}
	bytes := 0
	for _, i := range l.Events {
		packed := Packed(b.T, "widgets", i)
		list, bytes = append(list, string(packed)), bytes+len(packed)
	}
	status := max(cmp.Or(l.Status, 400), 0)
	for _, err := range []error{
		b.Redis.RPush(ctx, keys.DeadLetter(id), list...).Err(),
		b.Redis.HSet(ctx, keys.DeadLetterCause(id), "reason", string(l.Reason), "status", status, "error", "", "note", "",
			"webhook_id", l.WebhookID, "revision", l.Revision, "bytes", bytes, "died_at", diedAt).Err(),
		b.Redis.ZIncrBy(ctx, keys.DeadLetters(l.Token), float64(diedAt), string(id)).Err(),
		b.Redis.HIncrBy(ctx, keys.DeadLetterEvents(), string(l.Token), int64(len(l.Events))).Err(),
		b.Redis.HIncrBy(ctx, keys.DeadLetterBytes(), string(l.Token), int64(bytes)).Err(),
	} {
		require.NoError(b.T, err)
	}
	return id
}
