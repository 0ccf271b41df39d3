package rdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// groupLimits bound each queue of a [Group]. A caller waits for the scripts of all others that are
// sent together, and all of them have the time of one call. So there are few, and one with many
// arguments counts as several: a unit has up to argumentsOfUnit.
var groupLimits = CommitLimits{Waiting: 2048, WaitingBytes: 8 << 20, Units: 32, Bytes: 1 << 20}

const argumentsOfUnit = 64

// errOverloaded is also a [bus.ErrUnavailable], for callers that retry until Redis has answered.
var errOverloaded = fmt.Errorf("%w: %w", bus.ErrUnavailable, bus.ErrOverloaded)

// Group runs scripts of many callers in few round trips: calls that arrive during one are sent
// together in the next. A single caller does not wait. A group is for scripts that are quick and
// return little, because all callers wait for them. When Redis does not answer in time, the callers
// that have waited for that fail too. It is safe for concurrent use.
type Group struct {
	partition *Partition
	// queues get calls in turn: with one queue, Redis would be idle while callers wake and the next
	// arrive.
	queues [2]*CommitQueue[*groupCall]
	calls  atomic.Uint32
}

type groupCall struct {
	call Call
	cmd  *redis.Cmd
	// isChange says that replicas must confirm the script's change, which failed if err is set.
	isChange bool
	err      error
}

// NewGroup makes a group of callers.
func (p *Partition) NewGroup() *Group {
	g := &Group{partition: p}
	for i := range g.queues {
		g.queues[i] = NewCommitQueue(groupLimits, g.run)
	}
	return g
}

// Run is [Partition.Run]. It fails also with [bus.ErrOverloaded].
func (g *Group) Run(ctx context.Context, script *Script, args ...any) Result {
	c := &groupCall{call: script.Call(args...)}
	if err := g.do(ctx, c); err != nil {
		c.cmd = redis.NewCmd(ctx)
		c.cmd.SetErr(err)
	}
	return Result{c.cmd}
}

// Change is [Partition.Change]. It fails also with [bus.ErrOverloaded].
func (g *Group) Change(ctx context.Context, script *Script, args ...any) Change {
	c := &groupCall{call: script.Call(args...), isChange: true}
	if err := g.do(ctx, c); err != nil {
		return Change{Err: err}
	}
	return readChange(c.cmd, c.err)
}

func (g *Group) do(ctx context.Context, c *groupCall) error {
	size := CommitSize{Units: 1 + len(c.call.args)/argumentsOfUnit}
	for _, arg := range c.call.args {
		switch arg := arg.(type) {
		case string:
			size.Bytes += len(arg)
		case []byte:
			size.Bytes += len(arg)
		}
	}
	err := g.queues[g.calls.Add(1)%uint32(len(g.queues))].Do(ctx, c, size)
	switch {
	case errors.Is(err, ErrFull):
		return errOverloaded
	case err == nil && c.cmd == nil: // another caller's commit panicked
		return bus.ErrUnavailable
	}
	return err
}

// run runs the gathered calls. It returns an error if Redis did not answer in time.
func (g *Group) run(ctx context.Context, gathered []*groupCall) error {
	calls, changes := make([]Call, len(gathered)), false
	for i, c := range gathered {
		calls[i] = c.call
		changes = changes || c.isChange
	}
	cmds, err := g.partition.run(ctx, calls, changes)
	var late error
	for i, c := range gathered {
		c.cmd, c.err = cmds[i], err
		if failure, ok := errors.AsType[net.Error](cmds[i].Err()); ok && failure.Timeout() {
			late = failure
		}
	}
	return late
}
