package samples

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
)

// commands is how many commands Redis has got.
func (f *fixture) commands() int64 {
	f.T.Helper()
	info, err := f.server.Raw.InfoMap(f.T.Context(), "stats").Result()
	require.NoError(f.T, err)
	var n int64
	for _, c := range info["Stats"]["total_commands_processed"] {
		n = 10*n + int64(c-'0')
	}
	return n
}

func TestAllWhoLookShareASample(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
	live := NewLive(f.Collector)
	ask := func() int64 { // returns the number of commands, without the count's own
		before := f.commands()
		var viewers sync.WaitGroup
		for range 5 {
			viewers.Go(func() { assert.Len(t, live.Figures(t.Context()).Subscribers, 1) })
		}
		viewers.Wait()
		return f.commands() - before - 1
	}
	assert.Positive(t, ask())
	assert.Zero(t, ask(), "the sample is young")
	f.at = f.at.Add(time.Millisecond)
	live.tick(t.Context())
	f.at = f.at.Add(minInterval + late)
	assert.Zero(t, ask())
	f.at = f.at.Add(time.Millisecond)
	one := ask()
	assert.Positive(t, one)
	f.at = f.at.Add(minInterval + late + time.Millisecond)
	assert.Equal(t, one, ask(), "one sample for all")
}

func TestALargeBusIsSampledLessOften(t *testing.T) {
	for rows, want := range map[int]time.Duration{
		0: minInterval, 800: minInterval, 1000: 2500 * time.Millisecond, 1400: maxInterval, 1_000_000: maxInterval,
	} {
		assert.Equal(t, want, Interval(rows), "%d", rows)
	}
	f := newFixture(t, rdbtest.Real(t))
	live := NewLive(f.Collector)
	live.Figures(t.Context())
	live.figures.Subscribers, live.figures.Topics = make([]overview.Subscriber, 1000), make([]overview.Topic, 400)
	f.at = f.at.Add(maxInterval + late)
	assert.Len(t, live.Figures(t.Context()).Subscribers, 1000, "the sample is young for so many")
	f.server.Kill(t)
	f.at = f.at.Add(time.Millisecond)
	lost := live.Figures(t.Context())
	assert.NotEmpty(t, lost.Redis)
	assert.Equal(t, minInterval, live.interval(), "it is noticed soon that Redis is back")
}

func TestNobodyLooks(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	live := NewLive(f.Collector)
	tick := func() int64 {
		before := f.commands()
		live.tick(t.Context())
		return f.commands() - before - 1
	}
	assert.Zero(t, tick(), "nobody ever has")
	live.Figures(t.Context())
	f.at = f.at.Add(watchedFor)
	assert.Positive(t, tick(), "somebody did just now")
	f.at = f.at.Add(time.Millisecond)
	assert.Zero(t, tick())
	live.history.Add(overview.Fast, bigSlot(f.at, 1, 1))
	f.at = f.at.Add(keptFor)
	assert.Zero(t, tick())
	assert.Zero(t, live.history.End(overview.Fast), "it is forgotten")
	assert.Empty(t, live.Figures(t.Context()).Subscribers)
}

func TestTheFirstFiguresHaveRates(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 1, 3, 7)
		f.at = f.Redis.Time(ctx).Val()
		for _, ago := range []time.Duration{20 * time.Second, 10 * time.Second} {
			f.record(f.at.Add(-ago), overview.SlotOf(f.Collect(ctx, Look)))
		}
		f.PublishEvents("widgets", 4, 23, 7)
		live := NewLive(f.Collector)
		figures := live.Figures(ctx)
		require.NotNil(t, figures.Published)
		assert.InDelta(t, 2, *figures.Published, 0.1)
		assert.NotNil(t, figures.Delivered)
		track, known := live.Tracks(ctx)(overview.Subject{Subscriber: "alice"}, overview.Fast)
		require.True(t, known)
		assert.Len(t, track.Values(overview.Out), overview.Fast.Points)

		f.record(f.at, overview.SlotOf(f.Collect(ctx, Look)))
		f.at = f.at.Add(SeriesInterval)
		live.Figures(ctx)
		later, _ := live.Tracks(ctx)(overview.Subject{Subscriber: "alice"}, overview.Fast)
		assert.True(t, later.End.After(track.End), "%v is new", later.End)
	})
}

// TestJobsFailBeforeALook has a job fail and one expire before the first look, after a slot of the
// history that the last look has read already.
func TestJobsFailBeforeALook(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		now, live := f.Redis.Time(ctx).Val(), NewLive(f.Collector)
		f.at = now.Add(-50 * time.Second)
		f.record(f.at, overview.SlotOf(f.Collect(ctx, Look)))
		f.at = now.Add(-45 * time.Second)
		live.Figures(ctx)
		require.NoError(t, f.AddCounters(ctx, map[bus.Counter]int64{
			telemetry.EndedJobs.Bus("mail", "failed", "web"): 1, telemetry.EndedJobs.Bus("mail", "expired", "web"): 1,
		}))
		f.at = now
		found := map[string]string{}
		for _, p := range live.Figures(ctx).Problems {
			found[p.Rule] = p.Detail
		}
		assert.Contains(t, found["jobs-failed"], "1 job in the last minute.")
		assert.Contains(t, found["jobs-expired"], "1 job in the last minute.")
	})
}

