package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

const (
	anUID   = "AAAABBBBCCCCDDDDEEEE"
	jobHead = "\x92\xa5batch\x91\xb4"
)

// examine returns what an examination tells, in order, as a line each: what is wrong, and in
// brackets what is done about it.
func (f *fixture) examine(fix bool) []string {
	f.T.Helper()
	lines := []string{}
	census, err := f.Examine(f.T.Context(), fix, func(v store.Violation) {
		require.Equal(f.T, fix && v.Remedy != "", v.Fixed)
		lines = append(lines, fmt.Sprintf("%s: %s [%s]", v.Key, v.Problem, v.Remedy))
	})
	require.NoError(f.T, err)
	require.Empty(f.T, census.Unchecked)
	return lines
}

// patient is a bus with something to break: Alice has a batch under way (w1), one that waits in
// line, one that is current; Bob has a current one. Eight events in all.
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

type ailment struct {
	name string
	hurt func(p *patient)
	// finds has %[1]s for the running batch, 2 the waiting, 3 the current, 4 Bob's.
	finds []string
	// loses is how many events nobody can save.
	loses int
	// stays: it is left alone.
	stays bool
}

var ailments = []ailment{
	{name: "nothing", hurt: func(*patient) {}},
	{name: "a batch that is not in the index", hurt: func(p *patient) { p.Redis.ZRem(p.ctx, "batches:index", p.current) },
		finds: []string{`batch:%[3]s: is not in batches:index [added there]`}},
	{name: "an entry of the index without a batch", hurt: func(p *patient) { p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Member: anUID}) },
		finds: []string{`batches:index: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`}},
	{name: "a batch without a job", hurt: func(p *patient) {
		p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.bobs))
		p.Redis.SRem(p.ctx, "jobs:index:main", job(p.bobs))
	}, finds: []string{`batch:%[4]s: has no job [given one, to be run now]`}},
	{name: "a batch whose job is only in the index", hurt: func(p *patient) { p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.bobs)) },
		finds: []string{`batch:%[4]s: has no job [given one, to be run now]`}},
	{name: "a batch in line without a job", hurt: func(p *patient) { p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.waiting)) },
		finds: []string{`batch:%[2]s: has no job [given one, to be run now]`}},
	{name: "a job that is scheduled and instant", hurt: func(p *patient) { p.Redis.LPush(p.ctx, "jobs:instant:main", job(p.bobs)) },
		finds: []string{`job ["batch" "%[4]s"]: is in more than one place [reduced to one]`}},
	{name: "a job that is pending, instant and scheduled", hurt: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:instant:main", job(p.running), job(p.running))
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:main", redis.Z{Score: 1, Member: job(p.running)})
	}, finds: []string{`job ["batch" "%[1]s"]: is in more than one place [reduced to one]`}},
	{name: "a job that two workers have", hurt: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:pending:main:w9", job(p.running))
		p.Redis.SAdd(p.ctx, "jobs:pending:index:main", "w9")
	}, finds: []string{`job ["batch" "%[1]s"]: is in more than one place [reduced to one]`}},
	{name: "a job that is not in the index", hurt: func(p *patient) { p.Redis.SRem(p.ctx, "jobs:index:main", job(p.bobs)) },
		finds: []string{`job ["batch" "%[4]s"]: is not in jobs:index:main [added there]`}},
	{name: "jobs for batches that are gone", hurt: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:instant:main", job(anUID))
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:main", redis.Z{Score: 1, Member: job("BAAABBBBCCCCDDDDEEEE")})
		p.Redis.SAdd(p.ctx, "jobs:index:main", job("CAAABBBBCCCCDDDDEEEE"))
	}, finds: []string{
		`job ["batch" "AAAABBBBCCCCDDDDEEEE"]: is for a batch that is not there [removed]`,
		`job ["batch" "BAAABBBBCCCCDDDDEEEE"]: is for a batch that is not there [removed]`,
		`job ["batch" "CAAABBBBCCCCDDDDEEEE"]: is for a batch that is not there [removed]`,
	}},
	{name: "a batch that is gone while it is delivered", hurt: func(p *patient) {
		p.Redis.Del(p.ctx, "batch:"+p.running)
		p.Redis.ZRem(p.ctx, "batches:index", p.running)
		p.Redis.ZRem(p.ctx, "jobs:lane:batch:alice--1", job(p.running))
		p.Redis.HIncrBy(p.ctx, "batches:gauges:batch", "alice--1", -1)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -2)
	}, finds: []string{`job ["batch" "%[1]s"]: is for a batch that is not there, and a worker runs it: it goes when that is settled []`}, loses: 2, stays: true},
	{name: "a batch that is gone from under all that points to it", hurt: func(p *patient) { p.Redis.Del(p.ctx, "batch:"+p.current) },
		finds: []string{
			`batches:index: lists %[3]s, which is not there [removed]`,
			`job ["batch" "%[3]s"]: is for a batch that is not there [removed]`,
			`batches:current:alice: lists %[3]s, which is not there [removed]`,
			`batches:gauges:batch: has "3" for alice, must be 2 [set right]`,
			`batches:gauges:event: has "5" for alice, must be 4 [set right]`,
		}, loses: 1},
	{name: "a batch at the head of the line that is gone", hurt: func(p *patient) {
		p.Redis.Del(p.ctx, "batch:"+p.running, "jobs:pending:main:w1")
		p.Redis.SRem(p.ctx, "jobs:index:main", job(p.running))
		p.Redis.ZRem(p.ctx, "batches:index", p.running)
		p.Redis.HSet(p.ctx, "batches:gauges:batch", "alice--1", 2)
		p.Redis.HSet(p.ctx, "batches:gauges:event", "alice--1", 3)
	}, finds: []string{`jobs:lane:batch:alice: lists %[1]s, which is not there [removed; the next in line is called]`}, loses: 2},
	{name: "a batch without events", hurt: func(p *patient) {
		p.Redis.LTrim(p.ctx, "batch:"+p.current, 0, 2)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -1)
	}, finds: []string{`batch:%[3]s: has no event, or no subscriber [removed, with all that points to it]`}, loses: 1},
	{name: "a batch with half a header", hurt: func(p *patient) {
		p.Redis.LTrim(p.ctx, "batch:"+p.current, 0, 0)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -1)
	}, finds: []string{`batch:%[3]s: has no event, or no subscriber [removed, with all that points to it]`}, loses: 1},
	{name: "a batch without a subscriber", hurt: func(p *patient) {
		p.Redis.RPush(p.ctx, "batch:"+anUID, "", "1700000000000", "0", "x")
		p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: anUID})
	}, finds: []string{`batch:AAAABBBBCCCCDDDDEEEE: has no event, or no subscriber [removed, with all that points to it]`}},
	{name: "an empty batch that is being delivered", hurt: func(p *patient) {
		p.Redis.LTrim(p.ctx, "batch:"+p.running, 0, 2)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -2)
	}, finds: []string{
		`batch:%[1]s: has no event, or no subscriber [removed, with all that points to it]`,
	}, loses: 2, stays: true},
	{name: "another's batch as current and in line", hurt: func(p *patient) {
		p.Redis.SAdd(p.ctx, "batches:current:alice--1", p.bobs)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:alice--1", redis.Z{Score: -1, Member: job(p.bobs)})
	}, finds: []string{
		`batches:current:alice: lists %[4]s, another subscriber's [removed]`,
		`jobs:lane:batch:alice: lists %[4]s, another subscriber's [removed; the next in line is called]`,
	}},
	{name: "two current batches", hurt: func(p *patient) {
		p.PublishEvents("widgets", 5, 5, 10)
		p.Redis.Del(p.ctx, "batches:current:alice--1")
		p.PublishEvents("widgets", 5, 5, 11)
		p.Redis.SAdd(p.ctx, "batches:current:alice--1", p.waiting)
	}, finds: []string{`batches:current:alice: lists %[2]s and a newer batch, must list one [removed]`}},
	{name: "leftovers of a deleted subscriber", hurt: func(p *patient) {
		p.Redis.SAdd(p.ctx, "batches:current:zoe--26", anUID)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:zoe--26", redis.Z{Score: 1, Member: job(anUID)})
		p.Redis.HSet(p.ctx, "batches:gauges:event", "zoe--26", 3)
		p.Redis.HSet(p.ctx, "batches:gauges:batch", "zoe--26", 0)
		p.Redis.SAdd(p.ctx, "topics:zoe--26", "widgets")
	}, finds: []string{
		`topics:client-4e337076: names widgets, or is named there, and there is no such subscriber [removed from both]`,
		`batches:current:client-4e337076: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`,
		`jobs:lane:batch:client-4e337076: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed; the next in line is called]`,
		`batches:gauges:batch: has "0" for client-4e337076, must be 0 [set right]`,
		`batches:gauges:event: has "3" for client-4e337076, must be 0 [set right]`,
	}},
	{name: "wrong gauges", hurt: func(p *patient) {
		p.Redis.HSet(p.ctx, "batches:gauges:event", "alice--1", "rubbish")
		p.Redis.HDel(p.ctx, "batches:gauges:batch", "bob--2")
	}, finds: []string{
		`batches:gauges:event: has "rubbish" for alice, must be 5 [set right]`,
		`batches:gauges:batch: has "" for bob, must be 1 [set right]`,
	}},
	{name: "gauges that are no numbers to Redis", hurt: func(p *patient) {
		p.Redis.HSet(p.ctx, "batches:gauges:event", "alice--1", "99999999999999999999", "bob--2", "+8")
		p.Redis.HSet(p.ctx, "batches:gauges:batch", "alice--1", "003", "bob--2", "1.5", "zoe--26", "-99999999999999999999")
	}, finds: []string{
		`batches:gauges:batch: has "003" for alice, must be 3 [set right]`,
		`batches:gauges:batch: has "-99999999999999999999" for client-4e337076, must be 0 [set right]`,
		`batches:gauges:batch: has "1.5" for bob, must be 1 [set right]`,
		`batches:gauges:event: has "+8" for bob, must be 8 [set right]`,
		`batches:gauges:event: has "99999999999999999999" for alice, must be 5 [set right]`,
	}},
	{name: "a worker that a scrub does not find", hurt: func(p *patient) { p.Redis.Del(p.ctx, "jobs:pending:index:main") },
		finds: []string{`jobs:pending:main:w1: belongs to a worker that is not in jobs:pending:index:main [added there]`}},
	{name: "a worker with two jobs", hurt: func(p *patient) {
		p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.bobs))
		p.Redis.LPush(p.ctx, "jobs:pending:main:w1", job(p.bobs))
	}, finds: []string{`jobs:pending:main:w1: has several jobs, must have one [put back, all but the last]`}},
	{name: "housekeeping in no state", hurt: func(p *patient) { p.Redis.SAdd(p.ctx, "jobs:index:aux", "\x92\xacscrub_queues\x90") },
		finds: []string{`job ["scrub_queues"]: is in jobs:index:aux, but in no state [made instant]`}},
	{name: "housekeeping in two states, and not in the index", hurt: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:instant:aux", "\x92\xacscrub_queues\x90", "\x92\xacscrub_queues\x90")
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:aux", redis.Z{Member: "\x92\xadscrub_workers\x90"})
	}, finds: []string{
		`job ["scrub_queues"]: is in more than one place [reduced to one]`,
		`job ["scrub_queues"]: is not in jobs:index:aux [added there]`,
		`job ["scrub_workers"]: is not in jobs:index:aux [added there]`,
	}},
	{name: "subscriptions of which one side is left", hurt: func(p *patient) {
		p.Redis.SRem(p.ctx, "topics:bob--2", "widgets")
		p.Redis.SRem(p.ctx, "subscribers:gadgets", "bob--2")
	}, finds: []string{
		`topics:bob: and subscribers:gadgets differ [added to both]`,
		`topics:bob: and subscribers:widgets differ [added to both]`,
	}},
	{name: "a subscription to no topic", hurt: func(p *patient) {
		p.Redis.SAdd(p.ctx, "topics:bob--2", "gizmos")
		p.Redis.SAdd(p.ctx, "subscribers:gizmos", "bob--2")
	}, finds: []string{`topics:bob: names gizmos, or is named there, which is not in topics [added there]`}},
	{name: "a subscriber and a topic that are not listed", hurt: func(p *patient) {
		p.Redis.SRem(p.ctx, "subscribers", "bob--2")
		p.Redis.SRem(p.ctx, "topics", "widgets")
	}, finds: []string{
		`topic:widgets: is not in topics [added there]`,
		`subscriber:bob: is not in subscribers [added there]`,
	}},
	{name: "a subscriber without a callback", hurt: func(p *patient) {
		p.Redis.SAdd(p.ctx, "subscribers", "zoe--26")
		p.Redis.SAdd(p.ctx, "topics:zoe--26", "widgets")
		p.Redis.SAdd(p.ctx, "subscribers:widgets", "zoe--26")
	}, finds: []string{`subscriber:client-4e337076: has no callback [removed, with its subscriptions]`}},
	{name: "what remains of a subscriber", hurt: func(p *patient) { p.Redis.HSet(p.ctx, "subscriber:publisher--1", "health_points", "7") },
		finds: []string{`subscriber:publisher: is what remains of a subscriber that is not in subscribers [removed, with its subscriptions]`}},
	{name: "a subscriber without a token that is served all the same", hurt: func(p *patient) {
		p.Redis.SRem(p.ctx, "subscribers", "bob--2")
		p.Redis.HDel(p.ctx, "api_tokens:by_token", "bob--2")
		p.Redis.HSet(p.ctx, "subscriber:zoe--26", "callback", "https://z.example/")
		p.Redis.SAdd(p.ctx, "subscribers:gizmos", "zoe--26")
		p.Redis.SAdd(p.ctx, "topics:zoe--26", "gizmos")
	}, finds: []string{
		`subscriber:client-f56ebb27: is not in subscribers [added there]`,
		`subscriber:client-4e337076: is not in subscribers [added there]`,
		`topics:client-4e337076: names gizmos, or is named there, which is not in topics [added there]`,
	}},
	{name: "somebody else's keys", hurt: func(p *patient) {
		p.Redis.HSet(p.ctx, "subscriber:4711", "email", "a@b.example")
		p.Redis.HSet(p.ctx, "subscriber:4712", "callback", "x", "email", "a@b.example")
		p.Redis.HSet(p.ctx, "subscriber:4713", "uuid", "x")
		p.Redis.HSet(p.ctx, "subscriber:zoe--26", "callback", "https://z.example/")
		p.Redis.HSet(p.ctx, "topic:forum", "title", "x")
		p.Redis.HSet(p.ctx, "topic:forum_posts", "counter", "1", "title", "x")
		p.Redis.HSet(p.ctx, "topic:7", "counter", "1")
		p.Redis.SAdd(p.ctx, "subscribers:newsletter", "1", "2", "3")
		p.Redis.SAdd(p.ctx, "subscribers:digest", "1", "A B")
		p.Redis.SAdd(p.ctx, "topics:42", "go", "redis")
		p.Redis.SAdd(p.ctx, "topics:43", "widgets", "C++")
		p.Redis.RPush(p.ctx, "batch:import-2024", "row1", "row2", "row3", "row4", "row5")
		p.Redis.RPush(p.ctx, "batch:import-2024-summer01", "row1", "row2", "row3", "row4", "row5")
		p.Redis.RPush(p.ctx, "batch:import-2024-00000001", "12", "7", "8", "x")
		p.Redis.RPush(p.ctx, "batch:small", "a", "b")
		p.Redis.RPush(p.ctx, "batch:"+anUID, "a", "b")
		p.Redis.SAdd(p.ctx, "batches:current:9", "x", anUID)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:Nine", redis.Z{Score: 1, Member: job(anUID)})
		p.Redis.RPush(p.ctx, "jobs:pending:main:w7", "x", "y")
		p.Redis.RPush(p.ctx, "jobs:pending:mine:w7", "x", "y")
	}, finds: []string{
		notOurs("subscriber:client-de650d61", ""), notOurs("subscriber:client-4f0e70f9", ""), notOurs("subscriber:client-c84344c3", ""),
		`subscriber:client-4e337076: is not in subscribers, is subscribed to nothing, and nobody has its token: it may be somebody else's []`,
		notOurs("topic:forum", ""), notOurs("topic:forum_posts", ""), notOurs("topic:7", ""),
		nobodys("subscribers:newsletter"), notOurs("subscribers:digest", ""), nobodys("topics:client-73475cb4"), notOurs("topics:client-44cb730c", ""),
		`batch:import-2024: is not a key of the layout []`, `batch:small: is not a key of the layout []`,
		noBatch("batch:import-2024-summer01", ""), noBatch("batch:import-2024-00000001", ""), noBatch("batch:"+anUID, ""),
		nobodys("batches:current:client-19581e27"), nobodys("jobs:lane:batch:Nine"),
		notOurs("jobs:pending:main:w7", ""), `jobs:pending:mine:w7: is not a key of the layout []`,
		`job "x": in queue main is not one that this program writes []`, `job "y": in queue main is not one that this program writes []`,
	}, stays: true},
	{name: "somebody else's keys that the bus points to", hurt: func(p *patient) {
		p.Redis.SAdd(p.ctx, "subscribers", "4711")
		p.Redis.HSet(p.ctx, "subscriber:4711", "email", "a@b.example")
		p.Redis.SAdd(p.ctx, "subscribers", "zoe--26")
		p.Redis.SAdd(p.ctx, "topics:zoe--26", "C++")
		p.Redis.HSet(p.ctx, "subscriber:publisher--1", "health_points", "7")
		p.Redis.SAdd(p.ctx, "batches:current:publisher--1", "x")
		p.Redis.SAdd(p.ctx, "topics", "forum")
		p.Redis.HSet(p.ctx, "topic:forum", "title", "x")
		p.Redis.SAdd(p.ctx, "subscribers:forum", "A B")
		p.Redis.RPush(p.ctx, "batch:"+anUID, "row1", "row2", "row3", "row4")
		p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: anUID})
		p.Redis.RPush(p.ctx, "batch:BAAABBBBCCCCDDDDEEEE", "row1", "row2", "row3", "row4")
		p.Redis.SAdd(p.ctx, "jobs:index:main", job("BAAABBBBCCCCDDDDEEEE"))
		p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: "x"})
	}, finds: []string{
		notOurs("subscriber:client-de650d61", ", though subscribers lists it"),
		notOurs("subscriber:client-4e337076", ", though subscribers lists it"),
		notOurs("subscriber:publisher", ""), nobodys("batches:current:publisher"),
		notOurs("topics:client-4e337076", ", though the bus lists whom it is named after"),
		notOurs("topic:forum", ", though topics lists it"),
		notOurs("subscribers:forum", ", though the bus lists whom it is named after"),
		noBatch("batch:"+anUID, ", though the bus lists it"),
		noBatch("batch:BAAABBBBCCCCDDDDEEEE", ", though the bus lists it"),
		`batches:index: lists "x", which is no UID []`,
	}, stays: true},
	{name: "what is not ours", hurt: func(p *patient) {
		p.Redis.Set(p.ctx, "foreign", "x", 0)
		p.Redis.Set(p.ctx, "queue:new:alice--1", "x", 0)
		p.Redis.Set(p.ctx, "topics:bob--3", "x", 0)
		p.Redis.Set(p.ctx, "batch:"+anUID, "x", 0)
		p.Redis.LPush(p.ctx, "jobs:instant:aux", "\xc1")
		p.Redis.SAdd(p.ctx, "jobs:index:main", "\x92\xa5batch\x91\xd9\x14"+p.current)
	}, finds: []string{
		`batch:AAAABBBBCCCCDDDDEEEE: is a string, must be a list []`,
		`foreign: is not a key of the layout []`,
		`queue:new:alice: is not a key of the layout []`,
		`topics:client-7351aa62: is a string, must be a set []`,
		`job ["batch" "%[3]s"]: in queue main is not one that this program writes []`,
		`job "\xc1": in queue aux is not one that this program writes []`,
	}, stays: true},
	{name: "a subscriber that is no hash", hurt: func(p *patient) { p.Redis.Set(p.ctx, "subscriber:bob--2", "x", 0) },
		finds: []string{`subscriber:bob: is a string, must be a hash []`}, stays: true},
	{name: "a subscriber's topics that are no set", hurt: func(p *patient) { p.Redis.Set(p.ctx, "topics:bob--2", "x", 0) },
		finds: []string{`topics:bob: is a string, must be a set []`}, stays: true},
	{name: "a key that all depends on", hurt: func(p *patient) {
		p.Redis.Rename(p.ctx, "topics", "t")
		p.Redis.Set(p.ctx, "topics", "x", 0)
	}, finds: []string{`topics: is a string, must be a set []`}, stays: true},
	{name: "batches of the Ruby original", hurt: func(p *patient) {
		for i, state := range []string{"jobs:instant:main", "jobs:scheduled:main", "jobs:pending:main:w8"} {
			bid := fmt.Sprintf("RUBYRUBYRUBYRUBY---%d", i)
			p.Redis.RPush(p.ctx, "batches:"+bid, "bob--2", "1700000000000", "0", "x")
			p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: bid})
			p.Redis.HIncrBy(p.ctx, "batches:gauges:batch", "bob--2", 1)
			p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "bob--2", 1)
			p.Redis.SAdd(p.ctx, "jobs:index:main", job(bid))
			p.Redis.SAdd(p.ctx, "batches:current:bob--2", bid)
			switch state {
			case "jobs:scheduled:main":
				p.Redis.ZAdd(p.ctx, state, redis.Z{Score: 1 << 50, Member: job(bid)})
			case "jobs:pending:main:w8":
				p.Redis.SAdd(p.ctx, "jobs:pending:index:main", "w8")
				p.Redis.RPush(p.ctx, state, job(bid))
			default:
				p.Redis.RPush(p.ctx, state, job(bid))
			}
		}
	}, finds: []string{`batches:{uid}: 3 batches of the Ruby original, which rtm migrate moves; they, and what belongs to them, are left alone []`}, stays: true},
}

