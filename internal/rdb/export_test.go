package rdb

import "context"

// Waiting is how many callers wait while the scripts of others run: -1 if one need not wait.
func (g *Group) Waiting() (callers int) {
	for _, queue := range g.queues {
		waiting := queue.Waiting()
		if waiting < 0 {
			return -1
		}
		callers += waiting
	}
	return callers
}

// Late runs a script as a group does, and returns the error that its waiting callers get.
func (g *Group) Late(ctx context.Context, script *Script) error {
	return g.run(ctx, []*groupCall{{call: script.Call()}})
}

// ClusterClient and NewClusterClient are how partitions are found.
type ClusterClient = clusterClient

var NewClusterClient = newClusterClient
