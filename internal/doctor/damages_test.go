package doctor_test

import (
	"github.com/redis/go-redis/v9"
)

type damage struct {
	name string
	does func(p *patient)
	// finds has %[1]s for the running batch, 2 the waiting, 3 the current, 4 Bob's.
	finds []string
	// loses is the number of events that cannot be saved.
	loses int
	// stays: it is skipped.
	stays bool
}

// eventBytes is how many bytes an event of a patient has, packed.
const eventBytes = 51

var damages = []damage{
	{name: "nothing", does: func(*patient) {}},
	{name: "a batch that is not in the index", does: func(p *patient) { p.Redis.ZRem(p.ctx, "batches:index", p.current) },
		finds: []string{`batch:%[3]s: is not in batches:index [added there]`}},
	{name: "an entry of the index without a batch", does: func(p *patient) { p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Member: anUID}) },
		finds: []string{`batches:index: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`}},
	{name: "a batch without a job", does: func(p *patient) {
		p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.bobs))
		p.Redis.SRem(p.ctx, "jobs:index:main", job(p.bobs))
	}, finds: []string{`batch:%[4]s: has no job [given one, to be run now]`}},
	{name: "a batch whose job is only in the index", does: func(p *patient) { p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.bobs)) },
		finds: []string{`batch:%[4]s: has no job [given one, to be run now]`}},
	{name: "a batch in a lane without a job", does: func(p *patient) { p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.waiting)) },
		finds: []string{`batch:%[2]s: has no job [given one, to be run now]`}},
	{name: "a job that is scheduled and instant", does: func(p *patient) { p.Redis.LPush(p.ctx, "jobs:instant:main", job(p.bobs)) },
		finds: []string{`job ["batch" "%[4]s"]: is in more than one place [reduced to one]`}},
	{name: "a job that is pending, instant and scheduled", does: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:instant:main", job(p.running), job(p.running))
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:main", redis.Z{Score: 1, Member: job(p.running)})
	}, finds: []string{`job ["batch" "%[1]s"]: is in more than one place [reduced to one]`}},
	{name: "a job that two workers have", does: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:pending:main:w9", job(p.running))
		p.Redis.SAdd(p.ctx, "jobs:pending:index:main", "w9")
	}, finds: []string{`job ["batch" "%[1]s"]: is in more than one place [reduced to one]`}},
	{name: "a job that is not in the index", does: func(p *patient) { p.Redis.SRem(p.ctx, "jobs:index:main", job(p.bobs)) },
		finds: []string{`job ["batch" "%[4]s"]: is not in jobs:index:main [added there]`}},
	{name: "jobs for batches that are gone", does: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:instant:main", job(anUID))
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:main", redis.Z{Score: 1, Member: job("BAAABBBBCCCCDDDDEEEE")})
		p.Redis.SAdd(p.ctx, "jobs:index:main", job("CAAABBBBCCCCDDDDEEEE"))
	}, finds: []string{
		`job ["batch" "AAAABBBBCCCCDDDDEEEE"]: is for a batch that is not there [removed]`,
		`job ["batch" "BAAABBBBCCCCDDDDEEEE"]: is for a batch that is not there [removed]`,
		`job ["batch" "CAAABBBBCCCCDDDDEEEE"]: is for a batch that is not there [removed]`,
	}},
	{name: "a batch that is gone while it is delivered", does: func(p *patient) {
		p.Redis.Del(p.ctx, "batch:"+p.running)
		p.Redis.ZRem(p.ctx, "batches:index", p.running)
		p.Redis.ZRem(p.ctx, "jobs:lane:batch:alice--1", job(p.running))
		p.Redis.HIncrBy(p.ctx, "batches:gauges:batch", "alice--1", -1)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -2)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:bytes", "alice--1", -2*eventBytes)
	}, finds: []string{`job ["batch" "%[1]s"]: is for a batch that is not there, and a worker runs it: it goes when that is completed []`}, loses: 2, stays: true},
	{name: "a batch that is gone from under all that points to it", does: func(p *patient) { p.Redis.Del(p.ctx, "batch:"+p.current) },
		finds: []string{
			`batches:index: lists %[3]s, which is not there [removed]`,
			`job ["batch" "%[3]s"]: is for a batch that is not there [removed]`,
			`batches:current:alice: lists %[3]s, which is not there [removed]`,
			`batches:gauges:batch: has "3" for alice, must be 2 [set right]`,
			`batches:gauges:event: has "5" for alice, must be 4 [set right]`,
			`batches:gauges:bytes: has "255" for alice, must be 204 [set right]`,
		}, loses: 1},
	{name: "a batch at the head of the lane that is gone", does: func(p *patient) {
		p.Redis.Del(p.ctx, "batch:"+p.running, "jobs:pending:main:w1")
		p.Redis.SRem(p.ctx, "jobs:index:main", job(p.running))
		p.Redis.ZRem(p.ctx, "batches:index", p.running)
		p.Redis.HSet(p.ctx, "batches:gauges:batch", "alice--1", 2)
		p.Redis.HSet(p.ctx, "batches:gauges:event", "alice--1", 3)
		p.Redis.HSet(p.ctx, "batches:gauges:bytes", "alice--1", 3*eventBytes)
	}, finds: []string{`jobs:lane:batch:alice: lists %[1]s, which is not there [removed; the next in the lane is woken]`}, loses: 2},
	{name: "a batch without events", does: func(p *patient) {
		p.Redis.LTrim(p.ctx, "batch:"+p.current, 0, 2)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -1)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:bytes", "alice--1", -1*eventBytes)
	}, finds: []string{`batch:%[3]s: has no event, or no subscriber [removed, with all that points to it]`}, loses: 1},
	{name: "a batch with half a header", does: func(p *patient) {
		p.Redis.LTrim(p.ctx, "batch:"+p.current, 0, 0)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -1)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:bytes", "alice--1", -1*eventBytes)
	}, finds: []string{`batch:%[3]s: has no event, or no subscriber [removed, with all that points to it]`}, loses: 1},
	{name: "a batch without a subscriber", does: func(p *patient) {
		p.Redis.RPush(p.ctx, "batch:"+anUID, "", "1700000000000", "0", "x")
		p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: anUID})
	}, finds: []string{`batch:AAAABBBBCCCCDDDDEEEE: has no event, or no subscriber [removed, with all that points to it]`}},
	{name: "an empty batch that is being delivered", does: func(p *patient) {
		p.Redis.LTrim(p.ctx, "batch:"+p.running, 0, 2)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:event", "alice--1", -2)
		p.Redis.HIncrBy(p.ctx, "batches:gauges:bytes", "alice--1", -2*eventBytes)
	}, finds: []string{
		`batch:%[1]s: has no event, or no subscriber [removed, with all that points to it]`,
	}, loses: 2, stays: true},
	{name: "another's batch as current and in the lane", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "batches:current:alice--1", p.bobs)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:alice--1", redis.Z{Score: -1, Member: job(p.bobs)})
	}, finds: []string{
		`batches:current:alice: lists %[4]s, another subscriber's [removed]`,
		`jobs:lane:batch:alice: lists %[4]s, another subscriber's [removed; the next in the lane is woken]`,
	}},
	{name: "two current batches", does: func(p *patient) {
		p.PublishEvents("widgets", 5, 5, 10)
		p.Redis.Del(p.ctx, "batches:current:alice--1")
		p.PublishEvents("widgets", 5, 5, 11)
		p.Redis.SAdd(p.ctx, "batches:current:alice--1", p.waiting)
	}, finds: []string{`batches:current:alice: lists %[2]s and a newer batch, must list one [removed]`}},
	{name: "leftovers of a deleted subscriber", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "batches:current:zoe--26", anUID)
		p.Redis.ZAdd(p.ctx, "jobs:lane:batch:zoe--26", redis.Z{Score: 1, Member: job(anUID)})
		p.Redis.HSet(p.ctx, "batches:gauges:event", "zoe--26", 3)
		p.Redis.HSet(p.ctx, "batches:gauges:batch", "zoe--26", 0)
		p.Redis.SAdd(p.ctx, "topics:zoe--26", "widgets")
	}, finds: []string{
		`topics:client-4e337076: names widgets, or is named there, and there is no such subscriber [removed from both]`,
		`batches:current:client-4e337076: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`,
		`jobs:lane:batch:client-4e337076: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed; the next in the lane is woken]`,
		`batches:gauges:batch: has "0" for client-4e337076, must be 0 [set right]`,
		`batches:gauges:event: has "3" for client-4e337076, must be 0 [set right]`,
	}},
	{name: "wrong gauges", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "batches:gauges:event", "alice--1", "rubbish")
		p.Redis.HDel(p.ctx, "batches:gauges:batch", "bob--2")
		p.Redis.HIncrBy(p.ctx, "batches:gauges:bytes", "alice--1", 1)
		p.Redis.HSet(p.ctx, "batches:gauges:bytes", "zoe--26", 7)
	}, finds: []string{
		`batches:gauges:bytes: has "256" for alice, must be 255 [set right]`,
		`batches:gauges:bytes: has "7" for client-4e337076, must be 0 [set right]`,
		`batches:gauges:event: has "rubbish" for alice, must be 5 [set right]`,
		`batches:gauges:batch: has "" for bob, must be 1 [set right]`,
	}},
	{name: "gauges that are no numbers to Redis", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "batches:gauges:event", "alice--1", "99999999999999999999", "bob--2", "+8")
		p.Redis.HSet(p.ctx, "batches:gauges:batch", "alice--1", "003", "bob--2", "1.5", "zoe--26", "-99999999999999999999")
	}, finds: []string{
		`batches:gauges:batch: has "003" for alice, must be 3 [set right]`,
		`batches:gauges:batch: has "-99999999999999999999" for client-4e337076, must be 0 [set right]`,
		`batches:gauges:batch: has "1.5" for bob, must be 1 [set right]`,
		`batches:gauges:event: has "+8" for bob, must be 8 [set right]`,
		`batches:gauges:event: has "99999999999999999999" for alice, must be 5 [set right]`,
	}},
	{name: "a worker that a scrub does not find", does: func(p *patient) { p.Redis.Del(p.ctx, "jobs:pending:index:main") },
		finds: []string{`jobs:pending:main:w1: belongs to a worker that is not in jobs:pending:index:main [added there]`}},
	{name: "a worker with two jobs", does: func(p *patient) {
		p.Redis.ZRem(p.ctx, "jobs:scheduled:main", job(p.bobs))
		p.Redis.LPush(p.ctx, "jobs:pending:main:w1", job(p.bobs))
	}, finds: []string{`jobs:pending:main:w1: has several jobs, must have one [put back, all but the last]`}},
	{name: "housekeeping in no state", does: func(p *patient) { p.Redis.SAdd(p.ctx, "jobs:index:aux", "\x92\xacscrub_queues\x90") },
		finds: []string{`job ["scrub_queues"]: is in jobs:index:aux, but in no state [made instant]`}},
	{name: "housekeeping in two states, and not in the index", does: func(p *patient) {
		p.Redis.LPush(p.ctx, "jobs:instant:aux", "\x92\xacscrub_queues\x90", "\x92\xacscrub_queues\x90")
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:aux", redis.Z{Member: "\x92\xadscrub_workers\x90"})
	}, finds: []string{
		`job ["scrub_queues"]: is in more than one place [reduced to one]`,
		`job ["scrub_queues"]: is not in jobs:index:aux [added there]`,
		`job ["scrub_workers"]: is not in jobs:index:aux [added there]`,
	}},
	{name: "subscriptions of which one side is left", does: func(p *patient) {
		p.Redis.SRem(p.ctx, "topics:bob--2", "widgets")
		p.Redis.SRem(p.ctx, "subscribers:gadgets", "bob--2")
	}, finds: []string{
		`topics:bob: and subscribers:gadgets differ [added to both]`,
		`topics:bob: and subscribers:widgets differ [added to both]`,
	}},
	{name: "a subscription to no topic", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "topics:bob--2", "gizmos")
		p.Redis.SAdd(p.ctx, "subscribers:gizmos", "bob--2")
	}, finds: []string{`topics:bob: names gizmos, or is named there, which is not in topics [added there]`}},
	{name: "a subscriber and a topic that are not listed", does: func(p *patient) {
		p.Redis.SRem(p.ctx, "subscribers", "bob--2")
		p.Redis.SRem(p.ctx, "topics", "widgets")
	}, finds: []string{
		`topic:widgets: is not in topics [added there]`,
		`subscriber:bob: is not in subscribers [added there]`,
	}},
	{name: "a subscriber without a callback", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "subscribers", "zoe--26")
		p.Redis.SAdd(p.ctx, "topics:zoe--26", "widgets")
		p.Redis.SAdd(p.ctx, "subscribers:widgets", "zoe--26")
	}, finds: []string{`subscriber:client-4e337076: has no callback [removed, with its subscriptions]`}},
	{name: "what remains of a subscriber", does: func(p *patient) { p.Redis.HSet(p.ctx, "subscriber:publisher--1", "health_points", "7") },
		finds: []string{`subscriber:publisher: is what remains of a subscriber that is not in subscribers [removed, with its subscriptions]`}},
	{name: "a subscriber without a token that is served all the same", does: func(p *patient) {
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
}