func notOurs(key, though string) string {
	return key + ": is not as the bus writes it, so it is somebody else's" + though + " []"
}

func noBatch(key, though string) string {
	return key + ": is not a batch that the bus has written, so it is somebody else's" + though + " []"
}

func nobodys(key string) string {
	return key + ": is named after nothing that the bus knows: it may be somebody else's []"
}

// TestARepairLeavesAnotherBusAlone has another bus, with the same clients, whose namespace begins
// as keys of ours do.
func TestARepairLeavesAnotherBusAlone(t *testing.T) {
	namespaces := []string{
		"topic:", "topics:", "subscriber:", "subscribers:", "batch:", "batches:", "batches:current:", "jobs:lane:batch:", "batches:gauges:",
		"jobs:", "jobs:index:", "jobs:scheduled:", "jobs:instant:", "jobs:pending:", "jobs:pending:main:", "jobs:pending:index:", "idempotency:", "api_tokens:",
	}
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newPatient(t, server)
		ours := dump(t, p.Redis)
		for _, namespace := range namespaces {
			other := newFixtureOn(t, server, server.Open(t).Partition(namespace))
			other.AddSubscriber(alice, time.Second, 2, "widgets", "gadgets")
			other.AddSubscriber(bob, time.Second, 2, "widgets", "gizmos")
			other.PublishEvents("widgets", 1, 5, 0)
			require.NotNil(t, other.Take("w1", 1), namespace)
			require.NotNil(t, other.Take("w2", 1), namespace)
			require.Nil(t, other.Take("w3", 1), namespace)
		}
		before := dump(t, p.Redis)
		for range 2 {
			for _, line := range p.examine(true) {
				assert.Contains(t, line, " []", "left alone")
			}
			assert.Equal(t, before, dump(t, p.Redis))
		}
		assert.Len(t, p.drain(), 5+eventsOfPatient)
		afterwards := dump(t, p.Redis)
		for key, value := range before {
			if ours[key] == "" {
				assert.Equal(t, value, afterwards[key], key)
			}
		}
	})
}

