package stats

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is a snapshot of so many seconds after the start.
func at(seconds float64) Snapshot {
	return Snapshot{At: start.Add(time.Duration(seconds * float64(time.Second)))}
}

func (s Snapshot) topic(name string, events int64) Snapshot {
	s.Topics = append(s.Topics, TopicState{Name: name, Publisher: "warehouse", Events: events})
	return s
}

func (s Snapshot) subscriber(sub SubscriberState) Snapshot {
	s.Subscribers = append(s.Subscribers, sub)
	return s
}

func (s Snapshot) counted(subscriber string, c Counts) Snapshot {
	counts := map[string]Counts{subscriber: c}
	maps.Copy(counts, s.Bus.Counts)
	s.Bus.Counts = counts
	return s
}

// last adds snapshots, and returns the figures of the last.
func last(snapshots ...Snapshot) (f Figures) {
	var s Sampler
	for _, snapshot := range snapshots {
		f = s.Add(snapshot)
	}
	return f
}

func known(n float64) *float64 { return &n }

func TestRatesOfTopics(t *testing.T) {
	for _, test := range []struct {
		name      string
		snapshots []Snapshot
		want      *float64
	}{
		{"one snapshot has no rate", []Snapshot{at(0).topic("widgets", 7)}, nil},
		{"events over seconds", []Snapshot{at(0).topic("widgets", 7), at(2).topic("widgets", 10)}, known(1.5)},
		{"nothing is 0, not unknown", []Snapshot{at(0).topic("widgets", 7), at(2).topic("widgets", 7)}, known(0)},
		{"after an outage it is over the whole gap", []Snapshot{at(0).topic("widgets", 0), at(100).topic("widgets", 50)}, known(0.5)},
		{"only the snapshot before counts", []Snapshot{at(0).topic("widgets", 0), at(2).topic("widgets", 100), at(4).topic("widgets", 102)}, known(1)},
		{"deleted and made again", []Snapshot{at(0).topic("widgets", 70), at(2).topic("widgets", 10)}, nil},
		{"and then known again", []Snapshot{at(0).topic("widgets", 70), at(2).topic("widgets", 10), at(4).topic("widgets", 12)}, known(1)},
		{"a new one", []Snapshot{at(0).topic("gadgets", 1), at(2).topic("widgets", 10)}, nil},
		{"one that comes back", []Snapshot{at(0).topic("widgets", 1), at(2), at(4).topic("widgets", 10)}, nil},
		{"two snapshots at one moment", []Snapshot{at(0).topic("widgets", 1), at(0).topic("widgets", 10)}, nil},
	} {
		f := last(test.snapshots...)
		require.Len(t, f.Topics, 1, test.name)
		assert.Equal(t, test.want, f.Topics[0].Rate, test.name)
	}
	f := last(at(0).topic("widgets", 70), at(2).topic("gadgets", 10))
	assert.Len(t, f.Topics, 1, "what is gone is not shown")
	assert.Equal(t, known(0), f.Published)
}

func TestFiguresOfSubscribers(t *testing.T) {
	shop := SubscriberState{Name: "shop", Topics: []string{"widgets", "parcels"}, Timeout: time.Second, Sent: 100, Queued: 20, Health: 90,
		OldestAt: start.Add(-3 * time.Second), AttemptedAt: start.Add(-time.Second)}
	later := shop
	later.Sent, later.Health = 300, 84
	f := last(at(0).subscriber(shop).topic("widgets", 5), at(4).subscriber(later).topic("widgets", 5))
	assert.Equal(t, []Subscriber{{
		Name: "shop", Topics: shop.Topics, Queued: 20, OldestAge: known(7), Rate: known(50), Sent: 300, Health: 84, Trend: -6,
		SinceAttempt: known(5), Timeout: 1,
	}}, f.Subscribers)
	assert.Equal(t, 1, f.Topics[0].Subscribers)
	assert.Equal(t, known(50), f.Delivered)
	assert.Equal(t, int64(20), f.Queued)
	assert.Equal(t, known(7), f.OldestAge)

	told := at(4).subscriber(later)
	told.Bus = Metrics{Batches: map[string]int64{"shop": 3}, Dead: map[string]int64{"shop": 4}, OldestAge: map[string]time.Duration{"shop": 9 * time.Second}}
	f = last(told)
	assert.Equal(t, known(9), f.Subscribers[0].OldestAge, "the clock of the bus counts first")
	assert.Equal(t, int64(3), *f.Subscribers[0].Batches)
	assert.Equal(t, int64(4), *f.Subscribers[0].Dead)

	later.Queued = 0
	told = at(4).subscriber(later)
	told.Bus = Metrics{OldestAge: map[string]time.Duration{"shop": time.Second}}
	assert.Nil(t, last(told).Subscribers[0].OldestAge, "nothing waits, whatever the metrics have said a second ago")

	for _, test := range []struct {
		now, want string
		queued    int64
	}{{Throttled, Throttled, 1}, {Throttled, Ready, 0}, {Paced, Ready, 0}, {Paused, Paused, 0}} {
		later.Queued, told = test.queued, at(4)
		told.Bus = Metrics{States: map[string]string{"shop": test.now}}
		assert.Equal(t, test.want, *last(told.subscriber(later)).Subscribers[0].State)
	}

	later.Sent = 40
	assert.Nil(t, last(at(0).subscriber(shop), at(2).subscriber(later)).Subscribers[0].Rate, "it has unsubscribed and come back")
	behind := last(at(-60).subscriber(shop)).Subscribers[0]
	assert.Equal(t, known(0), behind.SinceAttempt, "a clock that is behind makes no negative age")
}

