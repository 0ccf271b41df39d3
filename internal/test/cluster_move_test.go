package test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

// TestALargePartitionMoves moves a partition of some 30,000 keys, nearly all of them batches, key
// by key, while publishers and workers go on. Its topics refuse events meanwhile. The acknowledged
// events, and no others, are delivered once, and the queued batches have moved.
func TestALargePartitionMoves(t *testing.T) {
	if rdbtest.RaceDetector {
		t.Skip("the fault test moves partitions under load with the race detector")
	}
	t.Parallel()
	const subscribers, batches = 30, 1000 // of the paused ones
	cluster := rdbtest.NewCluster(t, 3, time.Minute, func(o *rdbtest.ClusterOptions) { o.Replicas = 0 })
	cluster.URL += "&read_timeout=30s" // a stall of the host is no refusal
	b, parts := startWithStores(t, cluster, 3)
	moving, other := parts[0], parts[1]
	publisher := b.AddClient("publisher")

	var paused []*bustest.Subscriber
	backlog := topicIn(moving, "backlog")
	for i := range subscribers {
		s := subscriberIn(t, b, moving, fmt.Sprintf("paused-%d", i))
		s.Subscribe(b, 0, 1, backlog)
		b.Call(s.Token, "POST", "/subscriber/pause", "", http.StatusNoContent)
		paused = append(paused, s)
	}
	var events []string
	var numbers []int
	for number := range batches {
		events, numbers = append(events, bustest.EventBody(number)), append(numbers, number)
	}
	b.Call(publisher, "POST", "/topics/"+backlog, "["+strings.Join(events, ",")+"]", http.StatusOK)

	here, elsewhere := topicIn(moving, "here"), topicIn(other, "elsewhere")
	served := []*bustest.Subscriber{subscriberIn(t, b, moving, "served"), subscriberIn(t, b, other, "served")}
	for _, s := range served {
		s.Subscribe(b, 10, 20, here, elsewhere)
	}
	traffic, steady := b.StartTraffic(2, publisher, here), b.StartTraffic(2, publisher, elsewhere)
	traffic.WaitForMore(t, 100)
	move, keys := cluster.Move(t, moving, cluster.Nodes[2]), 0
	require.Eventually(t, func() bool { return traffic.Statuses()[http.StatusServiceUnavailable] > 0 }, bustest.WaitTimeout, time.Millisecond)
	for moved := move.Keys(t, 1000); moved > 0; moved = move.Keys(t, 1000) {
		keys += moved
		steady.WaitForMore(t, 1)
	}
	move.End(t)
	traffic.WaitForMore(t, 100)
	traffic.Stop()
	steady.Stop()
	b.Call(paused[0].Token, "POST", "/subscriber/resume", "", http.StatusNoContent)

	assert.Greater(t, keys, subscribers*batches)
	assert.Equal(t, map[int]int{http.StatusOK: steady.Count()}, steady.Statuses(), "other partitions are not concerned")
	statuses := traffic.Statuses()
	assert.Equal(t, map[int]int{http.StatusOK: traffic.Count(), http.StatusServiceUnavailable: statuses[http.StatusServiceUnavailable]}, statuses)
	require.Eventually(t, func() bool { return len(paused[0].Numbers()) == batches }, bustest.WaitTimeout, time.Millisecond)
	assert.Equal(t, numbers, paused[0].Numbers())
	for _, s := range served {
		require.Eventually(t, func() bool { return len(s.Numbers()) == traffic.Count()+steady.Count() }, bustest.WaitTimeout, time.Millisecond)
		assert.Equal(t, traffic.Acknowledged(), slices.Sorted(slices.Values(s.NumbersOf(here))))
		assert.Equal(t, steady.Acknowledged(), slices.Sorted(slices.Values(s.NumbersOf(elsewhere))))
	}
	queued := b.Call(bustest.RootKey, "GET", "/subscriptions", "", http.StatusOK)
	assert.Equal(t, len(paused[1:]), strings.Count(queued, fmt.Sprintf(`"events":{"sent":0,"queued":%d,`, batches)), queued)
	b.StopWeb()
	b.StopWorker()
	storetest.RequireAllSound(t, b.Stores)
}

// startWithStores starts a bus on a cluster whose stores the test opens too, and waits until it
// takes requests.
func startWithStores(
	t *testing.T, cluster *rdbtest.Cluster, partitions int, adjust ...func(*app.Config),
) (*bustest.Bus, rdb.Partitions) {
	t.Helper()
	b := bustest.StartOnCluster(t, cluster, partitions, adjust...)
	var err error
	b.Stores, err = store.OpenBus(t.Context(), cluster.Open(t), "", store.Options{})
	require.NoError(t, err)
	requireReady(t, b)
	return b, b.Stores.Partitions()
}

// subscriberIn is a subscriber in a partition.
func subscriberIn(t *testing.T, b *bustest.Bus, p *rdb.Partition, name string) *bustest.Subscriber {
	t.Helper()
	return bustest.NewSubscriber(t, b.AddClient(strings.TrimSuffix(ownedBy(p, name+"-%c--1"), "--1")))
}

// topicIn is a topic whose home is a partition.
func topicIn(p *rdb.Partition, name string) string { return ownedBy(p, name+"_%c") }

// ownedBy is a name that a partition owns, with some letter.
func ownedBy(p *rdb.Partition, form string) string {
	letter := 'a'
	for !p.Owns(fmt.Sprintf(form, letter)) {
		letter++
	}
	return fmt.Sprintf(form, letter)
}