// TestARepairKeepsASubscription has a subscriber to what nobody has published to, where half of it
// is gone.
func TestARepairKeepsASubscription(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, key := range []string{"", "topics:alice--1", "subscribers:rarely"} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			p := &patient{fixture: newFixture(t, server), ctx: t.Context()}
			p.AddSubscriber(alice, 0, 1, "rarely", "widgets")
			p.Redis.SRem(p.ctx, "topics", "rarely")
			if key != "" {
				p.Redis.SRem(p.ctx, key, "rarely", "alice--1")
			}
			p.examine(true)
			p.PublishEvents("rarely", 1, 1, 0)
			assert.Equal(t, map[string]int{"alice--1 1": 1}, p.drain(), key)
			p.examine(true) // without the topic, and without this side, it was not certain whose the other side was
			p.RequireSound()
		}
	})
}

// TestEveryAilmentIsToldAndRepaired breaks a sound bus in every way, and sees that told exactly,
// changed by nobody who is not asked to fix it, and repaired by who is, once; and then everything
// delivered.
func TestEveryAilmentIsToldAndRepaired(t *testing.T) {
	for _, a := range ailments {
		t.Run(a.name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
				p := newPatient(t, server)
				a.hurt(p)
				want := []string{}
				for _, line := range a.finds {
					if strings.Contains(line, "%") {
						line = fmt.Sprintf(line+"%[5]s", p.running, p.waiting, p.current, p.bobs, "")
					}
					want = append(want, line)
				}
				before := dump(t, server.Raw)
				assert.ElementsMatch(t, want, p.examine(false))
				assert.Equal(t, before, dump(t, server.Raw), "who only looks changes nothing")
				assert.ElementsMatch(t, want, p.examine(true))
				fixed := dump(t, server.Raw)
				if !a.stays {
					assert.Empty(t, p.examine(true), "it is repaired")
				} else {
					p.examine(true)
				}
				assert.Equal(t, fixed, dump(t, server.Raw), "a second repair changes nothing")
				if a.stays {
					return
				}
				got := p.drain()
				assert.Len(t, got, 5+eventsOfPatient-a.loses, "%v", slices.Sorted(maps.Keys(got)))
				p.RequireSound()
			})
		})
	}
}

