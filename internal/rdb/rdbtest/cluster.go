package rdbtest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/slots"
)

// clusterPortAbove is how much above its own port a node of a cluster listens for the others.
const clusterPortAbove = 10_000

// ClusterNode is [Real], as a node of a Redis Cluster.
func ClusterNode(t testing.TB, arguments ...string) *Server {
	address := freeAddress(t, clusterPortAbove)
	arguments = append([]string{"--cluster-enabled", "yes"}, arguments...)
	return newServer(t, "redis://"+address+patiently, startServer(t, address, arguments...))
}

// Cluster is a Redis Cluster for one test, empty at first.
type Cluster struct {
	URL string
	// Nodes are masters at first, then a replica of each of these, in the same order.
	Nodes []*Node
}

// Node is a server of a cluster.
type Node struct {
	*Server
	Address string
	id      string
}

// NewCluster starts a cluster of so many masters, with even parts of the slots and a replica each,
// which takes the place of its master when that is silent for nodeTimeout.
func NewCluster(t testing.TB, masters int, nodeTimeout time.Duration) *Cluster {
	t.Helper()
	c := &Cluster{}
	var addresses []string
	for range 2 * masters {
		// The less they may be silent, the earlier they find one another. They name a replica to clients
		// when it has got something of its master: a ping.
		server := ClusterNode(t, "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
		id := doOn(t, server, "cluster", "myid").(string)
		c.Nodes = append(c.Nodes, &Node{server, server.process.address, id})
		addresses = append(addresses, server.process.address)
	}
	c.URL = "redis+cluster://" + strings.Join(addresses, ",") + patiently
	for i, node := range c.Nodes[:masters] {
		first, end := i*slots.Count/masters, (i+1)*slots.Count/masters
		doOn(t, node.Server, "cluster", "addslotsrange", first, end-1)
		doOn(t, node.Server, "cluster", "set-config-epoch", i+1) // or they agree on that first
	}
	for i, node := range c.Nodes { // each all others, because hearsay takes seconds
		for _, other := range c.Nodes[:i] {
			host, port, _ := net.SplitHostPort(other.Address)
			doOn(t, node.Server, "cluster", "meet", host, port)
		}
	}
	c.requireOnEach(t, "the nodes do not find one another", func(node *Node) bool {
		return strings.Contains(doOn(t, node.Server, "cluster", "info").(string), "cluster_known_nodes:"+strconv.Itoa(len(c.Nodes))+"\r\n")
	})
	for i, replica := range c.Nodes[masters:] {
		doOn(t, replica.Server, "cluster", "replicate", c.Nodes[i].id)
	}
	c.requireOnEach(t, "the cluster is not complete", func(node *Node) bool {
		ranges, _ := node.Raw.ClusterSlots(t.Context()).Result()
		replicated := 0
		for _, r := range ranges {
			replicated += (r.End - r.Start + 1) * (len(r.Nodes) - 1)
		}
		return replicated == slots.Count && strings.Contains(doOn(t, node.Server, "cluster", "info").(string), "cluster_state:ok\r\n")
	})
	for _, replica := range c.Nodes[masters:] {
		requireFollows(t, replica.process)
	}
	for _, node := range c.Nodes {
		timeout := strconv.FormatInt(nodeTimeout.Milliseconds(), 10)
		require.NoError(t, node.Raw.ConfigSet(t.Context(), "cluster-node-timeout", timeout).Err())
	}
	return c
}

// Open is [Server.Open].
func (c *Cluster) Open(t testing.TB, adjust ...func(*rdb.Options)) *rdb.Client {
	return (&Server{URL: c.URL}).Open(t, adjust...)
}

// MasterOf is the node that has a partition, as the nodes say that answer; nil if they disagree.
func (c *Cluster) MasterOf(t testing.TB, p *rdb.Partition) (master *Node) {
	for _, node := range c.Nodes {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		ranges, err := node.Raw.ClusterSlots(ctx).Result()
		cancel()
		if err != nil {
			continue
		}
		said := c.find(ranges, slots.Of(p.Namespace()))
		if said == nil || master != nil && said != master {
			return nil
		}
		master = said
	}
	return master
}

func (c *Cluster) find(ranges []redis.ClusterSlot, slot int) *Node {
	for _, r := range ranges {
		for _, node := range c.Nodes {
			if r.Start <= slot && slot <= r.End && r.Nodes[0].ID == node.id {
				return node
			}
		}
	}
	return nil
}

// ReplicaOf is the replica of a node that was a master at first, or the other way round.
func (c *Cluster) ReplicaOf(node *Node) *Node {
	for i, n := range c.Nodes {
		if n == node {
			return c.Nodes[(i+len(c.Nodes)/2)%len(c.Nodes)]
		}
	}
	return nil
}

// RequireMaster waits until all nodes that answer agree that a node has a partition.
func (c *Cluster) RequireMaster(t testing.TB, p *rdb.Partition, node *Node) {
	t.Helper()
	require.Eventually(t, func() bool { return c.MasterOf(t, p) == node }, startTimeout, 10*time.Millisecond,
		"%s does not become the master of %s", node.Address, p.Namespace())
}

// FailOver makes the replica of a partition's master the master, as planned, and waits for it.
func (c *Cluster) FailOver(t testing.TB, p *rdb.Partition) (master *Node) {
	t.Helper()
	master = c.ReplicaOf(c.MasterOf(t, p))
	doOn(t, master.Server, "cluster", "failover")
	c.RequireMaster(t, p, master)
	return master
}

// Move is the move of a partition's slot from its master to another one, key by key.
type Move struct {
	cluster   *Cluster
	partition *rdb.Partition
	slot      int
	from, to  *Node
}

// Move begins to move a partition to a node.
func (c *Cluster) Move(t testing.TB, p *rdb.Partition, to *Node) *Move {
	t.Helper()
	m := &Move{c, p, slots.Of(p.Namespace()), c.MasterOf(t, p), to}
	doOn(t, to.Server, "cluster", "setslot", m.slot, "importing", m.from.id)
	doOn(t, m.from.Server, "cluster", "setslot", m.slot, "migrating", to.id)
	return m
}

// Keys moves keys, so many at most, and returns how many.
func (m *Move) Keys(t testing.TB, limit int) (moved int) {
	t.Helper()
	const atOnce = 100
	host, port, _ := net.SplitHostPort(m.to.Address)
	for moved < limit {
		keys := doOn(t, m.from.Server, "cluster", "getkeysinslot", m.slot, min(atOnce, limit-moved)).([]any)
		if len(keys) == 0 {
			return moved
		}
		doOn(t, m.from.Server, append([]any{"migrate", host, port, "", 0, startTimeout.Milliseconds(), "keys"}, keys...)...)
		moved += len(keys)
	}
	return moved
}

// End moves all other keys, and makes the node the slot's.
func (m *Move) End(t testing.TB) {
	t.Helper()
	for m.Keys(t, 1000) > 0 {
	}
	for _, node := range append([]*Node{m.to, m.from}, m.cluster.Nodes...) {
		if isMaster(t, node) {
			doOn(t, node.Server, "cluster", "setslot", m.slot, "node", m.to.id)
		}
	}
	m.cluster.RequireMaster(t, m.partition, m.to)
}

// isMaster is whether a node answers, and is a master.
func isMaster(t testing.TB, node *Node) bool {
	return strings.Contains(node.Raw.Info(t.Context(), "replication").Val(), "role:master\r\n")
}

func (c *Cluster) requireOnEach(t testing.TB, otherwise string, holds func(*Node) bool) {
	t.Helper()
	for _, node := range c.Nodes {
		require.Eventually(t, func() bool { return holds(node) }, startTimeout, 10*time.Millisecond, otherwise)
	}
}

// doOn runs a command on a server, which must succeed.
func doOn(t testing.TB, server *Server, args ...any) any {
	t.Helper()
	reply, err := server.Raw.Do(t.Context(), args...).Result()
	require.NoError(t, err, "%v", args)
	return reply
}
