package rdb

import (
	"context"
	"log/slog"
	"time"
)

// nodes places partitions on a cluster. All keys of a partition are in one slot, so all its calls
// go to one node at a time.
type nodes struct {
	source  source
	log     *slog.Logger
	cluster *clusterClient
}

func newNodes(from source, log *slog.Logger) *nodes {
	return &nodes{from, log, newClusterClient(from.Nodes, from.ConnectTo)}
}

// open returns a client without connections, from which a hook sends all to the node that has the
// partition. Whether a partition is there does not depend on others: each has a state of its own.
func (n *nodes) open(namespace, partition string) (library, *connectionState) {
	state := newConnectionState(n.log.With("partition", partition))
	db := n.source.ConnectNowhere()
	db.AddHook(state)
	db.AddHook(n.cluster.Forward(SlotOf(namespace)))
	return db, state
}

func (n *nodes) connect(namespace string, longest time.Duration, state *connectionState) library {
	db := n.source.ConnectWaiter(longest)
	db.AddHook(state)
	db.AddHook(n.cluster.Dial(SlotOf(namespace)))
	return db
}

func (n *nodes) where(namespace string) string { return n.cluster.AddressOf(SlotOf(namespace)) }

func (n *nodes) ping(ctx context.Context) error { return n.cluster.Ping(ctx) }

func (n *nodes) close() error { return n.cluster.Close() }
