package inspect

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"routemaster/internal/rdb"
)

// ClusterNode is a master of the cluster.
type ClusterNode struct {
	Address string
	// Partitions are the node's partitions.
	Partitions []rdb.Number
	// Reason is why nothing more is known of it; empty if it answers.
	Reason string
	// Replicas is how many replicas are connected and up to date.
	Replicas int
	// MemoryUsed and MemoryMax are in bytes; the latter is 0 if there is no limit.
	MemoryUsed, MemoryMax int64
	// settings are the values of the checked settings, by name. Unreadable ones are missing.
	settings map[string]string

	// id is empty if it has not said which nodes it knows.
	id string
	// isReplica is whether the node calls itself one: others may learn of that later.
	isReplica bool
	// migrating and importing are slots on their way, with the ID of the other node.
	migrating, importing map[int]string
	// others are the other masters that it knows, by ID.
	others map[string]string
	// chained are the addresses of nodes that follow one of its replicas, not it. After a failover
	// Redis may leave a replica so: see https://github.com/redis/redis/issues/15472.
	chained []string
}

// readNodes reads the state of the nodes with partitions, and of the other masters that they know.
func (s *ClusterStatus) readNodes(ctx context.Context, url string, partitions rdb.Partitions) {
	var reading sync.WaitGroup
	for _, p := range s.Partitions {
		if p.Node == "" {
			continue // no node has its slot
		}
		at := slices.IndexFunc(s.Nodes, func(n ClusterNode) bool { return n.Address == p.Node })
		if at < 0 {
			at = len(s.Nodes)
			s.Nodes = append(s.Nodes, ClusterNode{Address: p.Node})
		}
		s.Nodes[at].Partitions = append(s.Nodes[at].Partitions, p.Number)
	}
	for i := range s.Nodes {
		node := &s.Nodes[i]
		// Commands without a key go to the node of the partition.
		reading.Go(func() { node.read(ctx, partitions[node.Partitions[0]].Commands) })
	}
	reading.Wait()
	for _, address := range s.spare() {
		s.Nodes = append(s.Nodes, ClusterNode{Address: address})
	}
	for i := range s.Nodes {
		if node := &s.Nodes[i]; node.Partitions == nil {
			reading.Go(func() { node.readAlone(ctx, url) })
		}
	}
	reading.Wait()
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n ClusterNode) bool { return n.Partitions == nil && n.isReplica })
}

// spare are the addresses of masters without partitions.
func (s *ClusterStatus) spare() (addresses []string) {
	known := map[string]string{}
	for _, node := range s.Nodes {
		for id, address := range node.others {
			known[id] = address
		}
	}
	for id, address := range known {
		if !slices.ContainsFunc(s.Nodes, func(n ClusterNode) bool { return n.id == id || n.Address == address }) {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// readAlone reads the state of a node without partitions.
func (n *ClusterNode) readAlone(ctx context.Context, url string) {
	redis, err := rdb.Open(rdb.Options{URL: nodeURL(url, n.Address), Connections: 1})
	if err != nil {
		n.Reason = "the cluster has no usable address of it"
		return
	}
	defer redis.Close()
	n.read(ctx, redis.Partition("").Commands)
}

// nodeURL returns the URL of a node of a cluster, given the cluster's URL.
func nodeURL(cluster, address string) string {
	scheme, rest, _ := strings.Cut(cluster, "+cluster://")
	authority, parameters := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, parameters = rest[:i], rest[i:]
	}
	return scheme + "://" + authority[:strings.LastIndex(authority, "@")+1] + address + parameters
}

// read reads the state of a node.
func (n *ClusterNode) read(ctx context.Context, commands rdb.Commands) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	info, err := commands.Info(ctx).Result()
	switch {
	case err != nil && !rdb.Lacks(err):
		n.Reason = reason(err)
		return
	case err == nil:
		n.readInfo(info)
	}
	config, err := commands.ConfigGet(ctx, "cluster-*").Result()
	if err == nil {
		n.set(fullCoverage, config[fullCoverage])
		n.set(nodeTimeout, config[nodeTimeout])
	}
	text, err := commands.ClusterNodes(ctx).Result()
	if err == nil {
		n.readMap(text)
	}
}

func (n *ClusterNode) set(name, value string) {
	if value == "" {
		return
	}
	if n.settings == nil {
		n.settings = map[string]string{}
	}
	n.settings[name] = value
}

// readInfo reads the answer to INFO. Services that keep CONFIG to themselves have that.
func (n *ClusterNode) readInfo(text string) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "used_memory":
			n.MemoryUsed, _ = strconv.ParseInt(value, 10, 64)
		case name == "maxmemory":
			n.MemoryMax, _ = strconv.ParseInt(value, 10, 64)
		case name == "maxmemory_policy":
			n.set(policy, value)
		case name == "aof_enabled":
			n.set(appendOnly, map[string]string{"0": "no", "1": "yes"}[value])
		case strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online"):
			n.Replicas++
		case name == "connected_slaves":
			n.set(replicas, value)
		}
	}
}

// readMap parses the reply to CLUSTER NODES: each line is a node, and the node's own line has its
// moves. See https://redis.io/docs/latest/commands/cluster-nodes/.
func (n *ClusterNode) readMap(text string) {
	n.others, n.migrating, n.importing = map[string]string{}, map[int]string{}, map[int]string{}
	type follower struct{ address, master string }
	followers := map[string]follower{} // by ID
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		id, address, flags := fields[0], fields[1], strings.Split(fields[2], ",")
		if slices.Contains(flags, "myself") {
			n.id, n.isReplica = id, slices.Contains(flags, "slave")
			n.readMoves(fields[8:])
			continue
		}
		if slices.Contains(flags, "master") { // also one that has failed: it may be taking in a slot
			n.others[id] = cmp.Or(addressOf(address), "node "+id)
		} else {
			followers[id] = follower{addressOf(address), fields[3]}
		}
	}
	for _, f := range followers {
		if between, ok := followers[f.master]; ok && between.master == n.id && f.address != "" {
			n.chained = append(n.chained, f.address)
		}
	}
	slices.Sort(n.chained)
}

// readMoves parses a node's slots: ranges, and [slot->-id] or [slot-<-id].
func (n *ClusterNode) readMoves(fields []string) {
	for _, field := range fields {
		field = strings.Trim(field, "[]")
		if slot, to, ok := strings.Cut(field, "->-"); ok {
			n.migrating[atoi(slot)] = to
		} else if slot, from, ok := strings.Cut(field, "-<-"); ok {
			n.importing[atoi(slot)] = from
		}
	}
}

// atoi reads the number of a slot; -1 if it is none.
func atoi(text string) int {
	if number, err := strconv.Atoi(text); err == nil {
		return number
	}
	return -1
}

// addressOf returns a node's address, given as host:port@port, perhaps with ,hostname behind it;
// empty if unknown.
func addressOf(text string) string {
	text, names, _ := strings.Cut(text, ",")
	text, _, _ = strings.Cut(text, "@")
	colon := strings.LastIndexByte(text, ':')
	if colon < 1 {
		return ""
	}
	host, port := strings.Trim(text[:colon], "[]"), text[colon+1:]
	if name, _, _ := strings.Cut(names, ","); name != "" {
		host = name // certificates have names
	}
	return net.JoinHostPort(host, port)
}
