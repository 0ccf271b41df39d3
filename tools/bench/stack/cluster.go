package stack

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/tools/bench/load"
)

// Partitions is how many a bus on a cluster has: as rtm cluster create makes it by itself. More
// masters would have none.
const Partitions = store.DefaultPartitions

// busPortAbove is how much above its own port a node of a cluster listens for the others.
const busPortAbove = 10_000

// openRedis prepares the connections to Redis. It does not wait for it.
func (s *Stack) openRedis() error {
	for address := range strings.SplitSeq(s.Redis, ",") {
		client, err := rdb.Open(rdb.Options{URL: "redis://" + address, Connections: 1})
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, client.Partition(""))
	}
	if s.options.Masters == 0 {
		s.partitions = s.nodes
		return nil
	}
	client, err := rdb.Open(rdb.Options{URL: s.redisURL(), Connections: 1})
	if err == nil {
		s.partitions = client.Partitions("", Partitions)
	}
	return err
}

// startCluster starts the masters of a cluster, each with an even part of the slots and without a
// replica, and makes a bus on it.
func (s *Stack) startCluster(ctx context.Context) error {
	addresses := strings.Split(s.Redis, ",")
	for i, address := range addresses {
		name := nodePrefix + strconv.Itoa(i)
		err := s.startServer(ctx, name, address, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no",
			"--cluster-node-timeout", "5000", "--cluster-config-file", filepath.Join(s.directory, name+".conf"))
		if err != nil {
			return err
		}
	}
	for i, node := range s.nodes {
		first, end := i*rdb.SlotCount/len(s.nodes), (i+1)*rdb.SlotCount/len(s.nodes)
		if err := node.ClusterAddSlotsRange(ctx, first, end-1).Err(); err != nil {
			return fmt.Errorf("redis CLUSTER ADDSLOTS: %w", err)
		}
		for _, other := range addresses[:i] { // each all others, because hearsay takes seconds
			host, port, _ := net.SplitHostPort(other)
			if err := node.ClusterMeet(ctx, host, port).Err(); err != nil {
				return fmt.Errorf("redis CLUSTER MEET: %w", err)
			}
		}
	}
	if err := s.awaitCluster(ctx); err != nil {
		return err
	}
	return store.CreateBus(ctx, s.partitions[0].Client(), "", Partitions)
}

// awaitCluster waits until each node knows all others, and a master of each slot.
func (s *Stack) awaitCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	all := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(s.nodes))
	for _, node := range s.nodes {
		for {
			info, err := node.ClusterInfo(ctx).Result()
			if err != nil {
				return fmt.Errorf("redis CLUSTER INFO: %w", err)
			}
			if strings.Contains(info, all) && strings.Contains(info, "cluster_state:ok\r\n") &&
				strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r\n", rdb.SlotCount)) {
				break
			}
			if err := load.Sleep(ctx, PollInterval); err != nil {
				return fmt.Errorf("the cluster is not complete in time: %w: %s", err, info)
			}
		}
	}
	return nil
}

// Distance is how far a subscriber is from the home of a topic, the partition where its events are
// published.
type Distance int

// The distances. On one Redis everything is at home.
const (
	Home  Distance = iota
	Near           // in another partition on the same node
	Apart          // on another node
)

// Distance returns how far a subscriber with a token is from the home of a topic.
func (s *Stack) Distance(topic, token string) Distance {
	home, there := s.of(topic), s.of(token)
	switch {
	case home == there:
		return Home
	case home.Node() == there.Node():
		return Near
	default:
		return Apart
	}
}
