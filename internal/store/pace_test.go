package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestPace(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 10, "widgets")
		f.setOptions(storetest.Alice, map[string]string{"max_events_per_minute": "600", "max_requests_per_minute": "600"})
		f.PublishEvents("widgets", 1, 30, 0)
		take := func(ms int) *storetest.Task {
			f.MakeInstant(ms)
			return f.Take("w1", ms)
		}
		task := take(0)
		require.NotNil(t, task)
		f.complete(task, storetest.Result{Delivered: 10}, 5)
		assert.Nil(t, take(999), "10 events take a second")
		f.RequireSound()
		task = take(1000)
		require.NotNil(t, task)
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(1000), Delivered: 2,
			Slice: &store.SliceResult{KeepTurn: true, UnusedPace: 800 * time.Millisecond, Removed: store.Ranges{{First: 0, Last: 1}}},
		}, 1000)
		assert.Nil(t, take(1199))
		task = take(1200)
		require.NotNil(t, task, "what was not sent is not counted")
		assert.Len(t, task.Delivery.Events, 8)
		f.setOptions(storetest.Alice, map[string]string{"max_events_per_minute": "", "max_requests_per_minute": ""})
		f.complete(task, storetest.Result{
			RetryAt: storetest.After(1200), Delivered: 1,
			Slice: &store.SliceResult{UnusedPace: time.Second, Removed: store.Ranges{{First: 0, Last: 0}}},
		}, 1200)
		assert.False(t, f.Redis.HExists(t.Context(), "delivery:alice--1", "paced_until").Val(), "there is no limit to give back to")
		assert.NotNil(t, take(1201), "without a limit the next goes at once")
	})
}

// nextDue returns when the next scheduled job is due, in ms after the start.
func (f *fixture) nextDue() int {
	f.T.Helper()
	due, err := f.Redis.ZRangeWithScores(f.T.Context(), "jobs:scheduled:main", 0, 0).Result()
	require.NoError(f.T, err)
	require.NotEmpty(f.T, due)
	return int(due[0].Score+0.999) - int(storetest.Start.UnixMilli())
}

// taken is a task that a worker has taken, and when (ms after the start).
type taken struct {
	ms   int
	task *storetest.Task
}

// deliverUntil lets two workers deliver due batches, at each moment that step returns, and complete
// them with a result.
func (f *fixture) deliverUntil(end int, result func(ms int, task *storetest.Task) storetest.Result, step func(ms int) int) (all []taken) {
	f.T.Helper()
	for ms := 0; ms < end; ms = step(ms) {
		f.MakeInstant(ms)
		for _, worker := range []bus.WorkerID{"w1", "w2"} {
			for task := f.Take(worker, ms); task != nil; {
				all = append(all, taken{ms, task})
				owned, next, err := f.CompleteAndAcquire(f.T.Context(), task, result(ms, task), bus.Failing, storetest.After(ms))
				require.NoError(f.T, errors.Join(err, next.Err))
				require.True(f.T, owned)
				task = next.Task
			}
		}
	}
	f.RequireSound()
	return all
}

// acknowledge is the result of a delivery that was acknowledged as a whole.
func acknowledge(_ int, task *storetest.Task) storetest.Result {
	return storetest.Result{Delivered: len(task.Delivery.Events)}
}

// newPaced is a bus with a subscriber that two workers may deliver to at once, and options that
// limit its pace.
func newPaced(t *testing.T, server *rdbtest.Server, maxEvents int, options map[string]string) *fixture {
	f := newFixtureInFlight(t, server, 2)
	f.AddSubscriber(storetest.Alice, 0, maxEvents, "widgets")
	f.setOptions(storetest.Alice, options)
	return f
}

// TestThePaceIsExact: two workers that may both deliver to a subscriber keep its limits.
func TestThePaceIsExact(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for name, c := range map[string]struct {
			maxEvents int
			options   map[string]string
			pause     int // ms
		}{
			"requests":                 {1, map[string]string{"max_requests_per_minute": "60"}, 1000},
			"one request":              {1, map[string]string{"max_requests_per_minute": "1"}, 60_000},
			"events":                   {10, map[string]string{"max_events_per_minute": "600"}, 1000},
			"a batch beyond the limit": {100, map[string]string{"max_events_per_minute": "60"}, 100_000},
			"requests are slower":      {1, map[string]string{"max_events_per_minute": "6000", "max_requests_per_minute": "30"}, 2000},
			"events are slower":        {100, map[string]string{"max_events_per_minute": "600", "max_requests_per_minute": "30"}, 10_000},
		} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			f := newPaced(t, server, c.maxEvents, c.options)
			end := max(60_000, c.pause)
			f.PublishEvents("widgets", 1, (end/c.pause+2)*c.maxEvents, 0)
			all := f.deliverUntil(end+1, acknowledge, func(int) int { return f.nextDue() })
			assert.Len(t, all, end/c.pause+1, name)
			for i, taken := range all {
				assert.Equal(t, i*c.pause, taken.ms, name)
			}
		}
	})
}

