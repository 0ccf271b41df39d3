package store

import (
	"context"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// scriptSubscriberRetry is described in its header.
var scriptSubscriberRetry = newScript("subscriber_retry")

// EndThrottle lets the bus deliver to a subscriber at once: its throttle ends, and of the batches
// that it has refused the one with the fewest attempts comes up. A pause stays in force. If
// deliveries do not fail, EndThrottle is a no-op. It fails with [bus.ErrNotSubscribed] or
// [bus.ErrUnavailable].
func EndThrottle(ctx context.Context, st *Store, token bus.Token) error {
	change := st.Partition().Change(ctx, scriptSubscriberRetry, string(token))
	if change.Err == nil && !change.Changed { // for the only reason that there is
		return bus.ErrNotSubscribed
	}
	return rdb.Wrap("retry subscriber", change.Err)
}
