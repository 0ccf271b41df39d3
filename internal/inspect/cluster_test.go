package inspect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/inspect"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// TestStatesOfPartitions has partitions beside each other on one Redis.
func TestStatesOfPartitions(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		ctx, all := t.Context(), server.Open(t).Partitions("ns:", 3)
		for _, p := range all[:2] {
			require.NoError(t, p.Release(ctx))
		}
		require.NoError(t, all[1].Set(ctx, all[1].Namespace()+rdb.PartitionKey, "1/12", 0).Err())
		s := inspect.ReadCluster(ctx, "redis+cluster://"+server.URL[len("redis://"):], all)
		var want []inspect.ClusterPartition
		for i, p := range all {
			want = append(want, inspect.ClusterPartition{Number: rdb.Number(i), Slot: rdb.SlotOf(p.Namespace()), Node: "here"})
		}
		want[0].State = inspect.Open
		want[1].State, want[1].Reason = inspect.Mismatched, `it says that it is "1/12", and is 1/3`
		want[2].State, want[2].Reason = inspect.Held, "it is held, or has come back without its keys"
		assert.Equal(t, want, s.Partitions)
		assert.False(t, s.AreOpen())
		require.Len(t, s.Nodes, 1)
		assert.Equal(t, []rdb.Number{0, 1, 2}, s.NodeOf(1).Partitions)
		assert.Nil(t, s.NodeOf(3))
		assert.Empty(t, s.Nodes[0].Reason, "it answers, whatever it does not know")
		if !server.IsEmbedded() { // that one answers as a cluster of one node would
			assert.Equal(t, []string{"here"}, s.Silent())
		}

		for _, p := range all[1:] {
			require.NoError(t, p.Release(ctx))
		}
		assert.True(t, inspect.ReadCluster(ctx, server.URL, all).AreOpen())
	})
}

func TestNobodyAnswers(t *testing.T) {
	url := "redis+cluster://" + rdbtest.FreeAddress(t)
	client, err := rdb.Open(rdb.Options{URL: url, Connections: 1})
	require.NoError(t, err)
	defer client.Close()
	s := inspect.ReadCluster(t.Context(), url, client.Partitions("", 2))
	for _, p := range s.Partitions {
		assert.Equal(t, inspect.Away, p.State)
		assert.Contains(t, p.Reason, "refused")
		assert.NotContains(t, p.Reason, "redis is unavailable", "the state says that")
	}
	assert.Empty(t, s.Nodes, "none is known")
	assert.Empty(t, s.Warnings(1))
}

// TestAReplicaOfAReplica does as the warning says.
func TestAReplicaOfAReplica(t *testing.T) {
	c := rdbtest.NewCluster(t, 1, 2*time.Second, func(o *rdbtest.ClusterOptions) {
		o.Replicas, o.Arguments = 2, []string{"--appendonly", "yes"}
	})
	all := c.Open(t).Partitions("", 1)
	warnings := func() []inspect.Warning {
		return inspect.ReadCluster(t.Context(), c.URL, all).Warnings(0)
	}
	isWell := func() bool { return len(warnings()) == 0 } // once the master knows that both follow it
	require.Eventually(t, isWell, time.Minute, 10*time.Millisecond)
	c.Chain(t, c.Nodes[1], c.Nodes[2])
	var told []inspect.Warning
	require.Eventually(t, func() bool { told = warnings(); return len(told) > 0 }, time.Minute, 10*time.Millisecond)
	require.Len(t, told, 1)
	_, master, ok := strings.Cut(told[0].Text, c.Nodes[1].Address+" follows a replica, and cannot take this node's place when it fails: "+
		"tell it CLUSTER REPLICATE ")
	require.True(t, ok, told[0].Text)
	require.NoError(t, c.Nodes[1].Raw.ClusterReplicate(t.Context(), master).Err())
	require.Eventually(t, isWell, time.Minute, 10*time.Millisecond)
}