func TestFiguresStayWhileRedisIsAway(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
	live := NewLive(f.Collector)
	before := live.Figures(t.Context())
	f.server.Kill(t)
	f.at = f.at.Add(time.Minute)
	lost := live.Figures(t.Context())
	assert.Equal(t, "Redis is unavailable, or refuses calls", lost.Redis)
	assert.Equal(t, []time.Time{before.At, f.at}, []time.Time{lost.At, lost.RedisLostAt.Time})
	assert.Len(t, lost.Subscribers, 1)
	f.server.Restart(t)
	require.Eventually(t, func() bool {
		f.at = f.at.Add(time.Minute)
		return live.Figures(t.Context()).Redis == ""
	}, time.Minute, 10*time.Millisecond)
}

// TestASubscriberFailsAndRecovers lets 15 min pass for one that answers 503.
func TestASubscriberFailsAndRecovers(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.at = f.Redis.Time(ctx).Val().Add(-SeriesInterval * time.Duration(overview.Fast.Points+3)) // the slots read end now
		live := NewLive(f.Collector)
		attempt := func(r wire.AttemptRecord, queued, sent int, throttled time.Time) overview.Figures {
			f.at = f.at.Add(minInterval + late + 1)
			f.attempted(storetest.Alice, r)
			alice := string(storetest.Alice)
			require.NoError(t, f.Redis.HSet(ctx, "subscriber:"+alice, "last_attempted_at", f.at.UnixMilli(), "health_points", 50).Err())
			require.NoError(t, f.Redis.HSet(ctx, "delivery:"+alice, "events_sent", sent, "throttled_until", throttled.UnixMilli()).Err())
			require.NoError(t, f.Redis.HSet(ctx, "batches:gauges:event", alice, queued).Err())
			return live.Figures(ctx)
		}
		fails := wire.AttemptRecord{Outcome: bus.OutcomeFailed, Status: 503}
		state := func(figures overview.Figures) (overview.State, []string) {
			var problems []string
			for _, p := range figures.Problems {
				// The fixture has some of these, and keeps nothing on disk.
				if p.JobType == "" && p.Machine == "" && p.Rule != "not-durable" {
					problems = append(problems, p.Rule+": "+p.Detail)
				}
			}
			return figures.Subscribers[0].State, problems
		}
		works := wire.AttemptRecord{Outcome: bus.OutcomeAcknowledged, Status: 200}
		is, problems := state(attempt(works, 0, 1, time.Time{}))
		assert.Equal(t, overview.OK, is)
		assert.Empty(t, problems)
		is, problems = state(attempt(fails, 5, 1, f.at.Add(time.Minute)))
		assert.Equal(t, overview.Failing, is)
		require.Len(t, problems, 1)
		assert.Contains(t, problems[0], "failing: It answers 503. 5 events wait. It was tried 0.0 s ago, and will be again in ")
		for range overview.Fast.Points {
			f.at = f.at.Add(SeriesInterval)
			f.record(f.at, overview.SlotOf(overview.Sample{At: f.at, Subscribers: []overview.SubscriberState{{Name: "alice", Queued: 5, Sent: 1}}}))
		}
		is, problems = state(attempt(fails, 5, 1, f.at.Add(time.Minute)))
		assert.Equal(t, overview.Stalled, is)
		require.Len(t, problems, 1)
		assert.Contains(t, problems[0], "stalled: 5 events wait. It answers 503.")
		is, problems = state(attempt(works, 0, 6, time.Time{}))
		assert.Equal(t, overview.OK, is)
		assert.Empty(t, problems)
	})
}

func TestFiguresSayWhatTheHistoryHasRoomFor(t *testing.T) {
	f := newFixture(t, rdbtest.Embedded(t))
	live := NewLive(f.Collector)
	assert.Nil(t, live.Figures(t.Context()).History)
	f.record(f.Redis.Time(t.Context()).Val(), bigSlot(f.at, 1000, 500))
	f.at = f.at.Add(SeriesInterval)
	h := live.Figures(t.Context()).History
	require.NotNil(t, h)
	assert.Equal(t, []int64{1000, 500}, []int64{h.AllSubscribers, h.AllTopics})
	assert.Less(t, h.Subscribers, int64(1000))
	assert.Positive(t, h.Subscribers)
	assert.Positive(t, h.Topics)
}