func TestWhatWasCountedLately(t *testing.T) {
	seen := func(seconds float64, counts ...float64) Snapshot {
		s := at(seconds).subscriber(SubscriberState{Name: "shop", Health: 100})
		if len(counts) > 0 {
			s = s.counted("shop", Counts{counts[0], counts[1], counts[2]})
		}
		return s
	}
	none := int64(0)
	events := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		name      string
		snapshots []Snapshot
		failed    *float64
		dropped   *int64
	}{
		{"the bus does not tell", []Snapshot{seen(0), seen(2)}, nil, nil},
		{"one snapshot", []Snapshot{seen(0, 5, 5, 9)}, nil, nil},
		{"nothing has happened", []Snapshot{seen(0, 5, 5, 9), seen(2, 5, 5, 9)}, nil, &none},
		{"some failed", []Snapshot{seen(0, 5, 5, 9), seen(2, 8, 6, 9)}, known(0.25), &none},
		{"some were dropped", []Snapshot{seen(0, 5, 5, 9), seen(2, 5, 5, 12)}, nil, events(3)},
		{"it tells for the first time", []Snapshot{seen(0), seen(2, 100, 100, 100)}, nil, nil},
		{"and from then on", []Snapshot{seen(0), seen(2, 100, 100, 100), seen(4, 103, 101, 107)}, known(0.25), events(7)},
		{"it does not tell now", []Snapshot{seen(0, 5, 5, 9), seen(2, 6, 6, 9), seen(4)}, nil, nil},
		{"it has not told meanwhile", []Snapshot{seen(0, 5, 5, 9), seen(2), seen(4, 8, 6, 12)}, known(0.25), events(3)},
		{"of a minute", []Snapshot{seen(0, 0, 0, 0), seen(2, 0, 5, 5), seen(50, 5, 5, 5)}, known(0.5), events(5)},
		{"no more than a minute", []Snapshot{seen(0, 0, 0, 0), seen(2, 0, 5, 5), seen(50, 0, 5, 5), seen(70, 5, 5, 5)}, known(0), &none},
		{"looks that are further apart", []Snapshot{seen(0, 0, 0, 0), seen(200, 1, 0, 0), seen(400, 2, 3, 4)}, known(0.75), events(4)},
		{"they have begun anew", []Snapshot{seen(0, 100, 100, 100), seen(2, 3, 1, 2)}, nil, nil},
		{"and count again", []Snapshot{seen(0, 100, 100, 100), seen(2, 3, 1, 2), seen(4, 6, 2, 5)}, known(0.25), events(3)},
		{"a web that is a moment behind", []Snapshot{seen(0, 10, 0, 0), seen(2, 13, 1, 7), seen(3, 10, 0, 0), seen(4, 13, 1, 7)}, known(0.25), events(7)},
	} {
		f := last(test.snapshots...)
		assert.Equal(t, test.failed, f.Subscribers[0].Failed, test.name)
		assert.Equal(t, test.dropped, f.Subscribers[0].Dropped, test.name)
		assert.Equal(t, test.dropped, f.Dropped, test.name)
	}
	gone := Counts{0, 0, 4}
	f := last(seen(0, 0, 0, 0).counted("gone", Counts{}), seen(2, 1, 0, 3).counted("gone", gone))
	assert.Equal(t, events(7), f.Dropped, "also of those who are gone")
}

