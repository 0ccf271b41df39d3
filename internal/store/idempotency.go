package store

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// IdempotencySlices is the maximum number of slices of a client's keys: SLICES in
// lua/lib/idempotency.lua.
const IdempotencySlices = 8

// clientsPerDrop is how many clients one call looks at, so that it does not block Redis for long.
const clientsPerDrop = 100

// DropIdempotencyKeys drops the oldest slice of idempotency keys of each of some clients, and
// returns how many keys went. It takes no memory. Redis frees it in the background: see
// [Memory].Freeing.
func (s *Store) DropIdempotencyKeys(ctx context.Context, clients []bus.ClientName) (keys int, err error) {
	for len(clients) > 0 {
		n := min(len(clients), clientsPerDrop)
		args := make([]any, n)
		for i, name := range clients[:n] {
			args[i] = string(name)
		}
		clients = clients[n:]
		dropped, err := s.redis.Run(ctx, scriptIdempotencyDrop, args...).Int()
		if err != nil {
			return keys, rdb.Wrap("drop idempotency keys", err)
		}
		keys += dropped
	}
	return keys, nil
}
