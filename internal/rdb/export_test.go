package rdb

import "context"

// Waiting is how many callers wait while the scripts of others run: -1 if none do.
func (g *Group) Waiting() int { return g.queue.Waiting() }

// Late runs a script as a group does, and returns what those get who have waited for it.
func (g *Group) Late(ctx context.Context, script *Script) error {
	return g.run(ctx, []*groupCall{{call: script.Call()}})
}
