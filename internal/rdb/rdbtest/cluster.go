package rdbtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
)

// clusterPortAbove is how much above its own port a node of a cluster listens for the others.
const clusterPortAbove = 10_000

// ClusterNode is [Real], as a node of a Redis Cluster.
func ClusterNode(t testing.TB, arguments ...string) *Server {
	return clusterNode(t, "", certificate{}, arguments...)
}

func clusterNode(t testing.TB, server string, c certificate, arguments ...string) *Server {
	address := freeAddress(t, clusterPortAbove)
	arguments = append([]string{"--cluster-enabled", "yes"}, arguments...)
	return newServer(t, "redis://"+address+patiently, startServerWith(t, server, c, address, arguments...))
}

// Cluster is a Redis Cluster for one test, empty at first.
type Cluster struct {
	URL string
	// Nodes are masters at first, then a replica of each of these, in the same order, and so on.
	Nodes   []*Node
	masters int
}

// ClusterOptions configure a test's cluster.
type ClusterOptions struct {
	// Replicas is how many each master has.
	Replicas int
	// Server is the command that starts each server: [Engine] if it is empty. Arguments are theirs.
	Server    string
	Arguments []string
	// TLS refuses connections without a certificate. It skips the test where redis-server is built
	// without TLS.
	TLS bool
	// User makes the URL name a user with the [Rights] and no others.
	User bool
}

// user is the part of a URL that names the user.
func (o ClusterOptions) user() string {
	if o.User {
		return "bus:secret@"
	}
	return ""
}

// Node is a server of a cluster.
type Node struct {
	*Server
	Address string
	id      string
}