// sinceStart is the real time, in ms after start: what is put off for long is judged by that.
func sinceStart() int { return int(time.Since(start).Milliseconds()) }

// TestALineThatNobodyCallsIsCalled has the first of a line wait for its turn, which nobody will
// call.
func TestALineThatNobodyCallsIsCalled(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		now := sinceStart()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, now)
		first := f.Take("w1", now)
		require.Nil(t, f.Take("w2", now), "the others wait for their turn")
		assert.Empty(t, f.examine(true))
		require.NoError(t, f.Redis.ZRem(t.Context(), "jobs:lane:batch:"+string(alice), job(string(first.Delivery.Batch))).Err())
		f.Complete(first, storetest.Done)
		require.Nil(t, f.Take("w1", now))

		second := batchOf(t, f.Redis.ZRange(t.Context(), "jobs:lane:batch:"+string(alice), 0, 0).Val()[0])
		found := []string{"jobs:lane:batch:alice: begins with " + second + ", which waits for its turn, though nobody is before it [called, to be run now]"}
		before := dump(t, f.Redis)
		assert.Equal(t, found, f.examine(false))
		assert.Equal(t, before, dump(t, f.Redis), "who only looks changes nothing")
		assert.Equal(t, found, f.examine(true))
		assert.Empty(t, f.examine(true))
		for _, n := range []int{2, 3} {
			task := f.Take("w1", now)
			assert.Equal(t, []int{n}, numbers(t, task))
			f.Complete(task, storetest.Done)
		}
		f.RequireSound()
	})
}

