// Package queued says what is queued on a closed bus for its subscribers: whether all is delivered.
package queued

import (
	"context"
	"maps"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Left is what is queued for a subscriber; its zero value is nothing.
type Left struct {
	Events  int64 `json:"events"`
	Batches int64 `json:"batches"`
	// Replaying is whether a replay goes on, Relaying whether events may be on their way to its
	// partition.
	Replaying bool `json:"replaying"`
	Relaying  bool `json:"relaying"`
}

// Queued is what is queued on a bus.
type Queued struct {
	stores   *store.Bus
	relaying []bool // to each partition, by number
	parts    []part // of each partition
}

type part struct {
	events, batches map[string]string // token to how many
	replaying       map[string]bool
}

// Read reads what is queued on a bus, which is closed: so what is on its way between its partitions
// is read first, and nothing can be missed in between. It fails with [bus.ErrUnavailable].
func Read(ctx context.Context, all *store.Bus) (*Queued, error) {
	partitions := all.Partitions()
	q := &Queued{all, make([]bool, len(partitions)), make([]part, len(partitions))}
	for _, from := range all.Relays() {
		outboxes, err := from.Outboxes(ctx, len(partitions))
		if err != nil {
			return nil, err
		}
		for to, outbox := range outboxes {
			q.relaying[to] = q.relaying[to] || outbox.Events > 0
		}
	}
	for i, at := range partitions {
		k := store.Keys{Namespace: at.Namespace()}
		replaying, err := readReplays(ctx, at, k)
		if err != nil {
			return nil, err
		}
		var events, batches rdb.Reply[map[string]string]
		err = at.Pipelined(ctx, "read what is queued", func(pipe rdb.Commands) {
			events, batches = pipe.HGetAll(ctx, k.EventGauge()), pipe.HGetAll(ctx, k.BatchGauge())
		})
		if err == nil {
			err = at.RequireOpen(ctx) // or it may say nothing
		}
		if err != nil {
			return nil, err
		}
		q.parts[i] = part{events.Val(), batches.Val(), replaying}
	}
	return q, nil
}

// readReplays are the subscribers of a partition to which something is replayed.
func readReplays(ctx context.Context, at *rdb.Partition, k store.Keys) (map[string]bool, error) {
	ids, err := at.SMembers(ctx, k.RunningReplays()).Result()
	if err != nil {
		return nil, rdb.Wrap("read replays", err)
	}
	tokens := make([]rdb.Reply[[]any], len(ids))
	err = at.Pipelined(ctx, "read replays", func(pipe rdb.Commands) {
		for i, id := range ids {
			tokens[i] = pipe.HMGet(ctx, k.Replay(bus.ReplayID(id)), "token")
		}
	})
	if err != nil {
		return nil, err
	}
	replaying := map[string]bool{}
	for _, reply := range tokens {
		if token := rdb.Text(reply.Val()[0]); token != "" {
			replaying[token] = true
		}
	}
	return replaying, nil
}

// Tokens are the subscribers for which something is queued, or may be; some of them repeatedly.
func (q *Queued) Tokens() (tokens []bus.Token) {
	for _, p := range q.parts {
		for _, names := range [][]string{slices.Collect(maps.Keys(p.events)), slices.Collect(maps.Keys(p.batches)), slices.Collect(maps.Keys(p.replaying))} {
			for _, name := range names {
				tokens = append(tokens, bus.Token(name))
			}
		}
	}
	return tokens
}

// Of is what is queued for a subscriber. A gauge that is no number says that something is.
func (q *Queued) Of(token bus.Token) Left {
	number := q.stores.Of(token).Partition().Number()
	p := q.parts[number]
	return Left{read(p.events, token), read(p.batches, token), p.replaying[string(token)], q.relaying[number]}
}

// read is what a gauge says of a subscriber; 0 if nothing.
func read(gauge map[string]string, token bus.Token) int64 {
	text, is := gauge[string(token)]
	if !is {
		return 0
	}
	return rdb.Integer(text, 1)
}