// TestTheShareIsSteady looks every 2 s at a subscriber with a failure in four deliveries, whose
// workers tell every 5 s.
func TestTheShareIsSteady(t *testing.T) {
	var s Sampler
	for seconds := 0; seconds <= 300; seconds += 2 {
		told := float64(seconds / 5 * 5)
		f := s.Add(at(float64(seconds)).subscriber(SubscriberState{Name: "shop"}).counted("shop", Counts{30 * told, 10 * told, 2 * told}))
		switch shop := f.Subscribers[0]; {
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
	health := func(seconds float64, points int) Snapshot {
		return at(seconds).subscriber(SubscriberState{Name: "shop", Health: points})
	}
	assert.Equal(t, 0, last(health(0, 50)).Subscribers[0].Trend)
	assert.Equal(t, -10, last(health(0, 50), health(30, 45), health(60, 40)).Subscribers[0].Trend)
	assert.Equal(t, -5, last(health(0, 50), health(30, 45), health(61, 40)).Subscribers[0].Trend)
	assert.Equal(t, 1, last(at(0), health(2, 45), health(4, 46)).Subscribers[0].Trend, "since it came")
	assert.Equal(t, -3, last(health(0, 50), health(300, 45), health(600, 42)).Subscribers[0].Trend, "since the look before")
}

func (s Snapshot) jobType(t JobTypeState) Snapshot {
	s.Bus.Types = append(s.Bus.Types, t)
	return s
}

func TestJobTypes(t *testing.T) {
	ended := func(succeeded, failed float64) map[string]float64 {
		return map[string]float64{"succeeded": succeeded, "failed": failed}
	}
	first := at(0).jobType(JobTypeState{Name: "ship", Queued: 1, Ended: ended(10, 5)})
	f := last(first)
	require.Len(t, f.JobTypes, 1)
	assert.Equal(t, JobType{Name: "ship", Queued: 1}, f.JobTypes[0], "no rate is known")

	now := JobTypeState{
		Name: "ship", Queued: 7, Waiting: 3, InProgress: 2, Concurrency: 2, OldestAge: 90 * time.Second, Paused: true, Ended: ended(50, 5),
	}
	f = last(first, at(10).jobType(JobTypeState{Name: "ship", Ended: ended(20, 5)}), at(20).jobType(now).jobType(JobTypeState{Name: "pay"}))
	assert.Equal(t, []JobType{{
		Name: "ship", Queued: 7, Waiting: 3, InProgress: 2, Concurrency: 2, OldestAge: known(90), Paused: true,
		Succeeded: known(2), Failed: known(0), // over both intervals
	}, {Name: "pay"}}, f.JobTypes)

	f = last(at(0).jobType(JobTypeState{Name: "ship", Ended: ended(100, 5)}), first.later(10), at(20).jobType(now))
	assert.Equal(t, known(4), f.JobTypes[0].Succeeded, "counters began anew, or another process showed older ones")
	assert.Empty(t, last(at(0)).JobTypes)
	assert.NotNil(t, last(at(0)).JobTypes, "never null in JSON")
}

func TestMachines(t *testing.T) {
	seen := func(seconds float64, m ...MachineState) Snapshot {
		s := at(seconds)
		s.Bus.Machines = m
		return s
	}
	trial := func(moved, failed float64) MachineState {
		return MachineState{Name: "trial", Labels: 7, Errored: 2, Unpublished: 1, Steps: map[string]float64{Moved: moved, Failed: failed}}
	}
	shown := func(moves, failed *float64) []Machine {
		return []Machine{{Name: "trial", Labels: 7, Errored: 2, Moves: moves, Failed: failed, Unpublished: 1}}
	}
	for _, test := range []struct {
		name      string
		snapshots []Snapshot
		want      []Machine
	}{
		{"none, which is never null in JSON", []Snapshot{at(0)}, []Machine{}},
		{"one snapshot has no rate", []Snapshot{seen(0, trial(10, 5))}, shown(nil, nil)},
		{"over the last minute", []Snapshot{seen(0, trial(10, 5)), seen(10, trial(10, 5)), seen(20, trial(50, 5))}, shown(known(2), known(0))},
		{"counters that began anew", []Snapshot{seen(0, trial(90, 90)), seen(10, trial(1, 5)), seen(20, trial(11, 6))}, shown(known(1), known(0.1))},
		{"a new one", []Snapshot{at(0), seen(10, trial(1, 5))}, shown(nil, nil)},
		{"one that is gone", []Snapshot{seen(0, trial(1, 5)), at(10)}, []Machine{}},
		{"a bus that does not count", []Snapshot{seen(0, MachineState{Name: "m"}), seen(10, MachineState{Name: "m"})}, []Machine{{Name: "m"}}},
	} {
		assert.Equal(t, test.want, last(test.snapshots...).Machines, test.name)
	}
}

// later moves a snapshot by some seconds.
func (s Snapshot) later(seconds int) Snapshot {
	s.At = s.At.Add(time.Duration(seconds) * time.Second)
	return s
}