// TestALineThatStandsForAReasonIsLeftAlone looks at whatever else the first of a line may wait for.
func TestALineThatStandsForAReasonIsLeftAlone(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		now := sinceStart()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 3, now)
		first := f.Take("w1", now)
		require.Nil(t, f.Take("w2", now))
		head := func() string {
			return batchOf(t, f.Redis.ZRange(t.Context(), "jobs:lane:batch:"+string(alice), 0, 0).Val()[0])
		}
		deadline := func() time.Time {
			return time.UnixMilli(int64(f.Redis.ZScore(t.Context(), "jobs:scheduled:main", job(head())).Val()))
		}
		look := func(why string) {
			t.Helper()
			before := dump(t, f.Redis)
			assert.Empty(t, f.examine(true), why)
			assert.Equal(t, before, dump(t, f.Redis), why)
		}
		look("it is being delivered")

		failed := string(first.Delivery.Batch)
		const hour = 3_600_000
		f.Complete(first, storetest.Result{RetryAt: after(now + 2*hour), ThrottledUntil: after(now + hour), Health: -1})
		require.NotEqual(t, failed, head())
		look("it is called")
		require.Nil(t, f.Take("w1", now))
		require.Equal(t, after(now+hour), deadline())
		look("its subscriber is left alone")

		f.AddSubscriber(alice, 0, 1, "widgets") // which ends that
		look("it is called again")
		subscriber := "subscriber:" + string(alice)
		require.NoError(t, f.Redis.Rename(t.Context(), subscriber, "aside").Err())
		require.NoError(t, f.Redis.Set(t.Context(), subscriber, "x", 0).Err())
		_, err := f.Acquire(t.Context(), bus.QueueMain, "w1", bus.Failing, after(now))
		require.ErrorIs(t, err, bus.ErrPoisoned)
		require.NoError(t, f.Redis.Rename(t.Context(), "aside", subscriber).Err())
		require.Equal(t, after(now+60_000), deadline())
		look("it met something damaged, and comes up again a minute later")
	})
}

