package maintenance

import (
	"cmp"
	"context"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// clientQueue is what is queued for one client, by all of its tokens.
type clientQueue struct {
	tokens []bus.Token
	size   int64 // bytes of Redis, about
	oldest *store.OldestBatches
}

// queues returns what is queued for each client, and in the end, with the size 0, what is queued
// for anyone: its batches go when no client is known to have any, as gauges may be wrong.
func (m *Maintenance) queues(ctx context.Context) ([]*clientQueue, error) {
	last := &clientQueue{oldest: m.store.OldestBatches()}
	sizes, err := m.store.QueueSizes(ctx)
	if err != nil && rdb.Answered(err) {
		return []*clientQueue{last}, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := m.store.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	byClient := map[bus.ClientName]*clientQueue{}
	var all []*clientQueue
	for token, size := range sizes {
		name := bus.PublicName(token, names[token])
		q := byClient[name]
		if q == nil {
			q = &clientQueue{}
			byClient[name], all = q, append(all, q)
		}
		q.tokens, q.size = append(q.tokens, token), q.size+size
	}
	for _, q := range all {
		q.oldest = m.store.OldestBatches(q.tokens...)
	}
	return append(all, last), nil
}

// dropFromLargest drops the oldest batches of the client for which most is queued, one slice, and
// returns them: none if none is left of any client. It forgets the clients of which none is left,
// and sizes what is left of the others, so that the next call may find another the largest.
func (m *Maintenance) dropFromLargest(ctx context.Context, queues *[]*clientQueue) ([]store.DroppedBatch, error) {
	for len(*queues) > 0 {
		largest := slices.MaxFunc(*queues, func(a, b *clientQueue) int { return cmp.Compare(a.size, b.size) })
		dropped, err := largest.oldest.Drop(ctx, m.now())
		if err != nil {
			return nil, err
		}
		if len(dropped) > 0 {
			return dropped, m.resize(ctx, largest)
		}
		*queues = slices.DeleteFunc(*queues, func(q *clientQueue) bool { return q == largest })
	}
	return nil, nil
}

// resize takes in what is left of a queue.
func (m *Maintenance) resize(ctx context.Context, q *clientQueue) error {
	if len(q.tokens) == 0 {
		return nil
	}
	sizes, err := m.store.QueueSizes(ctx, q.tokens...)
	q.size = 0
	for _, size := range sizes {
		q.size += size
	}
	return err
}
