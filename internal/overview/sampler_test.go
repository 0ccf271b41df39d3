package overview

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is a sample of so many seconds after the start.
func at(seconds float64) Sample { return Sample{At: after(seconds)} }

// after is so many seconds after the start.
func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func (s Sample) topic(name string, events int64) Sample {
	s.Topics = append(s.Topics, TopicState{Name: name, Publisher: "warehouse", Events: events})
	return s
}

func (s Sample) subscriber(sub SubscriberState) Sample {
	s.Subscribers = append(s.Subscribers, sub)
	return s
}

// last adds samples, and returns the figures of the last.
func last(samples ...Sample) (f Figures) {
	var s Sampler
	for _, sample := range samples {
		f = s.Add(sample)
	}
	return f
}

func known[T any](n T) *T { return &n }

func TestRatesOfTopics(t *testing.T) {
	for _, test := range []struct {
		name    string
		samples []Sample
		want    *float64
	}{
		{"one sample has no rate", []Sample{at(0).topic("widgets", 7)}, nil},
		{"events over seconds", []Sample{at(0).topic("widgets", 7), at(2).topic("widgets", 10)}, known(1.5)},
		{"nothing is 0, not unknown", []Sample{at(0).topic("widgets", 7), at(2).topic("widgets", 7)}, known(0.0)},
		{"over 10 s, a late one too", []Sample{at(0).topic("widgets", 0), at(2).topic("widgets", 100), at(12.5).topic("widgets", 205)}, known(10.0)},
		{"the sample before, if that is older", []Sample{at(0).topic("widgets", 0), at(30).topic("widgets", 60)}, known(2.0)},
		{"but not from over a minute ago", []Sample{at(0).topic("widgets", 0), at(100).topic("widgets", 50)}, nil},
		{"deleted and made again", []Sample{at(0).topic("widgets", 70), at(2).topic("widgets", 10)}, nil},
		{"and then known again", []Sample{at(0).topic("widgets", 70), at(2).topic("widgets", 10), at(4).topic("widgets", 12)}, known(1.0)},
		{"even if it outgrows what it was", []Sample{at(0).topic("widgets", 70), at(2).topic("widgets", 10), at(4).topic("widgets", 90)}, known(40.0)},
		{"a new one", []Sample{at(0).topic("gadgets", 1), at(2).topic("widgets", 10)}, nil},
		{"one that comes back", []Sample{at(0).topic("widgets", 1), at(2), at(4).topic("widgets", 10)}, nil},
		{"two samples at one moment", []Sample{at(0).topic("widgets", 1), at(0).topic("widgets", 10)}, nil},
	} {
		f := last(test.samples...)
		require.Len(t, f.Topics, 1, test.name)
		assert.Equal(t, test.want, f.Topics[0].Rate, test.name)
	}
	f := last(at(0).topic("widgets", 70), at(2).topic("gadgets", 10))
	assert.Len(t, f.Topics, 1, "what is gone is not shown")
	assert.Nil(t, f.Published, "it is known of none")
	assert.InDelta(t, 2, f.Seconds, 0)
}

