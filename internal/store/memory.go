package store

import (
	"context"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// DroppedBatch is a batch that will not be delivered. Its events do not include what a gap notice
// tells, which was lost before.
type DroppedBatch struct {
	Subscriber bus.Token
	Events     int
}

// ExpiredBatch is a batch that came up and was older than its subscriber keeps batches.
type ExpiredBatch struct {
	Client bus.ClientName
	Events int
}

// What one call drops at most, so that it does not keep Redis from serving others, and does not
// drop much more than is needed.
const (
	batchesPerDrop = 100
	eventsPerDrop  = 1000
)

// DropOldest drops some of the oldest batches, with their jobs and all that points to them, and
// returns them, oldest first. Batches that are being delivered stay, and so do gap notices that
// were never tried. It returns none when no other is left.
func (s *Store) DropOldest(ctx context.Context, now time.Time) (dropped []DroppedBatch, err error) {
	reply, err := s.redis.Run(ctx, scriptBatchDrop, batchesPerDrop, eventsPerDrop, now.UnixMilli(), bus.NewBatchSeed()).List()
	if err != nil {
		return nil, rdb.Wrap("drop batches", err)
	}
	for i := 0; i+1 < len(reply); i += 2 {
		dropped = append(dropped, DroppedBatch{bus.Token(rdb.Text(reply[i])), int(reply[i+1].(int64))})
	}
	return dropped, nil
}
