package test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// TestABusOnAClusterOverTLS needs certificates on all connections, and a user with the rights of
// the page. It publishes while a partition moves, and while masters hand over and fail.
func TestABusOnAClusterOverTLS(t *testing.T) {
	if rdbtest.RaceDetector {
		t.Skip("the same bus runs on a cluster without TLS with the race detector")
	}
	t.Parallel()
	const partitions = 2 // so one of the masters has none
	cluster := rdbtest.NewCluster(t, 3, time.Second, func(o *rdbtest.ClusterOptions) { o.TLS, o.User = true, true })
	b, parts := startWithStores(t, cluster, partitions, func(c *app.Config) { c.MinReplicas = 1 })
	operator := strings.Replace(cluster.URL, "bus:secret@", "", 1) // it may ask for more
	operated, err := rdb.Open(rdb.Options{URL: operator, Connections: 1})
	require.NoError(t, err)
	defer operated.Close()
	requireOpen := func() {
		t.Helper()
		status := inspect.ReadCluster(t.Context(), operator, operated.Partitions("", partitions))
		assert.True(t, status.AreOpen(), "%+v", status)
		assert.Len(t, status.Nodes, 3)
		assert.Empty(t, status.Silent())
		for _, node := range status.Nodes {
			assert.Empty(t, node.Reason)
			assert.Positive(t, node.MemoryUsed)
		}
	}
	requireOpen()

	publisher, subscriber := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("subscriber"))
	topics := []string{topicIn(parts[0], "topic"), topicIn(parts[1], "topic")}
	subscriber.Subscribe(b, 10, 20, topics...)
	traffic := b.StartTraffic(2, publisher, topics[0])
	b.Publish(publisher, topics[1], 1_000_000)
	traffic.WaitForMore(t, 100)
	cluster.Move(t, parts[0], cluster.Nodes[2]).End(t)
	traffic.WaitForMore(t, 100)
	requireOpen()
	master := cluster.FailOver(t, parts[0])
	traffic.WaitForMore(t, 100)
	master.Kill(t)
	cluster.RequireMaster(t, parts[0], cluster.ReplicaOf(master))
	master.Restart(t) // or nothing would be confirmed
	traffic.WaitForMore(t, 100)
	traffic.Stop()
	b.Drain()
	b.RequireNothingLeft()
	lost, _ := traffic.Compare(subscriber)
	assert.Empty(t, lost)
	assert.Contains(t, subscriber.Numbers(), 1_000_000)
}