func TestFiguresOfSubscribers(t *testing.T) {
	shop := SubscriberState{Name: "shop", Topics: []string{"widgets", "parcels"}, Timeout: time.Second, Sent: 100, Queued: 20, Batches: 3, Dead: 4,
		Health: 90, OldestAt: after(-3), AttemptedAt: after(-1), Failure: "503", Throttled: after(9)}
	later := shop
	later.Sent, later.Health, later.Counts = 300, 84, Counts{Succeeded: 2, Failed: 2, Dropped: 7}
	f := last(at(0).subscriber(shop).topic("widgets", 5), at(4).subscriber(later).topic("widgets", 5))
	assert.Equal(t, []Subscriber{{
		Name: "shop", Topics: shop.Topics, Queued: 20, Batches: known(int64(3)), OldestAge: known(7.0), State: OK,
		Hold: Throttled, HoldUntil: Time{after(9)}, Rate: known(50.0), Sent: 300, Failed: known(0.5), Dropped: known(int64(7)), Dead: known(int64(4)),
		Health: 84, Trend: -6, SinceAttempt: known(5.0), Failure: "503", Timeout: 1, Throttled: true,
	}}, f.Subscribers)
	assert.Equal(t, 1, f.Topics[0].Subscribers)
	assert.Equal(t, known(50.0), f.Delivered)
	assert.Equal(t, int64(20), f.Queued)
	assert.Equal(t, known(int64(7)), f.Dropped)
	assert.Equal(t, known(7.0), f.OldestAge)

	later.Queued = 0
	assert.Nil(t, last(at(4).subscriber(later)).Subscribers[0].OldestAge, "nothing waits")
	later.Sent = 40
	assert.Nil(t, last(at(0).subscriber(shop), at(2).subscriber(later)).Subscribers[0].Rate, "it has unsubscribed and come back")
	behind := last(at(-60).subscriber(shop)).Subscribers[0]
	assert.Equal(t, known(0.0), behind.SinceAttempt, "a clock that is behind makes no negative age")
}

func TestHolds(t *testing.T) {
	soon, past := after(9), after(-9)
	for _, test := range []struct {
		sub   SubscriberState
		want  string
		until time.Time
	}{
		{SubscriberState{Queued: 1}, Ready, time.Time{}},
		{SubscriberState{Queued: 1, Paced: soon}, Paced, soon},
		{SubscriberState{Queued: 1, Paced: past}, Ready, time.Time{}},
		{SubscriberState{Queued: 1, Paced: soon, Throttled: soon}, Throttled, soon},
		{SubscriberState{Queued: 1, Blocked: true, Throttled: soon}, Blocked, time.Time{}},
		{SubscriberState{Queued: 0, Blocked: true, Throttled: soon}, Ready, time.Time{}},
		{SubscriberState{Queued: 0, Paused: soon, Throttled: soon}, Paused, soon},
		{SubscriberState{Queued: 1, Paused: past}, Ready, time.Time{}},
		{SubscriberState{Queued: 1, Paused: bus.Forever}, Paused, time.Time{}},
	} {
		f := last(at(0).subscriber(test.sub)).Subscribers[0]
		assert.Equal(t, test.want, f.Hold, "%+v", test.sub)
		assert.Equal(t, Time{test.until}, f.HoldUntil, "%+v", test.sub)
	}
}

func TestWhatWasCountedLately(t *testing.T) {
	seen := func(seconds float64, succeeded, failed, dropped int64) Sample {
		return at(seconds).subscriber(SubscriberState{Name: "shop", Counts: Counts{succeeded, failed, dropped}})
	}
	for _, test := range []struct {
		name    string
		samples []Sample
		failed  *float64
		dropped *int64
	}{
		{"one sample", []Sample{seen(0, 5, 5, 9)}, nil, nil},
		{"nothing has happened", []Sample{seen(0, 5, 5, 9), seen(2, 5, 5, 9)}, nil, known(int64(0))},
		{"some failed", []Sample{seen(0, 5, 5, 9), seen(2, 8, 6, 9)}, known(0.25), known(int64(0))},
		{"some were dropped", []Sample{seen(0, 5, 5, 9), seen(2, 5, 5, 12)}, nil, known(int64(3))},
		{"of a minute", []Sample{seen(0, 0, 0, 0), seen(2, 0, 5, 5), seen(50, 5, 5, 5)}, known(0.5), known(int64(5))},
		{"no more than a minute", []Sample{seen(0, 0, 0, 0), seen(2, 0, 5, 5), seen(50, 0, 5, 5), seen(70, 5, 5, 5)}, known(0.0), known(int64(0))},
		{"they have begun anew", []Sample{seen(0, 100, 100, 100), seen(2, 3, 1, 2)}, nil, nil},
		{"and count again", []Sample{seen(0, 100, 100, 100), seen(2, 3, 1, 2), seen(4, 6, 2, 5)}, known(0.25), known(int64(3))},
	} {
		f := last(test.samples...)
		assert.Equal(t, test.failed, f.Subscribers[0].Failed, test.name)
		assert.Equal(t, test.dropped, f.Subscribers[0].Dropped, test.name)
	}
}