// NewCluster starts a cluster of so many masters, with even parts of the slots and a replica each,
// which takes the place of its master when that is silent for nodeTimeout. The test fails if a user
// lacks a right.
func NewCluster(t testing.TB, masters int, nodeTimeout time.Duration, adjust ...func(*ClusterOptions)) *Cluster {
	t.Helper()
	o := ClusterOptions{Replicas: 1}
	for _, f := range adjust {
		f(&o)
	}
	c := &Cluster{masters: masters}
	var shown certificate
	if o.TLS {
		shown = newCertificate(t)
	}
	if o.User {
		o.Arguments = append(userArguments(), o.Arguments...)
	}
	var addresses []string
	for range (1 + o.Replicas) * masters {
		// The less they may be silent, the earlier they find one another. They name a replica to clients
		// when it has got something of its master: a ping.
		server := clusterNode(t, o.Server, shown, append([]string{
			"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		}, o.Arguments...)...)
		id := doOn(t, server, "cluster", "myid").(string)
		c.Nodes = append(c.Nodes, &Node{server, server.processes[0].address, id})
		addresses = append(addresses, server.processes[0].address)
	}
	c.URL = shown.scheme() + "+cluster://" + o.user() + strings.Join(addresses, ",") + patiently + shown.parameters()
	for i, node := range c.Nodes[:masters] {
		first, end := i*rdb.SlotCount/masters, (i+1)*rdb.SlotCount/masters
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
		doOn(t, replica.Server, "cluster", "replicate", c.Nodes[i%masters].id)
	}
	c.requireOnEach(t, "the cluster is not complete", func(node *Node) bool {
		_, err := node.serves(t.Context(), o.Replicas)
		return err == nil
	})
	for _, node := range c.Nodes {
		timeout := strconv.FormatInt(nodeTimeout.Milliseconds(), 10)
		require.NoError(t, node.Raw.ConfigSet(t.Context(), "cluster-node-timeout", timeout).Err())
	}
	c.requireNothingRefused(t)
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
		ranges, err := rdb.AskRanges(ctx, node.Raw)
		cancel()
		if err != nil {
			continue
		}
		said := c.find(ranges, rdb.SlotOf(p.Namespace()))
		if said == nil || master != nil && said != master {
			return nil
		}
		master = said
	}
	return master
}

func (c *Cluster) find(ranges []rdb.NodeRange, slot int) *Node {
	for _, r := range ranges {
		for _, node := range c.Nodes {
			if r.First <= slot && slot <= r.Last && r.Nodes[0].ID == node.id {
				return node
			}
		}
	}
	return nil
}

// countReplicated is how many slots have a replica, each as often as it has one.
func countReplicated(ranges []rdb.NodeRange) (replicated int) {
	for _, r := range ranges {
		replicated += (r.Last - r.First + 1) * (len(r.Nodes) - 1)
	}
	return replicated
}

// ReplicaOf returns the next of the nodes that had the same slots at first: with one replica for
// each master, a master's replica or a replica's master.
func (c *Cluster) ReplicaOf(node *Node) *Node {
	for i, n := range c.Nodes {
		if n == node {
			return c.Nodes[(i+c.masters)%len(c.Nodes)]
		}
	}
	return nil
}

// Whole returns the masters by their first slot, if the cluster is whole: every node serves, each
// slot has a master and as many replicas as at first, which have its data, and all nodes agree on
// that. Otherwise the error says what is wrong.
func (c *Cluster) Whole(ctx context.Context) (masters map[int]*Node, err error) {
	replicas := len(c.Nodes)/c.masters - 1
	for _, node := range c.Nodes {
		ranges, err := node.serves(ctx, replicas)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", node.Address, err)
		}
		said := map[int]*Node{}
		for _, r := range ranges {
			said[r.First] = c.find(ranges, r.First)
		}
		if masters != nil && !maps.Equal(said, masters) {
			return nil, fmt.Errorf("%s takes others for masters: %v", node.Address, ranges)
		}
		masters = said
	}
	return masters, nil
}

// serves returns the ranges that a node knows, each with as many replicas. It fails unless the node
// follows a master that it is connected to, or is one that sends to as many replicas all that it
// does; and if it waits for others, as one does that has just been started. A replica takes itself
// for connected before its master sends anything.
func (n *Node) serves(ctx context.Context, replicas int) ([]rdb.NodeRange, error) {
	ranges, err := rdb.AskRanges(ctx, n.Raw)
	if err != nil {
		return nil, err
	}
	if known := countReplicated(ranges); known != replicas*rdb.SlotCount {
		return nil, fmt.Errorf("it knows %d replicas of slots, not %d: %v", known, replicas*rdb.SlotCount, ranges)
	}
	replication, err := n.Raw.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	follows := strings.Contains(replication, "master_link_status:up\r\n")
	leads := strings.Contains(replication, "role:master\r\n") && strings.Count(replication, ",state=online,") == replicas
	if !follows && !leads {
		return nil, errors.New("not in sync: " + replication)
	}
	state, err := n.Raw.ClusterInfo(ctx).Result()
	if err == nil && !strings.Contains(state, "cluster_state:ok\r\n") {
		err = errors.New("does not serve: " + state)
	}
	return ranges, err
}

// Chain starts a replica again as the replica of another one, as Redis may leave it after a
// failover, for good: see https://github.com/redis/redis/issues/15472. No command does that.
func (c *Cluster) Chain(t testing.TB, replica, other *Node) {
	t.Helper()
	replica.Kill(t)
	file := filepath.Join(replica.processes[0].dir, "nodes.conf")
	known, err := os.ReadFile(file)
	require.NoError(t, err)
	own := regexp.MustCompile(`(myself,slave) \w+`)
	require.Regexp(t, own, string(known))
	require.NoError(t, os.WriteFile(file, own.ReplaceAll(known, []byte("$1 "+other.id)), 0o600))
	replica.Restart(t)
}

// Unchain has each replica of a replica follow the master, as its operator would: see
// [Cluster.Chain].
func (c *Cluster) Unchain(ctx context.Context) error {
	masters := map[string]string{} // by the ID of a node, as it says itself; empty of a master
	for _, node := range c.Nodes {
		known, err := node.Raw.ClusterNodes(ctx).Result()
		if err != nil {
			return fmt.Errorf("%s: %w", node.Address, err)
		}
		for line := range strings.Lines(known) {
			if fields := strings.Fields(line); strings.Contains(fields[2], "myself") {
				masters[node.id] = strings.TrimPrefix(fields[3], "-")
			}
		}
	}
	for _, node := range c.Nodes {
		if master := masters[masters[node.id]]; master != "" && masters[master] == "" {
			if err := node.Raw.Do(ctx, "cluster", "replicate", master).Err(); err != nil {
				return fmt.Errorf("%s: %w", node.Address, err)
			}
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

// RequireSuccessor waits until one of the nodes that had the same slots as a node at first has
// taken its place.
func (c *Cluster) RequireSuccessor(t testing.TB, node *Node) (successor *Node) {
	t.Helper()
	require.Eventually(t, func() bool {
		for other := c.ReplicaOf(node); other != node; other = c.ReplicaOf(other) {
			if isMaster(t, other) {
				successor = other
				return true
			}
		}
		return false
	}, startTimeout, 10*time.Millisecond, "no replica takes the place of %s", node.Address)
	return successor
}

// FailOver makes a replica of a partition's master the master, as planned, and waits for it.
func (c *Cluster) FailOver(t testing.TB, p *rdb.Partition) (master *Node) {
	t.Helper()
	master = c.ReplicaOf(c.MasterOf(t, p))
	doOn(t, master.Server, "cluster", "failover")
	c.RequireMaster(t, p, master)
	return master
}

// Masters are the nodes that answer that they are masters.
func (c *Cluster) Masters(t testing.TB) (masters []*Node) {
	for _, node := range c.Nodes {
		if isMaster(t, node) {
			masters = append(masters, node)
		}
	}
	return masters
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
