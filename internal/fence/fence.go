// Package fence keeps clients from changing a bus that is closed, because it moves to another
// Redis, or is what another one moves to: see package move. Both say so in a field of their plans,
// which the scripts read that change something for a client. One that does not move has none, and
// costs a publish nothing.
package fence

import (
	"context"
	"embed"
	"slices"
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Field is the field of the plans that a bus has while it moves. No topic has such a name.
const Field = "?!"

// Closed begins its value, the mark, while the bus is closed.
const Closed = "closed"

// Library is what the scripts of a [Script] need besides the queue's.
var Library = rdb.Library{rdb.ReadLua(luaFiles, "fence")}

//go:embed lua
var luaFiles embed.FS

// Refusal is the word of a script that a closed bus refuses.
const Refusal = "moving"

// IsClosed is whether a mark says that the bus is closed.
func IsClosed(mark string) bool { return strings.HasPrefix(mark, Closed) }

// HeldField is the field of the plans that is there while a subscriber, by token, is held, because
// events for it wait where the bus was before: until when its client has paused it (ms), 0 if it
// has not; empty while it is being copied.
func HeldField(token string) string { return Field + token }

// Script is a script that changes something for a client. It has two variants, for all others and
// for package move, which changes what is closed. Besides what its header says, each may return
// {0, 'moving'}, and has changed nothing then.
type Script struct{ others, mover *rdb.Script }

// What variants begin with: see [Library].
const (
	forOthers = "local refused = refused_by_move()\nif refused then return refused end\n"
	forMover  = "local refused = refused_to_mover()\nif refused then return refused end\n"
)

// New is [rdb.NewScript] for a script that a closed bus refuses. Its library has [Library] in it,
// and the queue's.
func New(library rdb.Library, entry string) Script {
	return Script{rdb.NewScript(library, forOthers+entry), rdb.NewScript(library, forMover+entry)}
}

// Unfenced is [New] for a script that a closed bus does not refuse: it goes on with a change.
func Unfenced(library rdb.Library, entry string) Script {
	return Script{rdb.NewScript(library, entry), rdb.NewScript(library, forMover+entry)}
}

// Change is [rdb.Partition.Change] for the script. A mark is that which package move has given to
// the partition, empty for all others: with another one nothing is changed, because another run
// went on. Then, and on a bus that is closed, it fails with [bus.ErrMoving].
func (s Script) Change(ctx context.Context, p *rdb.Partition, mark string, args ...any) rdb.Change {
	script := s.others
	if mark != "" {
		script, args = s.mover, append(slices.Clip(args), mark)
	}
	change := p.Change(ctx, script, args...)
	if change.Err == nil && !change.Changed && change.Text(0) == Refusal {
		return rdb.Change{Err: bus.ErrMoving}
	}
	return change
}