// TestTwoRepairsAtOnce has two examinations repair the same damage, time and again.
func TestTwoRepairsAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for range 10 {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			p := newPatient(t, server)
			loses := 0
			for _, a := range ailments {
				if slices.Contains([]string{
					"a batch that is not in the index", "an entry of the index without a batch", "a batch without a job", "a batch in line without a job",
					"a job that two workers have", "jobs for batches that are gone", "another's batch as current and in line",
					"leftovers of a deleted subscriber", "wrong gauges", "a worker that a scrub does not find", "housekeeping in two states, and not in the index",
					"subscriptions of which one side is left", "a subscription to no topic", "a subscriber and a topic that are not listed",
				}, a.name) {
					a.hurt(p)
					loses += a.loses
				}
			}
			var both sync.WaitGroup
			var told [2]int
			for i := range told {
				both.Go(func() {
					_, err := p.Examine(p.ctx, true, func(store.Violation) { told[i]++ })
					assert.NoError(t, err)
				})
			}
			both.Wait()
			assert.Empty(t, p.examine(false), "told: %v", told)
			got := p.drain()
			assert.Len(t, got, 5+eventsOfPatient-loses)
			for event, times := range got {
				assert.Equal(t, 1, times, event)
			}
			p.RequireSound()
		}
	})
}

