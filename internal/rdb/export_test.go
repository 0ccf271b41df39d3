package rdb

// Waiting is how many callers wait while the scripts of others run: -1 if none do.
func (g *Group) Waiting() int { return g.queue.Waiting() }
