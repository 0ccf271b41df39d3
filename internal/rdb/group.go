package rdb

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
	"routemaster/internal/groupcommit"
)

// groupLimits bound a [Group]. Its units are scripts: a caller waits for those of all others that
// are sent together.
var groupLimits = groupcommit.Limits{Waiting: 4096, WaitingBytes: 16 << 20, Units: 256, Bytes: 1 << 20}

// Group runs scripts of many callers in few round trips: those that come during one are sent
// together in the next. A single caller waits for nobody. It is safe for concurrent use.
type Group struct {
	partition *Partition
	queue     *groupcommit.Queue[*groupCall]
}

type groupCall struct {
	call Call
	cmd  *redis.Cmd
	// isChange says that replicas must confirm what the script did, which failed if err is set.
	isChange bool
	err      error
}

// NewGroup makes a group of callers.
func (p *Partition) NewGroup() *Group {
	g := &Group{partition: p}
	g.queue = groupcommit.New(groupLimits, g.run)
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
	size := groupcommit.Size{Units: 1}
	for _, arg := range c.call.args {
		switch arg := arg.(type) {
		case string:
			size.Bytes += len(arg)
		case []byte:
			size.Bytes += len(arg)
		}
	}
	err := g.queue.Do(ctx, c, size)
	switch {
	case errors.Is(err, groupcommit.ErrFull):
		return bus.ErrOverloaded
	case err == nil && c.cmd == nil: // somebody else's commit panicked
		return bus.ErrUnavailable
	}
	return err
}

// run runs what was gathered.
func (g *Group) run(ctx context.Context, gathered []*groupCall) {
	calls, changes := make([]Call, len(gathered)), false
	for i, c := range gathered {
		calls[i] = c.call
		changes = changes || c.isChange
	}
	var err error
	var cmds []*redis.Cmd
	if changes {
		cmds, err = g.partition.runConfirmed(ctx, calls)
	} else {
		cmds = g.partition.run(ctx, calls)
	}
	for i, c := range gathered {
		c.cmd, c.err = cmds[i], err
	}
}
