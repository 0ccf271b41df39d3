// Package throttle ends the throttle of a subscriber whose deliveries have failed.
package throttle

import (
	"context"
	"embed"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
)

//go:embed lua
var luaFiles embed.FS

// scriptRetry is described in its header.
var scriptRetry = rdb.NewScript(store.Library, rdb.ReadLua(luaFiles, "subscriber_retry"))

// End has a subscriber be tried at once: its throttle ends, and of the batches that it has refused
// the one with the fewest attempts comes up. Nothing is delivered through a pause. It is no error
// if deliveries do not fail. It fails with [bus.ErrNotSubscribed] or [bus.ErrUnavailable].
func End(ctx context.Context, st *store.Store, token bus.Token) error {
	change := st.Partition().Change(ctx, scriptRetry, string(token))
	if change.Err == nil && !change.Changed { // for the only reason that there is
		return bus.ErrNotSubscribed
	}
	return rdb.Wrap("retry subscriber", change.Err)
}
