package doctor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// laneDamages are damages of subscribers with several lanes.
var laneDamages = []damage{
	{name: "nothing, with other lanes than before", does: withLanes},
	{name: "lanes that publishes do not know", does: func(p *patient) {
		withLanes(p)
		p.Redis.Del(p.ctx, "plans")
	}, finds: []string{`plans: has no version of the lanes of alice [given one]`}},
	{name: "lanes without options", does: func(p *patient) { p.Redis.HSet(p.ctx, "plans", "bob--2", "version1", "zoe--26", "version1") },
		finds: []string{
			`plans: has a version of the lanes of bob, which has one [removed]`,
			`plans: has a version of the lanes of client-4e337076, which has one [removed]`,
		}},
	{name: "lanes of nobody", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "options:zoe--26", "lanes", "3")
		p.Redis.HSet(p.ctx, "plans", "zoe--26", "version1")
	}, finds: []string{
		`options:client-4e337076: is of no subscriber [removed]`,
		`plans: has a version of the lanes of client-4e337076, which has one [removed]`,
	}},
	{name: "batches in a lane that its subscriber does not have", does: func(p *patient) {
		withLanes(p)
		p.moveLane("3", "lane", 3)
	}, finds: []string{`jobs:lane:batch:alice/3: is of a lane that its subscriber does not have [noted in its options]`}},
	{name: "batches in what is no lane", does: func(p *patient) {
		withLanes(p)
		p.Redis.Rename(p.ctx, "jobs:lane:batch:alice--1", "jobs:lane:batch:alice--1/forgotten/1")
	}, finds: []string{`jobs:lane:batch:alice/forgotten/1: is no lane of a subscriber [removed]`}},
	{name: "nothing, with lanes of an earlier release", does: func(p *patient) {
		withLanes(p)
		p.Redis.HSet(p.ctx, "options:alice--1", "generation", "version1", "older", "before--/2/3")
		p.moveLane("before--/1", "generation", "before--", "lane", 1)
	}},
	{name: "lanes of a subscriber that is gone", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "batches:current:zoe--26/1", anUID)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:zoe--26/1", redis.Z{Score: 1, Member: job(anUID)})
	}, finds: []string{
		`batches:current:client-4e337076/1: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`,
		`jobs:lane:batch:client-4e337076/1: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed; the next in the lane is woken]`,
	}},
	{name: "a current batch of a lane that its subscriber does not have", does: func(p *patient) {
		withLanes(p)
		p.Redis.SAdd(p.ctx, "batches:current:alice--1/3", p.current)
		p.Redis.SAdd(p.ctx, "batches:current:alice--1/x", p.current)
	}, finds: []string{
		`batches:current:alice/3: is of a lane that its subscriber does not have [removed]`,
		`batches:current:alice/x: is of a lane that its subscriber does not have [removed]`,
	}},
}

// moveLane moves Alice's first lane to another, and sets the states of its batches.
func (p *patient) moveLane(to string, state ...any) {
	for _, packed := range p.Redis.ZRange(p.ctx, "jobs:lane:batch:alice--1", 0, -1).Val() {
		p.Redis.HSet(p.ctx, "batches:state:"+batchOf(p.T, packed), state...)
	}
	p.Redis.Rename(p.ctx, "jobs:lane:batch:alice--1", "jobs:lane:batch:alice--1/"+to)
}

// withLanes gives Alice three lanes.
func withLanes(p *patient) {
	require.NoError(p.T, p.setLanes(3))
	p.RequireSound()
}

// setLanes gives Alice lanes, by the URLs of events.
func (f *fixture) setLanes(lanes int) error {
	options := map[string]string{"lanes": fmt.Sprint(lanes)}
	if lanes == 1 {
		options["lanes"] = "" // the default
	}
	return f.PatchSubscriber(context.WithoutCancel(f.T.Context()), alice, bus.Subscription{Options: options}, time.Now())
}

// TestExaminationsDoNotDisturbAChangeOfLanes examines while lanes change, and events come and go.
func TestExaminationsDoNotDisturbAChangeOfLanes(t *testing.T) {
	server := rdbtest.Real(t)
	client := server.Open(t, func(o *rdb.Options) { o.Connections = 10 })
	b := &busyBus{fixture: newFixtureOn(t, server, client.Partition("")), backlog: 100, delivered: map[string]int{}}
	b.AddSubscriber(alice, 0, 2, "widgets")
	ctx, stop := context.WithCancel(t.Context())
	publishing, enough := context.WithCancel(ctx)
	var publishers, others sync.WaitGroup
	publishers.Go(func() {
		for lanes := 0; publishing.Err() == nil; lanes++ {
			assert.NoError(t, b.setLanes(lanes%4+1))
			some, enough := context.WithTimeout(publishing, 5*time.Millisecond)
			b.publish(some)
			enough()
		}
	})
	others.Go(func() { b.keepHouse(ctx) })
	for i := range 2 {
		others.Go(func() { b.deliver(ctx, bus.WorkerID(fmt.Sprintf("w%d", i))) })
	}
	for round := range 8 {
		_, err := b.doctor().Examine(ctx, round%2 == 1, func(v doctor.Finding) {
			t.Errorf("found %s: %s [%s]", v.Key, v.Problem, v.Remedy)
		})
		require.NoError(t, err)
	}
	enough()
	publishers.Wait()
	require.Eventually(t, func() bool {
		return b.Redis.ZCard(ctx, "batches:index").Val() == 0
	}, time.Minute, 5*time.Millisecond)
	stop()
	others.Wait()
	for n := 1; n <= b.published; n++ {
		require.Equal(t, 1, b.delivered[fmt.Sprintf("%s %d", alice, n)], "event %d", n)
	}
	t.Logf("%d events", b.published)
	assert.Empty(t, b.examine(false))
}
