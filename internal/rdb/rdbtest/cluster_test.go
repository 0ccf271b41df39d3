package rdbtest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnchain(t *testing.T) {
	c := NewCluster(t, 1, 2*time.Second, func(o *ClusterOptions) { o.Replicas = 2 })
	master, replica, other := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	requireWhole := func() {
		t.Helper()
		require.EventuallyWithT(t, func(collect *assert.CollectT) {
			masters, err := c.Whole(t.Context())
			require.NoError(collect, err)
			assert.Equal(collect, map[int]*Node{0: master}, masters)
		}, startTimeout, 10*time.Millisecond)
	}
	requireWhole()
	c.Chain(t, replica, other)
	require.Eventually(t, func() bool { // all know of it, and let it be
		for _, node := range c.Nodes {
			if !strings.Contains(doOn(t, node.Server, "cluster", "nodes").(string), "slave "+other.id) {
				return false
			}
		}
		return true
	}, startTimeout, 10*time.Millisecond, "the replica of a replica is not known as one")
	_, err := c.Whole(t.Context())
	require.Error(t, err)
	require.NoError(t, c.Unchain(t.Context()))
	requireWhole()
}
