package test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/move"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

// TestABusMovesToACluster while publishers send to a web of the old bus and to one of the new in
// turn, whichever takes events, and one of two subscribers is paused until after the switch. Each
// gets every event once, those of a topic in order.
func TestABusMovesToACluster(t *testing.T) {
	t.Parallel()
	old := bustest.Start(t, rdbtest.Real(t))
	publisher, topics := old.AddClient("publisher"), []string{"topic_a", "topic_b", "topic_c"}
	served, paused := bustest.NewSubscriber(t, old.AddClient("served")), bustest.NewSubscriber(t, old.AddClient("paused"))
	for _, s := range []*bustest.Subscriber{served, paused} {
		s.Subscribe(old, 10, 20, topics...)
	}
	old.Call(paused.Token, "POST", "/subscriber/pause", "", http.StatusNoContent)
	cluster := rdbtest.NewCluster(t, 3, time.Minute, func(o *rdbtest.ClusterOptions) { o.Replicas = 0 })
	b, parts := startWithStores(t, cluster, 12)
	run := func(adjust func(*move.Options)) move.Report {
		t.Helper()
		o := move.Options{From: old.Stores.Partitions(), To: parts}
		adjust(&o)
		report, err := move.Run(t.Context(), o)
		require.NoError(t, err)
		return report
	}

	require.Equal(t, move.Copied, run(func(*move.Options) {}).Phase)
	assert.True(t, isReady(old))
	assert.False(t, isReady(b))
	var loads []*movedLoad
	publishers := bustest.NewLoad(t)
	for _, topic := range topics {
		l := &movedLoad{webs: [2]*bustest.Bus{old, b}, token: publisher, topic: topic}
		loads = append(loads, l)
		publishers.Repeat(l.publish)
	}
	accepted := func(web, events int) {
		t.Helper()
		for _, l := range loads {
			want := l.accepted[web].Load() + int64(events)
			require.Eventually(t, func() bool { return l.accepted[web].Load() >= want }, bustest.WaitTimeout, time.Millisecond)
		}
	}
	accepted(0, 50)
	require.Equal(t, move.Draining, run(func(o *move.Options) { o.Switch = true }).Phase)
	assert.False(t, isReady(old))
	assert.True(t, isReady(b))
	accepted(1, 50)
	old.StopWeb()
	require.Eventually(t, func() bool {
		waiting := run(func(*move.Options) {}).Waiting
		return len(waiting) == 1 && waiting[0].Paused
	}, bustest.WaitTimeout, 10*time.Millisecond)
	b.Call(paused.Token, "POST", "/subscriber/resume", "", http.StatusNoContent)
	var last move.Report
	require.Eventually(t, func() bool {
		last = run(func(*move.Options) {})
		return last.Phase == move.Over
	}, bustest.WaitTimeout, 10*time.Millisecond, "%+v", last)
	old.StopWorker()
	accepted(1, 50)
	publishers.End()

	for _, s := range []*bustest.Subscriber{served, paused} {
		for _, l := range loads {
			published := int(l.published())
			require.Eventually(t, func() bool { return len(s.NumbersOf(l.topic)) >= published }, bustest.WaitTimeout, 10*time.Millisecond)
			assert.Equal(t, storetest.UpTo(1, published), s.NumbersOf(l.topic), "%s of %s", l.topic, s.Token)
		}
	}
	requireNothingLeftIn(t, parts)
	requireNothingLeftIn(t, old.Stores.Partitions())
	b.StopWeb()
	b.StopWorker()
	storetest.RequireAllSound(t, old.Stores)
	storetest.RequireAllSound(t, b.Stores)
}

// movedLoad publishes to a topic, one event after the other, until it is accepted, to two webs in
// turn.
type movedLoad struct {
	webs         [2]*bustest.Bus
	token, topic string
	accepted     [2]atomic.Int64 // how many events, by web
	turn         int
}

func (l *movedLoad) publish() {
	web, number := l.turn%2, int(l.published())+1
	l.turn++
	status, _, err := bustest.Send(l.webs[web].Client, l.webs[web].API, l.token, "POST", "/topics/"+l.topic, bustest.EventBody(number))
	if err == nil && status == http.StatusOK {
		l.accepted[web].Add(1)
	}
}

// published is how many events were accepted.
func (l *movedLoad) published() int64 { return l.accepted[0].Load() + l.accepted[1].Load() }