// TestALateTurnCostsNoPace lets workers take batches a few ms after they are due, as in production.
func TestALateTurnCostsNoPace(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newPaced(t, server, 1, map[string]string{"max_requests_per_minute": "6000"})
		f.PublishEvents("widgets", 1, 150, 0)
		all := f.deliverUntil(1000, acknowledge, func(ms int) int { return ms + 7 })
		assert.InDelta(t, 100, len(all), 2)
		f.MakeInstant(60_000)
		for want := 60_000; want <= 60_010; want += 10 { // a longer rest is not made up for
			f.complete(f.Take("w1", want), storetest.Result{Delivered: 1}, want)
			assert.Nil(t, f.Take("w1", want+9))
			f.MakeInstant(want + 10)
		}
	})
}

// TestFailedAttemptsArePaced: an endpoint fails all the time, and then asks for a longer pause.
func TestFailedAttemptsArePaced(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newPaced(t, server, 1, map[string]string{"max_requests_per_minute": "60"})
		f.PublishEvents("widgets", 1, 5, 0)
		for _, wait := range []int{200, 5000} { // ms
			fail := func(ms int, _ *storetest.Task) storetest.Result {
				return storetest.Result{Failure: bus.EndpointFailure, RetryAt: storetest.After(ms + wait), ThrottledUntil: storetest.After(ms + wait)}
			}
			begun := 0
			if wait == 5000 {
				begun = 10_000
			}
			all := f.deliverUntil(begun+10_000, fail, func(ms int) int { return max(begun, f.nextDue()) })
			require.Greater(t, len(all), 1)
			for i := range all[1:] {
				assert.GreaterOrEqual(t, all[i+1].ms-all[i].ms, max(1000, wait))
			}
		}
	})
}

// TestPacedLanesTakeTurns: four lanes share a pace, and none waits until another is empty.
func TestPacedLanesTakeTurns(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
		f.setLanes(4)
		f.setOptions(storetest.Alice, map[string]string{"max_requests_per_minute": "600"})
		keys := f.keysInLanes(t, 4)
		for i := range 15 {
			f.publishKeyedAt(t, 4*i, 1000*(i-15), keys...)
		}
		var all []int
		for _, taken := range f.deliverUntil(5900, acknowledge, func(int) int { return f.nextDue() }) {
			all = append(all, storetest.Numbers(t, taken.task)...)
		}
		require.Len(t, all, 59)
		for i, number := range all {
			assert.InDelta(t, i, number, 10)
		}
	})
}

// TestAPacedQueueCostsOthersNothing counts the commands of a delivery to one subscriber while
// another, with many batches, is paced.
func TestAPacedQueueCostsOthersNothing(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	f.AddSubscriber(storetest.Bob, 0, 1, "gadgets")
	deliver := func(ms int) int {
		f.PublishEvents("gadgets", 1, 1, ms)
		return commands(t, f, func() {
			f.MakeInstant(ms)
			task := f.Take("w1", ms)
			require.Equal(t, storetest.Bob, task.Delivery.Subscriber)
			require.True(t, f.Complete(task, storetest.Result{Delivered: 1}))
		})
	}
	deliver(0)
	alone := deliver(1)
	f.setOptions(storetest.Alice, map[string]string{"max_requests_per_minute": "60"})
	f.PublishEvents("widgets", 1, 2000, 1)
	require.True(t, f.Complete(f.Take("w1", 1), storetest.Result{Delivered: 1}))
	for f.Redis.LLen(t.Context(), "jobs:instant:main").Val() > 0 { // one call passes over a hundred
		require.Nil(t, f.Take("w1", 2))
	}
	for ms := 3; ms < 10; ms++ {
		assert.Equal(t, alone, deliver(ms))
	}
}
