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
	"routemaster/internal/store/storetest"
)

// generationDamages are those of subscribers with several lanes. Alice's three batches are of her
// lanes before.
var generationDamages = []damage{
	{name: "nothing, with a change of the lanes", does: withLanes},
	{name: "other lanes than the options'", does: func(p *patient) {
		withLanes(p)
		p.Redis.HSet(p.ctx, "plans", "alice--1", "others--")
	}, finds: []string{`plans: has lanes "others--" for alice, must be "version1" [set right]`}},
	{name: "lanes that publishes do not know", does: func(p *patient) {
		withLanes(p)
		p.Redis.Del(p.ctx, "plans")
	}, finds: []string{`plans: has lanes "" for alice, must be "version1" [set right]`}},
	{name: "lanes without options", does: func(p *patient) { p.Redis.HSet(p.ctx, "plans", "bob--2", "version1", "zoe--26", "version1") },
		finds: []string{
			`plans: has lanes "version1" for bob, must be "" [set right]`,
			`plans: has lanes "version1" for client-4e337076, must be "" [set right]`,
		}},
	{name: "lanes of nobody", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "options:zoe--26", "generation", "version1")
		p.Redis.HSet(p.ctx, "plans", "zoe--26", "version1")
	}, finds: []string{
		`options:client-4e337076: is of no subscriber [removed]`,
		`plans: has lanes "version1" for client-4e337076, must be "" [set right]`,
	}},
	{name: "more batches before a change of the lanes than there are", does: func(p *patient) {
		withLanes(p)
		p.Redis.HSet(p.ctx, "options:alice--1", "older", "/1/7")
	}, finds: []string{`options:alice: has older lanes "/1/7", must be "/1/3" [set right]`}},
	{name: "fewer batches before a change of the lanes than there are", does: func(p *patient) {
		withLanes(p)
		p.Redis.HSet(p.ctx, "options:alice--1", "older", "/1/1")
	}, finds: []string{`options:alice: has older lanes "/1/1", must be "/1/3" [set right]`}},
	{name: "older lanes without batches", does: func(p *patient) {
		withLanes(p)
		p.Redis.HSet(p.ctx, "options:alice--1", "older", "forgotten/2/1 /1/3")
	}, finds: []string{`options:alice: has older lanes "forgotten/2/1 /1/3", must be "/1/3" [set right]`}},
	{name: "only older lanes without batches", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "options:alice--1", "older", "forgotten/2/1", "plan", "abcdefgh")
		p.Redis.HSet(p.ctx, "delivery:alice--1", "plan", "abcdefgh")
	}, finds: []string{`options:alice: has older lanes "forgotten/2/1", must be "" [set right]`}},
	{name: "older lanes that cannot be read", does: func(p *patient) {
		withLanes(p)
		p.Redis.HSet(p.ctx, "options:alice--1", "older", "rubbish /1/3")
	}, finds: []string{`options:alice: has older lanes "rubbish /1/3", must be "/1/3" [set right]`}},
	{name: "batches in a lane that its subscriber does not have", does: func(p *patient) {
		withLanes(p)
		p.Redis.Rename(p.ctx, "jobs:lane:batch:alice--1", "jobs:lane:batch:alice--1/forgotten/1")
	}, finds: []string{`jobs:lane:batch:alice/forgotten/1: is of lanes that its subscriber does not have [moved to the default lane]`}},
	{name: "lanes of a subscriber that is gone", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "batches:current:zoe--26/1", anUID)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:zoe--26/version1/1", redis.Z{Score: 1, Member: job(anUID)})
	}, finds: []string{
		`batches:current:client-4e337076/1: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`,
		`jobs:lane:batch:client-4e337076/version1/1: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed; the next in the lane is woken]`,
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

// withLanes gives Alice three lanes, whose version it makes known.
func withLanes(p *patient) {
	require.NoError(p.T, p.setLanes(3))
	p.Redis.HSet(p.ctx, "options:alice--1", "generation", "version1")
	p.Redis.HSet(p.ctx, "plans", "alice--1", "version1")
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

// TestLanesThatWaitForNothingAreWoken has the batches behind a change of the lanes wait for more
// than there were before it.
func TestLanesThatWaitForNothingAreWoken(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newPatient(t, server)
		withLanes(p)
		p.PublishEvents("widgets", 11, 14, 2)
		p.Redis.HSet(p.ctx, "options:alice--1", "older", "/1/4")
		p.drain()
		left := p.Redis.ZCard(p.ctx, "batches:index").Val()
		require.Positive(t, left, "those behind the change")
		assert.Equal(t, []string{`options:alice: has older lanes "/1/1", must be "" [set right]`}, p.examine(true))
		assert.False(t, p.Redis.HExists(p.ctx, "options:alice--1", "older").Val())
		assert.Empty(t, p.examine(true))
		var got []int
		for task := p.Take("w3", 3); task != nil; task = p.Take("w3", 3) { // before the time they are put off to
			got = append(got, numbers(t, task)...)
			p.Complete(task, storetest.Done)
		}
		assert.ElementsMatch(t, []int{11, 12, 13, 14}, got)
		p.RequireSound()
	})
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
			_ = b.setLanes(lanes%4 + 1) // too many at once are refused
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
