package inspect

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb"
)

func TestWhatANodeSaysOfItself(t *testing.T) {
	var n ClusterNode
	n.readInfo("# Memory\r\nused_memory:1048576\r\nmaxmemory:200000000\r\nmaxmemory_policy:allkeys-lru\r\n\r\n# Persistence\r\naof_enabled:1\r\n" +
		"# Replication\r\nrole:master\r\nconnected_slaves:2\r\nslave0:ip=::1,port=7003,state=online,offset=14,lag=0\r\n" +
		"slave1:ip=::1,port=7004,state=wait_bgsave,offset=0,lag=0\r\n")
	assert.Equal(t, ClusterNode{
		Replicas: 1, MemoryUsed: 1 << 20, MemoryMax: 200_000_000,
		settings: map[string]string{policy: "allkeys-lru", appendOnly: "yes", replicas: "2"},
	}, n)
}

func TestWhatANodeKnowsOfOthers(t *testing.T) {
	var n ClusterNode
	n.readMap("aa 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-540 542 [541->-bb] [9000-<-cc]\n" +
		"bb 10.0.0.2:7000@17000,two.example master - 0 0 2 connected 541-9000\n" +
		"cc fd00::3:7000@17000,,shard-id=12 master - 0 0 3 connected\n" +
		"dd 10.0.0.4:7000@17000 slave aa 0 0 3 connected\n" +
		"hh 10.0.0.8:7000@17000 slave dd 0 0 3 connected\n" + // a replica of a replica
		"ii 10.0.0.9:7000@17000 slave cc 0 0 3 connected\n" +
		"jj 10.0.0.10:7000@17000 slave ii 0 0 3 connected\n" +
		"ee 10.0.0.5:7000@17000 master,fail - 0 0 3 disconnected\n" +
		"ff :0@0 master,noaddr - 0 0 3 disconnected\n" +
		"gg 10.0.0.7:7000 master - 0 0 3 connected\n\nvars currentEpoch 6 lastVoteEpoch 0\n")
	assert.Equal(t, ClusterNode{
		id: "aa", migrating: map[int]string{541: "bb"}, importing: map[int]string{9000: "cc"},
		others: map[string]string{
			"bb": "two.example:7000", "cc": "[fd00::3]:7000", "ee": "10.0.0.5:7000", "ff": "node ff", "gg": "10.0.0.7:7000",
		},
		chained: []string{"10.0.0.8:7000"},
	}, n)

	n.readMap("dd 10.0.0.4:7000@17000 myself,slave aa 0 0 3 connected\n")
	assert.True(t, n.isReplica)
}

func TestTheURLOfANode(t *testing.T) {
	for cluster, want := range map[string]string{
		"redis+cluster://a:1,b":                                "redis://n:7",
		"rediss+cluster://user:p@ss@a:1,b:2?read_timeout=9":    "rediss://user:p@ss@n:7?read_timeout=9",
		"redis+cluster://:secret@[::1]:1/0?dial_timeout=1&a=b": "redis://:secret@n:7/0?dial_timeout=1&a=b",
	} {
		assert.Equal(t, want, nodeURL(cluster, "n:7"))
	}
}

func TestWarnings(t *testing.T) {
	const managed = "unknown, because this user may not"
	for _, c := range []struct {
		name, value string
		replicas    int
		want        []string
	}{
		{"", "", 2, nil},
		{fullCoverage, "yes", 2, []string{"cluster-require-full-coverage is yes: set it to no, "}},
		{policy, "volatile-ttl", 2, []string{"maxmemory-policy is volatile-ttl: set it to noeviction, "}},
		{appendOnly, "no", 2, []string{"appendonly is no: set it to yes, "}},
		{nodeTimeout, "15000", 2, []string{"cluster-node-timeout is 15000: 2000 to 5000 ms are advised, "}},
		{nodeTimeout, "1999", 2, []string{"a node that is slow for that long is taken for dead"}},
		{"", "", 0, []string{"no replica is connected: add one, "}},
		{"", "", 1, []string{"connected replicas are 1 and ROUTEMASTER_REDIS_MIN_REPLICAS is 1: 2 replicas are advised, "}},
	} {
		node := ClusterNode{
			Address: "a:1", Partitions: []rdb.Number{0}, Replicas: c.replicas, id: "aa",
			settings: map[string]string{fullCoverage: "no", policy: "noeviction", appendOnly: "yes", nodeTimeout: "2000", replicas: strconv.Itoa(c.replicas)},
		}
		if c.name != "" {
			node.settings[c.name] = c.value
		}
		got := ClusterStatus{Nodes: []ClusterNode{node}}.Warnings(1)
		if assert.Len(t, got, len(c.want), c.name) && c.want != nil {
			assert.Contains(t, got[0].Text, c.want[0])
			assert.Equal(t, []string{"a:1"}, got[0].Nodes)
		}
	}

	chained := ClusterNode{Address: "e:1", Partitions: []rdb.Number{2}, Replicas: 2, id: "ee", chained: []string{"f:1"}}
	assert.Contains(t, ClusterStatus{Nodes: []ClusterNode{chained}}.Warnings(1), Warning{
		Nodes: []string{"e:1"},
		Text:  "f:1 follows a replica, and cannot take this node's place when it fails: tell it CLUSTER REPLICATE ee",
	})

	silent := ClusterNode{Address: "b:1", Partitions: []rdb.Number{1}}
	away, spare := ClusterNode{Address: "c:1", Reason: "refused"}, ClusterNode{Address: "d:1"}
	got := ClusterStatus{Nodes: []ClusterNode{silent, away, spare}}.Warnings(0)
	assert.Len(t, got, 6)
	for i, w := range got {
		assert.Contains(t, w.Text, managed)
		if i < 5 {
			assert.Equal(t, []string{"b:1", "d:1"}, w.Nodes, "one line for all nodes; one without partitions needs no replica")
		}
	}
	assert.Equal(t, []string{"b:1"}, got[5].Nodes)
}
