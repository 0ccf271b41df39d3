package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Memory is what Redis says about its memory.
type Memory struct {
	// Used is in bytes, counted as Redis counts it against its limit.
	Used int64
	// Max is Redis' own limit in bytes, 0 if it has none.
	Max int64
	// Evicts is whether Redis throws keys away by itself at its limit.
	Evicts bool
	// Freeing is whether Redis is about to free more, in the background.
	Freeing bool
}

// ErrMemoryUnknown says that Redis does not tell how much memory it uses, as the embedded engine.
var ErrMemoryUnknown = errors.New("redis does not tell how much memory it uses")

// Memory asks Redis about its memory. It fails with [ErrMemoryUnknown] or [bus.ErrUnavailable].
func (s *Store) Memory(ctx context.Context) (Memory, error) {
	info, err := s.redis.Info(ctx, "memory").Result()
	if _, refused := errors.AsType[redis.Error](err); refused && (judge(err) == answered || redis.HasErrorPrefix(err, "NOPERM")) {
		return Memory{}, fmt.Errorf("%w: %w", ErrMemoryUnknown, err)
	}
	if err != nil {
		return Memory{}, wrap("memory", err)
	}
	fields := infoFields(info)
	used := integer(fields["used_memory"], -1)
	if used < 0 {
		return Memory{}, ErrMemoryUnknown
	}
	limit := integer(fields["maxmemory"], 0)
	// Buffers for replicas are in it, but Redis does not count them against its limit, nor can dropping lower them.
	used -= integer(fields["mem_not_counted_for_evict"], 0)
	policy := fields["maxmemory_policy"]
	return Memory{
		Used: used, Max: limit, Evicts: limit > 0 && policy != "" && policy != "noeviction",
		Freeing: integer(fields["lazyfree_pending_objects"], 0) > 0,
	}, nil
}

// infoFields reads the lines "name:value" of INFO.
func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// DroppedBatch is a batch that will not be delivered.
type DroppedBatch struct {
	Subscriber bus.Token
	Events     int
}

// What one call drops at most, so that it does not keep Redis from serving others, and does not drop
// much more than is needed.
const (
	batchesPerDrop = 100
	eventsPerDrop  = 1000
)

// DropOldest drops some of the oldest batches, with their jobs and all that points to them, and
// returns them, oldest first. Batches that are being delivered stay. It returns none when no other is left.
func (s *Store) DropOldest(ctx context.Context) ([]DroppedBatch, error) {
	reply, err := s.run(ctx, scriptBatchDrop, s.abreast, batchesPerDrop, eventsPerDrop).Slice()
	if err != nil {
		return nil, wrap("drop batches", err)
	}
	return droppedBatches(reply), nil
}

// droppedBatches reads subscribers and numbers of events, in turns.
func droppedBatches(reply []any) (dropped []DroppedBatch) {
	for i := 0; i+1 < len(reply); i += 2 {
		dropped = append(dropped, DroppedBatch{bus.Token(text(reply[i])), int(reply[i+1].(int64))})
	}
	return dropped
}
