package doctor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

// skipped are cases that doctor reports and leaves unchanged.
var skipped = []damage{
	{name: "what is not ours", does: func(p *patient) {
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
	{name: "a subscriber that is no hash", does: func(p *patient) { p.Redis.Set(p.ctx, "subscriber:bob--2", "x", 0) },
		finds: []string{`subscriber:bob: is a string, must be a hash []`}, stays: true},
	{name: "a subscriber's topics that are no set", does: func(p *patient) { p.Redis.Set(p.ctx, "topics:bob--2", "x", 0) },
		finds: []string{`topics:bob: is a string, must be a set []`}, stays: true},
	{name: "a key that all depends on", does: func(p *patient) {
		p.Redis.Rename(p.ctx, "topics", "t")
		p.Redis.Set(p.ctx, "topics", "x", 0)
	}, finds: []string{`topics: is a string, must be a set []`}, stays: true},
	{name: "batches of the Ruby original", does: func(p *patient) {
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
	}, finds: []string{"batches:{uid}: 3 batches of the Ruby original, which `rtm migrate --apply` moves; they, and what belongs to them, are skipped []"}, stays: true},
	{name: "unknown keys", does: func(p *patient) {
		p.Redis.RPush(p.ctx, "batch:import-2024", "row1", "row2", "row3", "row4", "row5")
		p.Redis.RPush(p.ctx, "batch:small", "a", "b")
		p.Redis.RPush(p.ctx, "jobs:pending:mine:w7", "x", "y")
		p.Redis.RPush(p.ctx, "jobs:pending:main:", "x")
		p.Redis.SAdd(p.ctx, "jobs:index:mine", "x")
		p.Redis.ZAdd(p.ctx, "jobs:lane:cleaning:x", redis.Z{Member: "x"})
		p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: "x"})
	}, finds: []string{
		`batch:import-2024: is not a key of the layout []`,
		`batch:small: is not a key of the layout []`,
		`jobs:pending:mine:w7: is not a key of the layout []`,
		`jobs:pending:main:: is not a key of the layout []`,
		`jobs:index:mine: is not a key of the layout []`,
		`jobs:lane:cleaning:x: is not a key of the layout []`,
		`batches:index: lists "x", which is no UID []`,
	}, stays: true},
	{name: "unknown fields", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "subscriber:bob--2", "email", "a@b.example", "Phone", "1")
		p.Redis.HSet(p.ctx, "subscriber:4711", "email", "a@b.example")
		p.Redis.HSet(p.ctx, "topic:widgets", "title", "x")
		p.Redis.HSet(p.ctx, "delivery:bob--2", "abreast", "1")
	}, finds: []string{
		`subscriber:bob: has fields that the layout does not know: "Phone", "email" []`,
		`subscriber:client-de650d61: has fields that the layout does not know: "email" []`,
		`topic:widgets: has fields that the layout does not know: "title" []`,
		`delivery:bob: has fields that the layout does not know: "abreast" []`,
	}, stays: true},
	{name: "what does not begin as a batch", does: func(p *patient) {
		p.Redis.RPush(p.ctx, "batch:"+anUID, "row1", "row2", "row3", "row4", "row5")
		p.Redis.ZAdd(p.ctx, "batches:index", redis.Z{Score: 1, Member: anUID})
		p.Redis.RPush(p.ctx, "batch:BAAABBBBCCCCDDDDEEEE", "12", "7", "x", "x")
	}, finds: []string{
		`batch:AAAABBBBCCCCDDDDEEEE: does not begin as a batch does []`,
		`batch:BAAABBBBCCCCDDDDEEEE: does not begin as a batch does []`,
	}, stays: true},
}

// TestARepairSkipsAnotherBus has another bus, with the same clients, in the same Redis. All its
// keys are unknown.
func TestARepairSkipsAnotherBus(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newPatient(t, server)
		ours := dump(t, p.Redis)
		for _, namespace := range []string{"other:", "topic", "Batch:", "jobs"} {
			other := newFixtureOn(t, server, server.Open(t).Partition(namespace))
			other.AddSubscriber(alice, time.Second, 2, "widgets", "gadgets")
			other.AddSubscriber(bob, time.Second, 2, "widgets", "gizmos")
			other.PublishEvents("widgets", 1, 5, 0)
			require.NotNil(t, other.Take("w1", 1), namespace)
			require.NotNil(t, other.Take("w2", 1), namespace)
			require.Nil(t, other.Take("w3", 1), namespace)
		}
		before := dump(t, p.Redis)
		lines := p.examine(true)
		assert.Len(t, lines, len(before)-len(ours))
		for _, line := range lines {
			assert.Contains(t, line, ": is not a key of the layout []")
		}
		assert.Equal(t, before, dump(t, p.Redis))
		assert.Len(t, p.drain(), 5+eventsOfPatient)
	})
}
