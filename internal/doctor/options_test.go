package doctor_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// optionDamages are damages of subscribers with options. Alice has some, and two dead letters.
var optionDamages = []damage{
	{name: "nothing, with options and dead letters", does: withOptions},
	{name: "a state without a batch", does: func(p *patient) { p.Redis.HSet(p.ctx, "batches:state:"+anUID, "revision", 1) },
		finds: []string{`batches:state:AAAABBBBCCCCDDDDEEEE: is of a batch that is not there [removed]`}},
	{name: "options and attempts of nobody", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "options:zoe--26", "plan", "abcdefgh", "partial", "true")
		p.Redis.LPush(p.ctx, "attempts:zoe--26", "x")
		p.Redis.LPush(p.ctx, "attempts:alice--1", "x")
	}, finds: []string{
		`options:client-4e337076: is of no subscriber [removed]`,
		`attempts:client-4e337076: is of no subscriber [removed]`,
	}},
	{name: "another plan than the options'", does: func(p *patient) {
		withOptions(p)
		p.Redis.HSet(p.ctx, "delivery:alice--1", "plan", "abcdefgh")
	}, finds: []string{`options:alice: and delivery:alice differ in the plan [given another]`}},
	{name: "options without a plan", does: func(p *patient) { p.Redis.HSet(p.ctx, "options:bob--2", "partial", "true") },
		finds: []string{`options:bob: and delivery:bob differ in the plan [given another]`}},
	{name: "a plan without options", does: func(p *patient) { p.Redis.HSet(p.ctx, "delivery:bob--2", "plan", "abcdefgh") },
		finds: []string{`options:bob: and delivery:bob differ in the plan [given another]`}},
	{name: "what a notice tells that is not there", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "gaps:alice--1", "batch", anUID, "events", 1)
		p.Redis.HSet(p.ctx, "gaps:zoe--26", "batch", anUID, "events", 1)
	}, finds: []string{
		`gaps:alice: is of a batch that is not there [removed]`, `gaps:client-4e337076: is of no subscriber [removed]`,
	}},
	{name: "who keeps a number of events", does: func(p *patient) {
		options := map[string]string{"keep_events": "1000"}
		require.NoError(p.T, p.PatchSubscriber(p.ctx, alice, bus.Subscription{Options: options}, start))
		p.Redis.SRem(p.ctx, "retention", "alice--1")
		p.Redis.SAdd(p.ctx, "retention", "bob--2")
	}, finds: []string{
		`options:alice: is not in retention [added there]`, `retention: has bob, who has no option for it [removed]`,
	}},
	{name: "a dead letter that is not in the index", does: func(p *patient) {
		withOptions(p)
		p.Redis.ZRem(p.ctx, "deadletters:index:alice--1", string(storetest.LetterID(1)))
	}, finds: []string{`deadletter:letter00000000000001: is not in deadletters:index:alice [added there]`}},
	{name: "a dead letter of a token that has been changed, not in the index", does: func(p *patient) {
		withOptions(p)
		p.Redis.LSet(p.ctx, "deadletter:letter00000000000001", 0, "alice--0")
		p.Redis.HSet(p.ctx, "api_tokens:rotations", "alice--0", "alice--1")
		p.Redis.ZRem(p.ctx, "deadletters:index:alice--1", "letter00000000000001")
	}, finds: []string{`deadletter:letter00000000000001: is not in deadletters:index:alice [added there]`}},
	{name: "a dead letter of nobody", does: func(p *patient) {
		p.Redis.RPush(p.ctx, "deadletter:"+anUID, "", "1700000000000", "0", "x")
		p.Redis.HSet(p.ctx, "deadletter:why:"+anUID, "bytes", 1)
	}, finds: []string{`deadletter:AAAABBBBCCCCDDDDEEEE: has no subscriber [removed]`}},
	{name: "an entry of the index without a dead letter", does: func(p *patient) {
		withOptions(p)
		p.Redis.ZAdd(p.ctx, "deadletters:index:alice--1", redis.Z{Score: 1, Member: anUID})
	}, finds: []string{`deadletters:index:alice: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`}},
	{name: "a cause without a dead letter", does: func(p *patient) { p.Redis.HSet(p.ctx, "deadletter:why:"+anUID, "bytes", 1) },
		finds: []string{`deadletter:why:AAAABBBBCCCCDDDDEEEE: is of a dead letter that is not there [removed]`}},
	{name: "wrong sums of dead letters", does: func(p *patient) {
		withOptions(p)
		p.Redis.HSet(p.ctx, "deadletters:events", "alice--1", 7, "bob--2", 1)
		p.Redis.HDel(p.ctx, "deadletters:bytes", "alice--1")
	}, finds: []string{
		`deadletters:events: has "7" for alice, must be 3 [set right]`,
		`deadletters:events: has "1" for bob, must be 0 [set right]`,
		`deadletters:bytes: has "" for alice, must be 156 [set right]`,
	}},
}

func withOptions(p *patient) {
	require.NoError(p.T, p.PatchSubscriber(p.ctx, alice, bus.Subscription{Options: map[string]string{
		"partial": "true", "dead_letters": `{"attempts":3}`,
	}}, start))
	p.Bury(storetest.DeadLetter{Number: 1, Token: alice, Reason: bus.DeathReasons[0], DiedAt: 1, Events: []int{11, 12}})
	p.Bury(storetest.DeadLetter{Number: 2, Token: alice, Reason: bus.DeathReasons[0], DiedAt: 2, Events: []int{13}})
	p.RequireSound()
}

// TestALaneThatIsBlockedIsSound looks at the first of a lane that waits for its subscriber's pause
// or pace to end, and for its own retry.
func TestALaneThatIsBlockedIsSound(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f, now := newFixture(t, server), sinceStart()
		const hour = 3_600_000
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.PublishEvents("widgets", 1, 2, now)
		head := f.Take("w1", now)
		lane, job := "jobs:lane:batch:"+string(alice), job(string(head.Delivery.Batch))
		f.Complete(head, storetest.Result{RetryAt: after(now + hour)})
		f.Redis.ZAdd(t.Context(), lane, redis.Z{Score: -1, Member: job}) // it keeps its turn
		woken := []string{"jobs:lane:batch:alice: begins with " + string(head.Delivery.Batch) +
			", which waits for its turn, though nobody is before it [woken]"}
		assert.Equal(t, woken, f.examine(false))
		for _, field := range []string{"paused_until", "paced_until"} {
			f.Redis.HSet(t.Context(), "delivery:alice--1", field, after(now+hour).UnixMilli())
			assert.Empty(t, f.examine(false), field)
			f.Redis.HDel(t.Context(), "delivery:alice--1", field)
		}
		require.NoError(t, f.PatchSubscriber(t.Context(), alice, bus.Subscription{
			Options: map[string]string{"strict_order": "true"},
		}, start))
		assert.Empty(t, f.examine(false))
	})
}
