package doctor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestWhatWasRenamedIsMoved has a bus with keys and fields of its own as an earlier version wrote
// them: a lane longer than one step moves, traceparents, and the state of deliveries.
func TestWhatWasRenamedIsMoved(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newPatient(t, server)
		lane := p.Redis.ZRangeWithScores(p.ctx, "jobs:lane:batch:alice--1", 0, -1).Val()
		p.Redis.Del(p.ctx, "jobs:lane:batch:alice--1")
		for _, entry := range lane {
			p.Redis.ZAdd(p.ctx, "batches:line:alice--1", redis.Z{Score: entry.Score, Member: batchOf(t, entry.Member.(string))})
		}
		p.Redis.RPush(p.ctx, "batches:origins:"+p.current, "00-a", "00-b")
		p.Redis.RPush(p.ctx, "batches:origins:"+p.bobs, "00-c")
		p.Redis.RPush(p.ctx, "batches:traceparents:"+p.bobs, "00-d")
		state := p.Redis.HGetAll(p.ctx, "delivery:alice--1").Val()
		p.Redis.HSet(p.ctx, "subscriber:alice--1", "events_sent", 40, "throttled_until", 1, "abreast", 2)
		p.Redis.HSet(p.ctx, "delivery:bob--2", "events_sent", 3, "throttled_until", 5)
		p.Redis.HSet(p.ctx, "subscriber:bob--2", "events_sent", 4, "throttled_until", 1)

		want := []string{
			`batches:line:alice: is a lane of jobs today [moved there]`,
			fmt.Sprintf(`batches:origins:%s: is what is batches:traceparents:%[1]s today [moved there]`, p.current),
			fmt.Sprintf(`batches:origins:%s: is what is batches:traceparents:%[1]s today [moved there]`, p.bobs),
			`subscriber:alice: has fields that are in another key today [moved there]`,
			`subscriber:bob: has fields that are in another key today [moved there]`,
		}
		before := dump(t, p.Redis)
		assert.ElementsMatch(t, want, p.examine(false))
		assert.Equal(t, before, dump(t, p.Redis), "looking changes nothing")
		assert.ElementsMatch(t, want, p.examine(true))
		assert.Empty(t, p.examine(true))

		assert.Equal(t, lane, p.Redis.ZRangeWithScores(p.ctx, "jobs:lane:batch:alice--1", 0, -1).Val())
		assert.Equal(t, []string{"00-a", "00-b"}, p.Redis.LRange(p.ctx, "batches:traceparents:"+p.current, 0, -1).Val())
		assert.Equal(t, []string{"00-d"}, p.Redis.LRange(p.ctx, "batches:traceparents:"+p.bobs, 0, -1).Val())
		state["events_sent"], state["throttled_until"] = "40", "1"
		assert.Equal(t, state, p.Redis.HGetAll(p.ctx, "delivery:alice--1").Val())
		assert.Equal(t, []any{"7", "5"}, p.Redis.HMGet(p.ctx, "delivery:bob--2", "events_sent", "throttled_until").Val())
		founding := []string{"callback", "timeout", "max_events", "uuid", "health_points", "last_attempted_at"}
		for _, token := range []string{"alice--1", "bob--2"} {
			assert.Subset(t, founding, p.Redis.HKeys(p.ctx, "subscriber:"+token).Val())
		}
		assert.Zero(t, p.Redis.Exists(p.ctx, "batches:line:alice--1", "batches:origins:"+p.current, "batches:origins:"+p.bobs).Val())
		assert.Len(t, p.drain(), 5+eventsOfPatient)
		p.RequireSound()
	})
}

// TestALongLaneIsMovedInParts moves more than a step does, and keeps the order.
func TestALongLaneIsMovedInParts(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		const events = 1200
		p := &patient{fixture: newFixture(t, server), ctx: t.Context()}
		p.AddSubscriber(alice, 0, 1, "widgets")
		p.PublishEvents("widgets", 1, events, 0)
		var moved []string
		for _, packed := range p.Redis.LRange(p.ctx, "jobs:instant:main", 0, -1).Val() {
			p.Redis.ZAdd(p.ctx, "batches:line:alice--1", redis.Z{Score: float64(len(moved)), Member: batchOf(t, packed)})
			moved = append(moved, packed)
		}
		assert.Equal(t, []string{`batches:line:alice: is a lane of jobs today [moved there]`}, p.examine(true))
		assert.Equal(t, moved, p.Redis.ZRange(p.ctx, "jobs:lane:batch:alice--1", 0, -1).Val())
		assert.Zero(t, p.Redis.Exists(p.ctx, "batches:line:alice--1").Val())
		assert.Empty(t, p.examine(true))
		p.Redis.Del(p.ctx, "jobs:lane:batch:alice--1")
		assert.Len(t, p.drain(), events)
	})
}

// TestALaneThatIsMovedGoesOn has a lane as an earlier version wrote it: a batch that is not there
// any more, and behind it two that wait, of a subscriber whose throttle is long over. One run
// wakes the first of them.
func TestALaneThatIsMovedGoesOn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, ctx := newFixture(t, server), t.Context()
		now := sinceStart()
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, now)
		waiting := f.Redis.LRange(ctx, "jobs:instant:main", 0, -1).Val()
		slices.Reverse(waiting)
		f.Redis.Del(ctx, "jobs:instant:main")
		f.Redis.ZAdd(ctx, "batches:line:alice--1", redis.Z{Score: 1, Member: anUID})
		for i, packed := range waiting {
			f.Redis.ZAdd(ctx, "batches:line:alice--1", redis.Z{Score: float64(i + 2), Member: batchOf(t, packed)})
			f.Redis.ZAdd(ctx, "jobs:scheduled:main", redis.Z{Score: float64(after(now + 600_000).UnixMilli()), Member: packed})
		}
		f.Redis.HSet(ctx, "subscriber:alice--1", "throttled_until", 1)

		f.examine(true)
		assert.Equal(t, waiting[:1], f.Redis.LRange(ctx, "jobs:instant:main", 0, -1).Val())
		assert.Equal(t, waiting, f.Redis.ZRange(ctx, "jobs:lane:batch:alice--1", 0, -1).Val())
		assert.Empty(t, f.examine(true))
		for _, n := range []int{1, 2} {
			task := f.Take("w1", now)
			assert.Equal(t, []int{n}, numbers(t, task))
			f.Complete(task, storetest.Done)
		}
		f.RequireSound()
	})
}
