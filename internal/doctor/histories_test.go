package doctor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/rdb/rdbtest"
)

// historyDamages are damages of histories. Widgets keeps one of the events 4 and 5.
var historyDamages = []damage{
	{name: "nothing, with a history", does: withHistory},
	{name: "a history of no topic", does: func(p *patient) {
		withHistory(p)
		p.Redis.HSet(p.ctx, "plans", "/gizmos", 1)
		p.Redis.HSet(p.ctx, "history:limits:gizmos", "events", 3, "first", 1)
		p.Redis.RPush(p.ctx, "history:gizmos", "x")
	}, finds: []string{`plans: has the history of gizmos, which is no topic [removed]`}},
	{name: "a history that is gone", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "plans", "/widgets", 1)
		p.Redis.RPush(p.ctx, "history:widgets", "x")
	}, finds: []string{`plans: has the history of widgets, which is not there [removed]`}},
	{name: "histories that nobody keeps", does: func(p *patient) {
		p.Redis.HSet(p.ctx, "history:limits:widgets", "events", 3, "first", 1)
		p.Redis.RPush(p.ctx, "history:widgets", "x")
	}, finds: []string{
		`history:limits:widgets: is of a topic that keeps no history [removed]`,
		`history:widgets: is of a topic that keeps no history [removed]`,
	}},
	{name: "a history that publishes do not see", does: func(p *patient) {
		withHistory(p)
		p.Redis.HSet(p.ctx, "plans", "/widgets", "yes")
	}, finds: []string{`plans: has another value than 1 for the history of widgets [set right]`}},
	{name: "a history without limits", does: func(p *patient) {
		withHistory(p)
		p.Redis.HDel(p.ctx, "history:limits:widgets", "events")
	}, finds: []string{`history:limits:widgets: has no limit [limited to 10,000,000 events]`}},
	{name: "a history of another size", does: func(p *patient) {
		withHistory(p)
		p.Redis.HSet(p.ctx, "history:limits:widgets", "size", "many")
	}, finds: []string{`history:limits:widgets: has size "many", must be 118 [set right]`}},
	{name: "a history that an event is missing from", does: func(p *patient) {
		withHistory(p)
		p.Redis.RPop(p.ctx, "history:widgets")
	}, finds: []string{`history:limits:widgets: ends with position 4, must end with 5 [begun anew]`}},
}

func withHistory(p *patient) {
	p.Redis.HSet(p.ctx, "plans", "/widgets", 1)
	p.Redis.HSet(p.ctx, "history:limits:widgets", "events", 3, "first", 4, "size", 118, "last", 1)
	for i := 4; i <= 5; i++ {
		p.Redis.RPush(p.ctx, "history:widgets", "\x00\x00\x00\x00\x00\x00\x00\x01"+string(packed(p.T, "widgets", i)))
	}
	p.RequireSound()
}

// TestALargeHistoryIsWeighedInParts has one of more bytes than one step weighs.
func TestALargeHistoryIsWeighedInParts(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	ctx := t.Context()
	f.PublishEvents("widgets", 1, 1, 0)
	f.Redis.HSet(ctx, "plans", "/widgets", 1)
	f.Redis.HSet(ctx, "history:limits:widgets", "events", 1000, "first", 2, "size", 250*50_000)
	f.Redis.HSet(ctx, "topic:widgets", "counter", 251)
	for range 250 {
		f.Redis.RPush(ctx, "history:widgets", strings.Repeat("x", 50_000))
	}
	f.RequireSound()
	f.Redis.LSet(ctx, "history:widgets", 249, "")
	assert.Equal(t, []string{`history:limits:widgets: has size "12500000", must be 12450000 [set right]`}, f.examine(true))
	f.RequireSound()
}