// TestALongQueueIsCheckedInSteps has more instant jobs than a script may search.
func TestALongQueueIsCheckedInSteps(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const events = 3500
		p := &patient{fixture: newFixture(t, server), ctx: t.Context()}
		p.AddSubscriber(alice, 0, 1, "widgets")
		for i := 0; i < events; i += 500 {
			p.PublishEvents("widgets", i+1, i+500, i)
		}
		require.Empty(t, p.examine(false))

		queue := p.Redis.LRange(p.ctx, "jobs:instant:main", 0, -1).Val()
		require.Len(t, queue, events)
		var want []string
		for _, i := range []int{0, 1, 999, 1000, 1001, 2000, 3000, 3498, 3499} { // without a job
			p.Redis.LRem(p.ctx, "jobs:instant:main", 1, queue[i])
			want = append(want, fmt.Sprintf("batch:%s: has no job [given one, to be run now]", queue[i][len(jobHead):]))
		}
		for _, i := range []int{5, 1500, 3400} { // twice
			p.Redis.LPush(p.ctx, "jobs:instant:main", queue[i])
			p.Redis.RPush(p.ctx, "jobs:instant:main", queue[i])
			want = append(want, fmt.Sprintf(`job ["batch" "%s"]: is in more than one place [reduced to one]`, queue[i][len(jobHead):]))
		}
		for _, i := range []int{10, 1600, 3300} { // also scheduled
			p.Redis.ZAdd(p.ctx, "jobs:scheduled:main", redis.Z{Score: 1, Member: queue[i]})
			want = append(want, fmt.Sprintf(`job ["batch" "%s"]: is in more than one place [reduced to one]`, queue[i][len(jobHead):]))
		}
		for _, i := range []int{20, 1700, 3200} { // for nothing
			bid := fmt.Sprintf("GONE%016d", i)
			p.Redis.LInsertBefore(p.ctx, "jobs:instant:main", queue[i], job(bid))
			want = append(want, fmt.Sprintf(`job ["batch" "%s"]: is for a batch that is not there [removed]`, bid))
		}
		before := dump(t, p.Redis)
		assert.ElementsMatch(t, want, p.examine(false))
		assert.Equal(t, before, dump(t, p.Redis))
		assert.ElementsMatch(t, want, p.examine(true))
		assert.Empty(t, p.examine(true))
		got := p.drain()
		assert.Len(t, got, events)
		for event, times := range got {
			require.Equal(t, 1, times, event)
		}
		p.RequireSound()
	})
}