func TestSamplesThatAreNotLater(t *testing.T) {
	seen := func(seconds float64, n int64) Sample {
		return at(seconds).topic("widgets", n).subscriber(SubscriberState{Name: "shop", Sent: n, Counts: Counts{Dropped: n}})
	}
	for _, test := range []struct {
		name    string
		samples []Sample
		seconds float64
		rate    *float64
		dropped *int64
	}{
		{"two of one instant", []Sample{seen(0, 0), seen(0, 4)}, 0, nil, nil},
		{"after one that is too early for rates", []Sample{seen(0, 0), seen(50, 4), seen(50, 5)}, 50, known(0.1), known(int64(5))},
		{"a clock was set back", []Sample{seen(0, 0), seen(10, 4), seen(2, 5)}, 2, known(2.5), known(int64(5))},
		{"to before them all", []Sample{seen(0, 0), seen(10, 4), seen(-60, 5)}, 0, nil, nil},
	} {
		f := last(test.samples...)
		assert.Equal(t, test.seconds, f.Seconds, test.name)
		assert.Equal(t, []*float64{test.rate, test.rate}, []*float64{f.Published, f.Delivered}, test.name)
		assert.Equal(t, test.dropped, f.Dropped, test.name)
	}
}

// TestTheShareIsSteady looks every 2 s at a subscriber with a failure in four deliveries, whose
// workers count every 5 s.
func TestTheShareIsSteady(t *testing.T) {
	var s Sampler
	for seconds := 0; seconds <= 300; seconds += 2 {
		counted := int64(seconds / 5 * 5)
		sub := SubscriberState{Name: "shop", Counts: Counts{30 * counted, 10 * counted, 2 * counted}}
		switch shop := s.Add(at(float64(seconds)).subscriber(sub)).Subscribers[0]; {
		case seconds == 0:
			assert.Nil(t, shop.Dropped)
		case seconds < 5:
			assert.Nil(t, shop.Failed)
			assert.Zero(t, *shop.Dropped)
		default:
			assert.InDelta(t, 0.25, *shop.Failed, 1e-9)
			if seconds > 60 {
				assert.InDelta(t, 120, *shop.Dropped, 10)
			}
		}
	}
}

func TestTheTrendIsOfAMinute(t *testing.T) {
	points := func(seconds float64, n int) Sample {
		return at(seconds).subscriber(SubscriberState{Name: "shop", Health: n})
	}
	assert.Equal(t, 0, last(points(0, 50)).Subscribers[0].Trend)
	assert.Equal(t, -10, last(points(0, 50), points(30, 45), points(60, 40)).Subscribers[0].Trend)
	assert.Equal(t, -5, last(points(0, 50), points(30, 45), points(61, 40)).Subscribers[0].Trend)
	assert.Equal(t, 1, last(at(0), points(2, 45), points(4, 46)).Subscribers[0].Trend, "since it came")
}

func TestJobTypes(t *testing.T) {
	seen := func(seconds float64, types ...JobTypeState) Sample {
		s := at(seconds)
		s.JobTypes = types
		return s
	}
	ship := JobTypeState{Name: "ship", Queued: 1, Succeeded: 10, Failed: 5}
	assert.Equal(t, []JobType{{Name: "ship", Queued: 1}}, last(seen(0, ship)).JobTypes, "no rate is known")
	now := JobTypeState{
		Name: "ship", Queued: 7, Waiting: 3, InProgress: 2, Concurrency: 2, OldestAt: after(-70), Paused: true, Succeeded: 50, Failed: 5,
	}
	f := last(seen(0, ship), seen(10, JobTypeState{Name: "ship", Succeeded: 20, Failed: 5}), seen(20, now, JobTypeState{Name: "pay"}))
	assert.Equal(t, []JobType{{
		Name: "ship", Queued: 7, Waiting: 3, InProgress: 2, Concurrency: 2, OldestAge: known(90.0), Paused: true,
		Succeeded: known(2.0), Failed: known(0.0), Expired: known(0.0), // over both intervals
	}, {Name: "pay"}}, f.JobTypes)
}

