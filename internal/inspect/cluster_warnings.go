package inspect

import (
	"fmt"
	"slices"
	"strconv"
)

// Names of the checked settings.
const (
	fullCoverage = "cluster-require-full-coverage"
	nodeTimeout  = "cluster-node-timeout"
	policy       = "maxmemory-policy"
	appendOnly   = "appendonly"
	replicas     = "connected replicas"
)

// Bounds of cluster-node-timeout that are advised, in ms.
const minNodeTimeout, maxNodeTimeout = 2000, 5000

// Warning is something about nodes that endangers the bus.
type Warning struct {
	// Nodes are their addresses.
	Nodes []string
	// Text describes the problem, what to change, and why.
	Text string
}

// Warnings returns warnings about the nodes that answer, given how many replicas must confirm a
// request.
func (s ClusterStatus) Warnings(minReplicas int) (all []Warning) {
	for _, node := range s.Nodes {
		if node.Reason != "" {
			continue
		}
		for _, text := range node.judge(minReplicas) {
			at := slices.IndexFunc(all, func(w Warning) bool { return w.Text == text })
			if at < 0 {
				at, all = len(all), append(all, Warning{Text: text})
			}
			all[at].Nodes = append(all[at].Nodes, node.Address)
		}
	}
	return all
}

// judge returns the problems of a node.
func (n ClusterNode) judge(minReplicas int) (texts []string) {
	for _, required := range []struct{ name, value, why string }{
		{fullCoverage, "no", "else all nodes refuse all calls while one slot has no node"},
		{policy, "noeviction", "else Redis throws away events and subscriptions when it is full"},
		{appendOnly, "yes", "else a node that is started again has forgotten its partitions"},
	} {
		value, known := n.settings[required.name]
		switch {
		case !known:
			texts = append(texts, unknown(required.name, required.value))
		case value != required.value:
			texts = append(texts, fmt.Sprintf("%s is %s: set it to %s, %s", required.name, value, required.value, required.why))
		}
	}
	if n.id == "" {
		texts = append(texts, "what is moving is unknown, because this user may not run CLUSTER NODES: see that nothing is")
	}
	for _, replica := range n.chained {
		texts = append(texts, fmt.Sprintf("%s follows a replica, and cannot take this node's place when it fails: "+
			"tell it CLUSTER REPLICATE %s", replica, n.id))
	}
	return append(append(texts, n.judgeTimeout()...), n.judgeReplicas(minReplicas)...)
}

func unknown(name, right string) string {
	return fmt.Sprintf("%s is unknown, because this user may not read it: see that it is %s", name, right)
}

func (n ClusterNode) judgeTimeout() []string {
	value, known := n.settings[nodeTimeout]
	ms, err := strconv.Atoi(value)
	advised := fmt.Sprintf("%d to %d", minNodeTimeout, maxNodeTimeout)
	switch {
	case !known || err != nil:
		return []string{unknown(nodeTimeout, advised)}
	case ms > maxNodeTimeout:
		return []string{fmt.Sprintf("%s is %d: %s ms are advised, since a node that fails is missed for longer than that", nodeTimeout, ms, advised)}
	case ms < minNodeTimeout:
		return []string{fmt.Sprintf("%s is %d: %s ms are advised, since a node that is slow for that long is taken for dead", nodeTimeout, ms, advised)}
	}
	return nil
}

func (n ClusterNode) judgeReplicas(minReplicas int) []string {
	_, known := n.settings[replicas]
	switch {
	case n.Partitions == nil:
		return nil
	case !known:
		return []string{unknown("the number of replicas", strconv.Itoa(minReplicas+1)+" or more")}
	case n.Replicas == 0:
		return []string{"no replica is connected: add one, else the partitions of a node that fails are away until it is back"}
	case n.Replicas <= minReplicas:
		return []string{fmt.Sprintf("connected replicas are %d and ROUTEMASTER_REDIS_MIN_REPLICAS is %d: %d replicas are advised, "+
			"else publishers get 503 from a failover until a replica is back", n.Replicas, minReplicas, minReplicas+1)}
	}
	return nil
}