// TestExaminationsDoNotDisturbABusyBus examines, with and without fixing, again and again, while
// everything else goes on as fast as it can.
func TestExaminationsDoNotDisturbABusyBus(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		rounds, each, backlog, maxEvents := 40, 10, int64(4000), 1 // more instant jobs than a script may search
		if server.IsEmbedded() {
			rounds, backlog, maxEvents = 15, 300, 3
		}
		client := server.Open(t, func(o *rdb.Options) { o.Connections = 20 })
		f := newFixtureOn(t, server, client.Partition(""))
		f.AddSubscriber(alice, 0, maxEvents, "widgets")
		f.AddSubscriber(bob, 2*time.Millisecond, 50, "widgets")
		ctx, stop := context.WithCancel(t.Context())
		var mutex sync.Mutex
		got := map[string]int{}
		var publishers, others sync.WaitGroup
		var published int
		publishing, enough := context.WithCancel(ctx)
		for range 2 {
			publishers.Go(func() {
				for publishing.Err() == nil {
					if f.Redis.ZCard(ctx, "batches:index").Val() > backlog {
						continue // so that all that is published is delivered in the end
					}
					mutex.Lock()
					first := published + 1
					published += each
					mutex.Unlock()
					f.publishNow("widgets", first, first+each-1)
				}
			})
		}
		others.Go(func() { // subscribers that come and go
			const carol = bus.Token("carol--3")
			_ = f.PutToken(ctx, carol, "carol")
			for ctx.Err() == nil {
				_ = f.Subscribe(ctx, carol, bus.Subscription{Topics: []bus.TopicName{"widgets", "gadgets"}, Callback: "https://c.example/"}, time.Now())
				_ = f.Unsubscribe(ctx, carol, "widgets")
				_ = f.DeleteSubscriber(ctx, carol)
				_ = f.DeleteTopic(ctx, "gadgets", "")
			}
		})
		others.Go(func() {
			for ctx.Err() == nil {
				_, _ = f.Schedule(ctx, bus.QueueMain, time.Now(), 1000)
				_, _ = f.Enqueue(ctx, bus.QueueAux, bus.Job{Name: bus.JobScrubQueues})
				if task, _ := f.Acquire(ctx, bus.QueueAux, "aux", bus.Failing, time.Now()); task != nil {
					_, _ = f.CompleteAt(context.WithoutCancel(ctx), task, storetest.Done, time.Now())
				}
			}
		})
		for i := range 4 {
			worker := bus.WorkerID(fmt.Sprintf("w%d", i))
			others.Go(func() {
				for n := 1; ctx.Err() == nil; n++ {
					task, _ := f.Acquire(context.WithoutCancel(ctx), bus.QueueMain, worker, bus.Failing, time.Now())
					if task == nil {
						continue
					}
					outcome := storetest.Result{Health: 1, Delivered: len(task.Delivery.Events)}
					if n%7 == 0 { // it fails
						outcome = storetest.Result{Health: -2, RetryAt: time.Now().Add(time.Millisecond)}
					}
					if n%11 == 0 {
						outcome.ThrottledUntil = time.Now().Add(time.Millisecond)
					}
					events := numbers(t, task)
					if owned, _ := f.CompleteAt(context.WithoutCancel(ctx), task, outcome, time.Now()); owned && outcome.RetryAt.IsZero() {
						mutex.Lock()
						for _, event := range events {
							got[fmt.Sprintf("%s %d", task.Delivery.Subscriber, event)]++
						}
						mutex.Unlock()
					}
				}
			})
		}
		for round := range rounds {
			_, err := f.Examine(ctx, round%2 == 1, func(v store.Violation) { t.Errorf("told of %s [%s]", v, v.Remedy) })
			require.NoError(t, err)
		}
		enough()
		publishers.Wait()
		require.Eventually(t, func() bool { return f.Redis.ZCard(ctx, "batches:index").Val() == 0 }, 3*time.Minute, 5*time.Millisecond)
		stop()
		others.Wait()
		for _, token := range []bus.Token{alice, bob} {
			for n := 1; n <= published; n++ {
				if times := got[fmt.Sprintf("%s %d", token, n)]; times != 1 {
					t.Fatalf("event %d was delivered %d times to %s", n, times, token)
				}
			}
		}
		t.Logf("%d events", published)
		f.RequireSound()
	})
}

// publishNow publishes events at the time it is.
func (f *fixture) publishNow(topic bus.TopicName, first, last int) {
	p := store.Publication{Topic: topic, Publisher: publisher, ReceivedAt: time.Now().UnixMilli()}
	for i := first; i <= last; i++ {
		p.Events = append(p.Events, packed(f.T, topic, i))
	}
	assert.NoError(f.T, f.Publish(context.WithoutCancel(f.T.Context()), p))
}
