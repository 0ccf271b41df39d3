package queue

import (
	"context"
	"embed"
	"log/slog"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Kind is a kind of job that has a payload, or a lane. Its Lua library adds itself to the table
// KINDS: lua/lib/jobs.lua says with which functions. It is safe for concurrent use.
type Kind interface {
	// Name is the name of its jobs.
	Name() bus.JobName
	// Library is its Lua library.
	Library() rdb.Library
	// MaxInFlight is how many jobs of one lane may be in flight at once; 0 if each lane has a limit of
	// its own.
	MaxInFlight() int
	// Settings returns arguments for its functions, in every call: strings, numbers, booleans.
	Settings(ctx context.Context) []any
	// Payload reads the reply of its function take.
	Payload(job bus.Job, values []any) (Payload, error)
	// Discarded reads the reply of its function take for an entry that it discarded.
	Discarded(values []any) any
	// Result returns the arguments of its functions complete and retry; detail is the handler's result
	// for a payload, nil if there is none.
	Result(payload Payload, detail any) []any
}

// AheadKind is a kind that lets a worker take several entries of a lane at once, to run them one
// after the other: it takes one as usual, and the following ones ahead of their turn.
type AheadKind interface {
	Kind
	// MaxAhead is how many may be taken ahead, at most [MaxAhead].
	MaxAhead() int
	// PayloadAhead reads the reply of its function take_ahead for an entry, given the payload of the
	// one that it follows.
	PayloadAhead(job bus.Job, first Payload, values []any) (Payload, error)
}

// Payload describes a job of a [Kind].
type Payload interface {
	// LaneStanding is the standing of the entry's lane, when it was taken.
	LaneStanding() bus.Standing
	// Owners are the entry's, its lane's own first; none if it needs no share of the threads. Its
	// kind's function take passes the same names to put_off_if_full.
	Owners() []Owner
	// LogAttrs name the payload in lines of the log.
	LogAttrs() []slog.Attr
}

// Library is the Lua library of the queue, for scripts of others that add or wake entries.
var Library = rdb.Library{lua("lib/keys", "lib/jobs", "lib/lanes", "lib/wide", "lib/acquire", "lib/complete")}

//go:embed lua
var files embed.FS

func lua(names ...string) string { return rdb.ReadLua(files, names...) }
