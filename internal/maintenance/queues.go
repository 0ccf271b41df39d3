package maintenance

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// clientQueue is the queue of one client, over all of its tokens.
type clientQueue struct {
	name   bus.ClientName
	tokens []bus.Token
	size   int64 // bytes of Redis, about
	oldest *store.OldestBatches
}

// oldestOf returns the batches of a client's tokens, from where an earlier run has come to: to pass
// older batches of others again, in each run, would take all of its time.
func (m *Maintenance) oldestOf(q *clientQueue) *store.OldestBatches {
	slices.Sort(q.tokens)
	if before := m.dropping[q.name]; before != nil && before.AreOf(q.tokens) && !before.Ended() {
		return before
	}
	return m.store.OldestBatches(q.tokens...)
}

// queues returns the queue of each client and, last, a queue of all batches with size 0: Autodrop
// uses it when no client is known to have any, as gauges may be wrong.
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
			q = &clientQueue{name: name}
			byClient[name], all = q, append(all, q)
		}
		q.tokens, q.size = append(q.tokens, token), q.size+size
	}
	for _, q := range all {
		q.oldest = m.oldestOf(q)
	}
	maps.DeleteFunc(m.dropping, func(name bus.ClientName, _ *store.OldestBatches) bool { return byClient[name] == nil })
	return append(all, last), nil
}

// dropFromLargest drops one slice of the oldest batches of the client with the largest queue, and
// returns them: none if no client has any left, or the time of the run is over. It removes clients
// without batches, and resizes the queue of the others, so that the next call may pick another.
func (m *Maintenance) dropFromLargest(ctx context.Context, d *drop, queues *[]*clientQueue) ([]store.DroppedBatch, error) {
	for len(*queues) > 0 {
		largest := slices.MaxFunc(*queues, func(a, b *clientQueue) int { return cmp.Compare(a.size, b.size) })
		dropped, err := largest.oldest.Drop(ctx, m.now(), func() bool { return m.goesOn(d) })
		if err != nil {
			return nil, err
		}
		if len(dropped) > 0 || !largest.oldest.Ended() {
			if len(largest.tokens) > 0 {
				m.dropping[largest.name] = largest.oldest
			}
			return dropped, m.resize(ctx, largest)
		}
		delete(m.dropping, largest.name)
		*queues = slices.DeleteFunc(*queues, func(q *clientQueue) bool { return q == largest })
	}
	return nil, nil
}

// resize reads the new size of a queue.
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