func TestMachines(t *testing.T) {
	seen := func(seconds float64, moved, failed int64) Sample {
		s := at(seconds)
		s.Machines = []MachineState{{Name: "trial", Labels: 7, Errored: 2, Unpublished: 1, Moved: moved, Failed: failed}}
		return s
	}
	for _, test := range []struct {
		name          string
		samples       []Sample
		moves, failed *float64
	}{
		{"one sample has no rate", []Sample{seen(0, 10, 5)}, nil, nil},
		{"over the last minute", []Sample{seen(0, 10, 5), seen(10, 10, 5), seen(20, 50, 5)}, known(2.0), known(0.0)},
		{"counters that began anew", []Sample{seen(0, 90, 90), seen(10, 1, 5), seen(20, 11, 6)}, known(1.0), known(0.1)},
		{"a new one", []Sample{at(0), seen(10, 1, 5)}, nil, nil},
	} {
		want := []Machine{{Name: "trial", Labels: 7, Errored: 2, Moves: test.moves, Failed: test.failed, Unpublished: 1}}
		assert.Equal(t, want, last(test.samples...).Machines, test.name)
	}
	assert.Empty(t, last(seen(0, 1, 5), at(10)).Machines, "one that is gone")
}

func TestProcessesThatLive(t *testing.T) {
	s := at(100)
	s.Processes = []Process{
		{Kind: "worker", PID: 1, SeenAt: Time{after(71)}, Threads: 8, Busy: 3},
		{Kind: "worker", PID: 2, SeenAt: Time{after(171)}, Ahead: 100_000, Threads: 4, Busy: 1},
		{Kind: "worker", PID: 3, SeenAt: Time{after(60)}, Threads: 100, Busy: 100},
		{Kind: "web", PID: 4, SeenAt: Time{after(99)}},
	}
	f := last(s)
	var pids []int
	for _, p := range f.Processes {
		pids = append(pids, p.PID)
	}
	assert.Equal(t, []int{1, 2, 4}, pids, "whatever their clocks say")
	assert.Equal(t, 12, f.Threads)
	assert.Equal(t, 4, f.Busy)
}

func TestRedisAway(t *testing.T) {
	away := func(seconds float64) Sample { return Sample{At: after(seconds), Redis: "no answer"} }
	f := last(at(0).topic("widgets", 0), at(2).topic("widgets", 4), away(4), away(6))
	assert.Equal(t, "no answer", f.Redis)
	assert.Equal(t, Time{after(4)}, f.RedisLostAt)
	assert.Equal(t, after(2), f.At)
	assert.Equal(t, known(2.0), f.Topics[0].Rate, "what was known stays")

	f = last(at(0).topic("widgets", 0), away(2), at(10).topic("widgets", 5))
	assert.Empty(t, f.Redis)
	assert.Zero(t, f.RedisLostAt)
	assert.Equal(t, known(0.5), f.Topics[0].Rate)

	f = last(away(0))
	assert.Zero(t, f.At)
	assert.Equal(t, Time{start}, f.RedisLostAt)
}

func TestListsAreNeverNull(t *testing.T) {
	for name, sample := range map[string]Sample{"empty": at(0), "never read": {At: start, Redis: "no answer"}} {
		text, err := json.Marshal(last(sample))
		require.NoError(t, err)
		var lists map[string]any
		require.NoError(t, json.Unmarshal(text, &lists))
		for _, list := range []string{"jobs", "job_types", "machines", "processes", "subscribers", "topics", "problems", "warnings"} {
			assert.Equal(t, []any{}, lists[list], "%s: %s", name, list)
		}
	}
}
