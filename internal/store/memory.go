package store

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// DroppedBatch is a batch that will not be delivered.
type DroppedBatch struct {
	Subscriber bus.Token
	Events     int
}

// What one call drops at most, so that it does not keep Redis from serving others, and does not
// drop much more than is needed.
const (
	batchesPerDrop = 100
	eventsPerDrop  = 1000
)

// DropOldest drops some of the oldest batches, with their jobs and all that points to them, and
// returns them, oldest first. Batches that are being delivered stay. It returns none when no other
// is left.
func (s *Store) DropOldest(ctx context.Context) ([]DroppedBatch, error) {
	reply, err := s.redis.Run(ctx, scriptBatchDrop, batchesPerDrop, eventsPerDrop).List()
	if err != nil {
		return nil, rdb.Wrap("drop batches", err)
	}
	return droppedBatches(reply), nil
}

// droppedBatches reads subscribers and numbers of events, in turns.
func droppedBatches(reply []any) (dropped []DroppedBatch) {
	for i := 0; i+1 < len(reply); i += 2 {
		dropped = append(dropped, DroppedBatch{bus.Token(rdb.Text(reply[i])), int(reply[i+1].(int64))})
	}
	return dropped
}
