package buscopy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/buscopy"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// BenchmarkACopyToACluster copies 1,000,000 events, in 100,000 batches for ten subscribers, from
// one Redis to a cluster of three masters on loopback. Run it once: -benchtime 1x.
func BenchmarkACopyToACluster(b *testing.B) {
	const subscribers, publications, events = 10, 100, 1000
	cluster := rdbtest.NewCluster(b, 3, time.Minute, func(o *rdbtest.ClusterOptions) { o.Replicas = 0 })
	server := rdbtest.Real(b)
	from := newSide(b, server, server.Open(b), 0)
	from.register(storetest.Publisher)
	for i := range subscribers {
		timeout, maxEvents := time.Hour, 10
		from.register(reader(i))
		require.NoError(b, from.Subscribe(b.Context(), reader(i), bus.Subscription{
			Topics: []bus.TopicName{topic(i)}, Callback: "https://reader.example/", Timeout: &timeout, MaxEvents: &maxEvents,
		}, storetest.Start))
		for n := range publications {
			from.publish(topic(i), n*events+1, (n+1)*events)
		}
	}
	client := cluster.Open(b)
	b.ResetTimer()
	for n := range b.N {
		to := &side{t: b}
		namespace := fmt.Sprintf("copy%d:", n)
		require.NoError(b, store.CreateBus(b.Context(), client, namespace, store.DefaultPartitions))
		to.partitions = client.Partitions(namespace, store.DefaultPartitions)
		began := time.Now()
		steps := map[string]time.Duration{}
		report, err := run(from, to, func(o *buscopy.Options) {
			o.Progress = func(step string, _, _ int) { steps[step] = time.Since(began) }
		})
		require.NoError(b, err)
		require.True(b, report.IsEqual(), report)
		b.ReportMetric(steps["copying"].Seconds(), "s-to-copied")
	}
}
