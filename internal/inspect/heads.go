package inspect

import (
	"context"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

// Head is the beginning of a batch's list, whichever subscriber it belongs to.
type Head struct {
	Token     bus.Token
	CreatedAt time.Time
	// Attempts counts the deliveries begun; Events counts the events still to be acknowledged.
	Attempts, Events int
}

// Heads reads the heads of batches. One that is gone has none. It fails with [bus.ErrUnavailable].
func (in *Inspector) Heads(ctx context.Context, ids []bus.BatchID) (map[bus.BatchID]Head, error) {
	headers, lengths := make([]rdb.Reply[[]string], len(ids)), make([]rdb.Reply[int64], len(ids))
	err := in.redis.Reads(ctx, "read batches", func(pipe rdb.Commands) {
		for at, id := range ids {
			headers[at] = pipe.LRange(ctx, in.keys.Batch(id), 0, store.BatchHeader-1)
			lengths[at] = pipe.LLen(ctx, in.keys.Batch(id))
		}
	})
	if err != nil {
		return nil, err
	}
	heads := map[bus.BatchID]Head{}
	for at, id := range ids {
		if head, ok := readHead(headers[at].Val(), lengths[at].Val()); ok {
			heads[id] = head
		}
	}
	return heads, nil
}

// readHead reads the head of a batch from its list, if that is one.
func readHead(header []string, length int64) (head Head, ok bool) {
	if len(header) < store.BatchHeader {
		return head, false
	}
	created, _ := strconv.ParseInt(header[1], 10, 64)
	attempts, _ := strconv.Atoi(header[2])
	return Head{
		Token: bus.Token(header[0]), CreatedAt: time.UnixMilli(created), Attempts: attempts, Events: max(int(length)-store.BatchHeader, 0),
	}, true
}
