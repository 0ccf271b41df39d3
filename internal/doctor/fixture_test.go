package doctor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

const (
	publisher = storetest.Publisher
	alice     = storetest.Alice
	bob       = storetest.Bob

	anUID   = "AAAABBBBCCCCDDDDEEEE"
	jobHead = "\x92\xa5batch\x91\xb4"
)

var (
	start   = storetest.Start
	after   = storetest.After
	packed  = storetest.Packed
	numbers = storetest.Numbers
	job     = storetest.Job
	dump    = rdbtest.Dump
)

// fixture is a bus.
type fixture struct {
	*storetest.Bus
}

func newFixture(t testing.TB, server *rdbtest.Server) *fixture {
	return &fixture{Bus: storetest.NewBus(t, server)}
}

func newFixtureOn(t testing.TB, server *rdbtest.Server, partition *rdb.Partition) *fixture {
	return &fixture{Bus: storetest.NewBusOn(t, server, partition)}
}

// doctor is one that does not pause.
func (f *fixture) doctor() *doctor.Doctor { return doctor.New(f.Partition, 0) }

// examine returns the findings in order, a line each: the problem, and its remedy in brackets.
func (f *fixture) examine(fix bool) []string {
	f.T.Helper()
	lines := []string{}
	stats, err := f.doctor().Examine(f.T.Context(), fix, func(v doctor.Finding) {
		require.Equal(f.T, fix && v.Remedy != "", v.Fixed)
		lines = append(lines, fmt.Sprintf("%s: %s [%s]", v.Key, v.Problem, v.Remedy))
	})
	require.NoError(f.T, err)
	require.Empty(f.T, stats.Unchecked)
	return lines
}

// publishNow publishes events at the time it is.
func (f *fixture) publishNow(topic bus.TopicName, first, last int) {
	p := store.Publication{Topic: topic, Publisher: publisher, ReceivedAt: time.Now().UnixMilli()}
	for i := first; i <= last; i++ {
		p.Events = append(p.Events, packed(f.T, topic, i))
	}
	assert.NoError(f.T, f.Publish(context.WithoutCancel(f.T.Context()), p))
}

// patient is a bus with something to break: Alice has a batch under way (w1), one that waits in its
// lane, one that is current; Bob has a current one. Eight events in all.
type patient struct {
	*fixture
	ctx                             context.Context
	running, waiting, current, bobs string
}

const eventsOfPatient = 8

// batchOf is the batch that a packed job delivers.
func batchOf(t testing.TB, packed string) string {
	job, err := wire.UnpackJob(packed)
	require.NoError(t, err)
	return job.Args[0]
}

func newPatient(t *testing.T, server *rdbtest.Server) *patient {
	f := newFixture(t, server)
	f.AddSubscriber(alice, 500*time.Millisecond, 2, "widgets")
	f.AddSubscriber(bob, 500*time.Millisecond, 10, "widgets", "gadgets")
	f.PublishEvents("widgets", 1, 5, 0)
	f.PublishEvents("gadgets", 6, 8, 1) // Bob's alone
	p := &patient{fixture: f, ctx: t.Context()}
	p.running = string(f.Take("w1", 1).Delivery.Batch)
	require.Nil(t, f.Take("w2", 1))
	for _, entry := range f.Redis.ZRange(p.ctx, "jobs:lane:batch:alice--1", 0, -1).Val() {
		if entry != job(p.running) {
			p.waiting = batchOf(t, entry)
		}
	}
	p.current = f.Redis.SMembers(p.ctx, "batches:current:alice--1").Val()[0]
	p.bobs = f.Redis.SMembers(p.ctx, "batches:current:bob--2").Val()[0]
	f.RequireSound()
	return p
}

// drain delivers all there is, whatever its time, and returns how often each event was delivered,
// by subscriber and number.
func (p *patient) drain() map[string]int {
	p.T.Helper()
	got := map[string]int{}
	_, err := p.Scrub(p.ctx, after(1_000_000), bus.Queues[:]...)
	require.NoError(p.T, err)
	for range 5 {
		p.MakeInstant(1 << 40)
		for task := p.Take("w3", 1<<40); task != nil; task = p.Take("w3", 1<<40) {
			if task.Delivery != nil {
				for _, n := range numbers(p.T, task) {
					got[fmt.Sprintf("%s %d", task.Delivery.Subscriber, n)]++
				}
			}
			p.Complete(task, storetest.Done)
		}
	}
	return got
}
