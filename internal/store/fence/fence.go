// Package fence keeps clients from changing a bus that is closed, because it moves to another
// Redis, or is what another one moves to: see package move. Both say so in a field of their plans,
// which the scripts read that change something for a client. One that does not move has none, and
// costs a publish nothing.
package fence

import "routemaster/internal/rdb"

// Field is the field of the plans that a bus has while it moves. No topic has such a name.
const Field = "?!"

// Closed begins its value while the bus is closed.
const Closed = "closed"

// HeldField is the field of the plans that is there while a subscriber, by token, is held, because
// events for it wait where the bus was before: until when its client has paused it (ms), 0 if it
// has not; empty while it is being copied.
func HeldField(token string) string { return Field + token }

// Script is a script that changes something for a client. On a bus that is closed it returns
// {0, 'moving'}, unless package move runs it.
type Script struct{ fenced, free *rdb.Script }

// begin begins such a script; the function is in the store's lua/lib/moves.lua.
const begin = "local refused = refused_by_move()\nif refused then return refused end\n"

// New is [rdb.NewScript] for such a script. Its library has the store's in it.
func New(library rdb.Library, entry string) Script {
	return Script{rdb.NewScript(library, begin+entry), rdb.NewScript(library, entry)}
}

// For is what is to be run, for package move or for others.
func (s Script) For(isMover bool) *rdb.Script {
	if isMover {
		return s.free
	}
	return s.fenced
}
