package samples

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	hostclock "routemaster/internal/clock"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// fixture is a bus whose samples are taken by a clock that stands still, however slow the host is.
type fixture struct {
	*storetest.Bus
	*Collector
	server *rdbtest.Server
	at     time.Time
}

// flush stands for the flush of a process that has counted nothing.
func (*fixture) flush(context.Context) {}

func newFixture(t *testing.T, server *rdbtest.Server) *fixture {
	f := &fixture{Bus: storetest.NewBus(t, server), server: server, at: storetest.After(10_000)}
	f.Collector = f.collectorOf(f.Store)
	return f
}

func (f *fixture) collectorOf(all ...*store.Store) *Collector {
	c := NewCollector(Config{
		Stores: store.NewBus(all...),
		CountJobs: func(context.Context) ([]jobs.CountedType, error) {
			return []jobs.CountedType{{
				Type:   jobs.Type{Name: "mail", Concurrency: 4, Paused: true},
				Counts: jobs.Counts{Queued: 3, Waiting: 2, InProgress: 1, Oldest: storetest.Start},
			}}, nil
		},
		CountLabels: func(context.Context) ([]machines.Count, error) {
			return []machines.Count{{
				Machine: "trial", Errored: 1, Unpublished: 2,
				States: []machines.StateCount{{State: "start", Labels: 3}, {State: "end", Labels: 4}},
			}}, nil
		},
		Memory: bus.MemoryLimits{Max: 100_000_000, MinFree: 10_000_000},
	}, func() time.Time { return f.at })
	c.timeout = time.Minute
	c.clock = func(time.Time) time.Time { return f.at }
	return c
}

// each runs a test on both engines.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { test(t, newFixture(t, server)) })
}

func TestASampleIsOfTheWholeBus(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, 100*time.Millisecond, 2, "widgets", "gadgets")
		f.AddSubscriber(storetest.Bob, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 1, 3, 7)
		require.NoError(t, f.Redis.HSet(ctx, "delivery:"+string(storetest.Alice), "events_sent", 12,
			"throttled_until", storetest.After(20_000).UnixMilli()).Err())
		require.NoError(t, f.Redis.HSet(ctx, "subscriber:"+string(storetest.Alice),
			"health_points", 40, "last_attempted_at", storetest.After(50).UnixMilli()).Err())
		f.attempted(storetest.Alice, wire.AttemptRecord{Outcome: bus.OutcomeFailed, Status: 503})
		f.attempted(storetest.Bob, wire.AttemptRecord{Outcome: bus.OutcomeAcknowledged, Status: 200})
		require.NoError(t, f.AddCounters(ctx, map[bus.Counter]int64{
			dropped("alice"): 5, deliveries("alice", telemetry.Success): 6, deliveries("alice", telemetry.Failure): 7,
			unreadable: 8, scrubbed: 9, took("alice"): 15, waited("alice"): 16,
			telemetry.EndedJobs.Bus("mail", "failed", "web"): 10, telemetry.EndedJobs.Bus("mail", "failed", "worker"): 11,
			telemetry.BusLabelSteps.Bus("trial", "moved"): 12, telemetry.BusLabelSteps.Bus("trial", "failed"): 13,
			telemetry.BusLabelSteps.Bus("trial", "errored"): 14,
		}))
		heartbeat := NewHeartbeat(f.Partition, overview.Process{Kind: "worker", Version: "v1", Threads: 8}, func(p *overview.Process) { p.Busy = 3 }, hostclock.New(time.Now, nil))
		require.NoError(t, heartbeat.Beat(ctx))

		s := f.Collect(ctx, Look)
		assert.Empty(t, s.Unread)
		assert.Equal(t, f.at, s.At)
		assert.Equal(t, []overview.TopicState{{Name: "gadgets"}, {Name: "widgets", Publisher: "publisher", Events: 3}}, s.Topics)
		assert.Equal(t, []overview.SubscriberState{
			{
				Name: "alice", Topics: []string{"gadgets", "widgets"}, Timeout: 100 * time.Millisecond, Sent: 12, Queued: 3, Batches: 2,
				Health: 40, OldestAt: storetest.After(7), AttemptedAt: storetest.After(50), Throttled: storetest.After(20_000),
				Failure: "503", Counts: overview.Counts{Succeeded: 6, Failed: 7, Dropped: 5},
			},
			{Name: "bob", Topics: []string{"widgets"}, Timeout: time.Second, Queued: 3, Batches: 2, Health: 100, OldestAt: storetest.After(7)},
		}, s.Subscribers)
		timed := f.Collect(ctx, Record).Subscribers
		assert.Equal(t, overview.Times{Took: 15, Waited: 16}, timed[0].Times)
		require.Len(t, s.Queues, len(bus.Queues))
		assert.Equal(t, overview.Queue{Name: "main", Instant: 2, Scheduled: 2}, s.Queues[0])
		assert.Equal(t, int64(4), s.Due)
		assert.Equal(t, []overview.JobTypeState{{
			Name: "mail", Queued: 3, Waiting: 2, InProgress: 1, Concurrency: 4, OldestAt: storetest.Start, Paused: true, Failed: 21,
		}}, s.JobTypes)
		assert.Equal(t, []overview.MachineState{{
			Name: "trial", Labels: 7, Errored: 1, Unpublished: 2, Moved: 12, Failed: 27,
			States: []overview.LabelState{{State: "start", Labels: 3}, {State: "end", Labels: 4}},
			Steps:  map[string]int64{"moved": 12, "failed": 13, "attempted": 0, "errored": 14},
		}}, s.Machines)
		assert.Equal(t, []int64{8, 9}, []int64{s.Unreadable, s.Scrubbed})
		if !f.server.IsEmbedded() {
			assert.Equal(t, []int64{100_000_000, 90_000_000, 80_000_000}, []int64{s.Memory.Max, s.Memory.High, s.Memory.Low})
			assert.Positive(t, s.Memory.Used)
		}
		require.Len(t, s.Processes, 1)
		p := s.Processes[0]
		assert.Equal(t, []any{"worker", "v1", 8, 3}, []any{p.Kind, p.Version, p.Threads, p.Busy})
		assert.Less(t, max(p.Ahead, -p.Ahead), time.Minute.Milliseconds())
		text := fmt.Sprint(s)
		for _, token := range []bus.Token{storetest.Alice, storetest.Bob, storetest.Publisher} {
			assert.NotContains(t, text, string(token))
		}
		f.RequireSound()
	})
}

// TestASampleHasWhatItsReaderNeeds of a bus that has everything.
func TestASampleHasWhatItsReaderNeeds(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	ctx := t.Context()
	f.AddSubscriber(storetest.Alice, time.Hour, 2, "widgets")
	f.AddSubscriber(storetest.Bob, time.Hour, 2, "widgets")
	f.PublishEvents("widgets", 1, 3, 7)
	require.NoError(t, f.DeleteSubscriber(ctx, storetest.Bob))
	require.NoError(t, f.Redis.HSet(ctx, layout.Keys{}.Plans(), "/widgets", 1).Err())
	keep(t, f.Partition, "alice", 5)
	require.NoError(t, NewHeartbeat(f.Partition, overview.Process{Kind: "web"}, nil, hostclock.New(time.Now, nil)).Beat(ctx))
	has := func(reader Reader) (parts string) {
		s := f.Collect(ctx, reader)
		require.Empty(t, s.Unread)
		require.Len(t, s.Subscribers, 1)
		for i, part := range []bool{
			s.Memory != nil, len(s.Queues) > 0, len(s.Topics) > 0, len(s.Subscribers[0].Topics) > 0, !s.Subscribers[0].OldestAt.IsZero(),
			len(s.Others) > 0, s.Subscribers[0].Lanes.Count > 0, len(s.Histories) > 0,
			len(s.Clients) > 0, len(s.Accounts) > 0, len(s.JobTypes) > 0, len(s.Machines) > 0, len(s.Processes) > 0,
		} {
			if part {
				parts += string("mqtsoOLHcajMp"[i])
			}
		}
		return parts
	}
	for reader, want := range map[Reader]string{
		Look: "mqtsocjMp", Record: "mqtsojMp", Scrape: "mqoOLHajM", Measure: "mqOj", Check: "O",
	} {
		assert.Equal(t, want, has(reader), "%d", reader)
	}
	before := f.server.Reads(t)
	has(Check)
	assert.LessOrEqual(t, f.server.Reads(t)-before-1, 4, "the backlogs, the names, and two hashes of each subscriber")
}

// attempted notes an attempt of a subscriber, as its last.
func (f *fixture) attempted(token bus.Token, r wire.AttemptRecord) {
	f.T.Helper()
	require.NoError(f.T, f.Redis.LPush(f.T.Context(), layout.Keys{}.Attempts(token), wire.PackAttempt(r)).Err())
}

// throttled notes until when (ms) a subscriber is throttled.
func (f *fixture) throttled(token bus.Token, until int64) {
	f.T.Helper()
	require.NoError(f.T, f.Redis.HSet(f.T.Context(), layout.Keys{}.Delivery(token), "throttled_until", until).Err())
}

// TestAFailureLastsUntilTheNextSuccess has records of failures, which stay when deliveries succeed.
func TestAFailureLastsUntilTheNextSuccess(t *testing.T) {
	gone := wire.AttemptRecord{Outcome: bus.OutcomeFailed, Status: 410}
	test := wire.AttemptRecord{Outcome: bus.OutcomeFailed, Error: bus.ErrorTLS, Test: true}
	each(t, func(t *testing.T, f *fixture) {
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		failure := func() string {
			f.at = f.at.Add(knownTTL)
			return f.Collect(t.Context(), Look).Subscribers[0].Failure
		}
		f.attempted(storetest.Alice, test)
		assert.Empty(t, failure(), "nothing but a test was tried")
		f.attempted(storetest.Alice, gone)
		f.throttled(storetest.Alice, 1)
		assert.Empty(t, failure(), "a success is being acted upon")
		f.throttled(storetest.Alice, 0)
		assert.Empty(t, failure(), "it has subscribed again")
		f.throttled(storetest.Alice, storetest.After(5).UnixMilli())
		assert.Equal(t, "410", failure(), "though it is not throttled any more")
		f.attempted(storetest.Alice, test)
		f.attempted(storetest.Alice, test)
		assert.Equal(t, "410", failure(), "tests do not count")
		require.NoError(t, f.Redis.HDel(t.Context(), layout.Keys{}.Delivery(storetest.Alice), "throttled_until").Err())
		assert.Empty(t, failure(), "it has succeeded")
	})
}

func TestSubscribersOfOneNameAreOneSubscriber(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		require.NoError(t, f.PutToken(ctx, "alice--new", "alice"))
		f.AddSubscriber(storetest.Alice, time.Second, 2, "a", "b")
		f.AddSubscriber("alice--new", time.Hour, 2, "b", "c")
		for token, sent := range map[string]int{"alice--1": 3, "alice--new": 4} {
			require.NoError(t, f.Redis.HSet(ctx, "delivery:"+token, "events_sent", sent).Err())
		}
		f.attempted("alice--new", wire.AttemptRecord{Outcome: bus.OutcomeDead, Error: bus.ErrorRefused})
		f.throttled("alice--new", storetest.After(20_000).UnixMilli())
		s := f.Collect(ctx, Look)
		assert.Equal(t, []overview.SubscriberState{{
			Name: "alice", Topics: []string{"a", "b", "c"}, Timeout: time.Hour, Sent: 7, Health: 100,
			Throttled: storetest.After(20_000),
			Failure:   bus.ErrorUnreachable, // the address was not a public one
		}}, s.Subscribers)
	})
}

func TestTopicsAreReadEveryTenSeconds(t *testing.T) {
	f := newFixture(t, rdbtest.Embedded(t))
	f.AddSubscriber(storetest.Alice, time.Second, 2, "a")
	topics := func() (all []string) {
		for _, sub := range f.Collect(t.Context(), Look).Subscribers {
			all = append(all, sub.Topics...)
		}
		return all
	}
	assert.Equal(t, []string{"a"}, topics())
	f.AddSubscriber(storetest.Alice, time.Second, 2, "b")
	assert.Equal(t, []string{"a"}, topics())
	f.at = f.at.Add(knownTTL)
	assert.Equal(t, []string{"b"}, topics())
	f.AddSubscriber(storetest.Bob, time.Second, 2, "c")
	assert.Equal(t, []string{"b", "c"}, topics(), "one that is new is seen at once")
}

// TestDetailsThatCouldNotBeReadAreReadTheNextTime has a reading end before it has them.
func TestDetailsThatCouldNotBeReadAreReadTheNextTime(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		p, cut := f.partitions[0], true
		p.known.forget(f.at)
		for range 2 {
			d := &draft{reader: Look}
			require.NoError(t, p.readBacklogs(t.Context(), d))
			ctx, cancel := context.WithCancel(t.Context())
			if cut {
				cancel()
				require.Error(t, p.readDetails(ctx, d))
			} else {
				require.NoError(t, p.readDetails(ctx, d))
				assert.Equal(t, []string{"widgets"}, d.details[storetest.Alice].topics)
			}
			cancel()
			cut = false
		}
	})
}

func TestPublishersAreReadEveryTenSeconds(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.AddSubscriber(storetest.Alice, time.Second, 2, "a")
		topics := func() []overview.TopicState { return f.Collect(ctx, Look).Topics }
		assert.Equal(t, []overview.TopicState{{Name: "a"}}, topics())
		f.PublishEvents("a", 1, 1, 0)
		assert.Equal(t, []overview.TopicState{{Name: "a", Publisher: "publisher", Events: 1}}, topics(), "it is new")
		f.PublishEvents("a", 2, 3, 0)
		require.NoError(t, f.Redis.HSet(ctx, "topic_owners", "a", "bob").Err())
		assert.Equal(t, []overview.TopicState{{Name: "a", Publisher: "publisher", Events: 3}}, topics())
		f.at = f.at.Add(knownTTL)
		assert.Equal(t, []overview.TopicState{{Name: "a", Publisher: "bob", Events: 3}}, topics())
		require.NoError(t, f.Redis.HDel(ctx, "topic_owners", "a").Err())
		f.at = f.at.Add(knownTTL)
		assert.Equal(t, string(bus.LegacyClientName(storetest.Publisher)), topics()[0].Publisher)
	})
}

func TestAPartThatCannotBeReadIsLeftOut(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.config.CountLabels = func(context.Context) ([]machines.Count, error) { return nil, context.DeadlineExceeded }
		f.config.CountJobs = func(context.Context) ([]jobs.CountedType, error) { return nil, errors.New("the secret") }
		require.NoError(t, f.Redis.Set(t.Context(), "processes", "x", 0).Err())
		require.NoError(t, f.Redis.Set(t.Context(), "topic:widgets", "x", 0).Err())
		require.NoError(t, f.Redis.Set(t.Context(), "subscriber:"+string(storetest.Bob), "x", 0).Err())
		require.NoError(t, f.Redis.SAdd(t.Context(), "subscribers", string(storetest.Bob)).Err())
		s := f.Collect(t.Context(), Look)
		assert.Empty(t, s.Redis)
		const foreign = "Redis answered with what is not of the bus"
		assert.Equal(t, []overview.Unread{
			{Part: overview.PartJobTypes, Why: foreign},
			{Part: overview.PartMachines, Why: "Redis did not answer within 500 ms"},
			{Part: overview.PartProcesses, Why: foreign},
		}, s.Unread)
		assert.Equal(t, []string{"topic:widgets", "subscriber:bob", "processes"}, s.Damaged)
		require.Len(t, s.Subscribers, 1, "the others are there")
	})
}

// damage gives a key another type while do runs.
func (f *fixture) damage(key string, do func()) {
	f.T.Helper()
	ctx := f.T.Context()
	exists := f.Redis.Exists(ctx, key).Val() > 0
	if exists {
		require.NoError(f.T, f.Redis.Rename(ctx, key, "saved").Err())
	}
	kind := f.Redis.SAdd
	if key == "topics" || key == "subscribers" {
		kind = f.Redis.LPush
	}
	require.NoError(f.T, kind(ctx, key, "x").Err())
	do()
	require.NoError(f.T, f.Redis.Del(ctx, key).Err())
	if exists {
		require.NoError(f.T, f.Redis.Rename(ctx, "saved", key).Err())
	}
}

// TestADamagedKeyHarmsItsPartAlone shows the figures of the last time it could be read, and names
// the key.
func TestADamagedKeyHarmsItsPartAlone(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		f.PublishEvents("widgets", 1, 3, 7)
		live := NewLive(f.Collector)
		look := func() overview.Figures {
			f.at = f.at.Add(knownTTL)
			figures := live.Figures(t.Context())
			assert.Len(t, figures.Subscribers, 1)
			assert.Len(t, figures.Topics, 1)
			assert.Equal(t, int64(3), figures.Queued)
			assert.NotNil(t, figures.OldestAge)
			assert.Empty(t, figures.Redis)
			return figures
		}
		before := look()
		for key, part := range map[string]string{
			"topics": overview.PartTopics, "subscribers": overview.PartSubscribers, "api_tokens:by_token": overview.PartSubscribers,
			"batches:gauges:event": overview.PartSubscribers, "batches:index": overview.PartOldest,
			"counters": overview.PartCounters, "jobs:scheduled:main": overview.PartQueues,
		} {
			f.damage(key, func() {
				figures := look()
				require.Len(t, figures.Unread, 1, key)
				assert.Equal(t, part, figures.Unread[0].Part)
				assert.Equal(t, before.At, figures.Unread[0].ReadAt.Time)
				i := slices.IndexFunc(figures.Problems, func(p overview.Problem) bool { return p.Rule == "keys-damaged" })
				require.NotEqual(t, -1, i, key)
				assert.Contains(t, figures.Problems[i].Detail, key+": ")
			})
			before = look()
			assert.Empty(t, before.Unread, key)
		}
		for _, key := range []string{"delivery:", "options:", "attempts:"} {
			f.damage(key+string(storetest.Alice), func() { assert.Empty(t, look().Unread, key) })
		}
	})
}

// TestTheClockIsThatOfRedis has a web whose clock is wrong look at a worker whose clock is right.
func TestTheClockIsThatOfRedis(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	ctx := t.Context()
	require.NoError(t, NewHeartbeat(f.Partition, overview.Process{Kind: "worker"}, nil, hostclock.New(time.Now, nil)).Beat(ctx))
	c := NewCollector(f.config, func() time.Time { return time.Now().Add(-time.Hour) })
	live := NewLive(c)
	figures := live.Figures(ctx)
	assert.Len(t, figures.Processes, 1)
	isNow := func(at time.Time) {
		t.Helper()
		assert.WithinDuration(t, time.Now(), at, time.Minute)
	}
	isNow(figures.At)
	f.server.Kill(t)
	isNow(c.Collect(ctx, Look).At)
	f.server.Restart(t)
}

func TestRedisIsAway(t *testing.T) {
	f := newFixture(t, rdbtest.Real(t))
	f.server.Kill(t)
	s := f.Collect(t.Context(), Look)
	assert.Equal(t, overview.Sample{At: f.at, Redis: "Redis is unavailable, or refuses calls"}, s)
	f.server.Restart(t)
}

func TestASampleSaysThatRedisHasLostData(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		assert.Empty(t, f.Collect(t.Context(), Look).Lost)
		noteLoss(t, f.Partition, bus.DataEmpty)
		assert.Equal(t, []bus.DataLoss{{Kind: bus.DataEmpty, FoundAt: storetest.Start}}, f.Collect(t.Context(), Look).Lost)
	})
	f := newFixture(t, rdbtest.Embedded(t))
	all, _ := storetest.Apart(t, 3)
	noteLoss(t, all[0].Partition(), bus.DataEmpty)
	noteLoss(t, all[2].Partition(), bus.DataOlder)
	assert.Equal(t, []bus.DataLoss{
		{Kind: bus.DataEmpty, FoundAt: storetest.Start, Partition: "00"}, {Kind: bus.DataOlder, FoundAt: storetest.Start, Partition: "02"},
	}, f.collectorOf(all...).Collect(t.Context(), Look).Lost)
}

func noteLoss(t *testing.T, p *rdb.Partition, kind bus.DataLossKind) {
	t.Helper()
	key := layout.Keys{Namespace: p.Namespace()}.Identity()
	require.NoError(t, p.HSet(t.Context(), key, "lost", string(kind), "lost_at", storetest.Start.UnixMilli()).Err())
}

// TestAMarkOfAnotherTypeIsDamaged though no part of a sample needs it.
func TestAMarkOfAnotherTypeIsDamaged(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		require.NoError(t, f.Redis.Set(t.Context(), layout.Keys{}.Identity(), "of another", 0).Err())
		s := f.Collect(t.Context(), Look)
		assert.Empty(t, s.Redis)
		assert.Equal(t, []string{"bus"}, s.Damaged)
	})
}

func TestASampleSaysWhetherRedisTakesWrites(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		assert.Empty(t, f.Collect(t.Context(), Look).Refuses)
		assert.Empty(t, f.Redis.Keys(t.Context(), "series:*").Val(), "nothing is written")
	})
	for code, refuse := range map[string][]any{
		"NOPERM": {"acl", "setuser", "default", "-lpushx"},
		"OOM":    {"config", "set", "maxmemory", "1"}, "READONLY": {"replicaof", "127.0.0.1", "1"},
		"NOREPLICAS": {"config", "set", "min-replicas-to-write", "1"},
	} {
		f := newFixture(t, rdbtest.Real(t))
		f.AddSubscriber(storetest.Alice, time.Second, 2, "widgets")
		require.NoError(t, f.server.Raw.Do(t.Context(), refuse...).Err())
		s := f.Collect(t.Context(), Look)
		assert.Equal(t, []any{code, ""}, []any{s.Refuses, s.Redis})
		assert.Empty(t, s.Unread, code)
		assert.Len(t, s.Subscribers, 1, code)
	}
}

// TestASampleSaysWhetherRedisRunsScripts has it refuse these alone.
func TestASampleSaysWhetherRedisRunsScripts(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) { assert.False(t, f.Collect(t.Context(), Look).RefusesScripts) })
	f := newFixture(t, rdbtest.Real(t))
	for command, code := range map[string]string{"evalsha": "NOPERM", "script": "NOSCRIPT"} {
		require.NoError(t, f.server.Raw.ScriptFlush(t.Context()).Err())
		require.NoError(t, f.server.Raw.Do(t.Context(), "acl", "setuser", "default", "-"+command).Err())
		s := f.Collect(t.Context(), Look)
		assert.Equal(t, []any{code, true}, []any{s.Refuses, s.RefusesScripts})
		require.NoError(t, f.server.Raw.Do(t.Context(), "acl", "setuser", "default", "+"+command).Err())
		assert.Empty(t, f.Collect(t.Context(), Look).Refuses)
	}
}

func TestProcessesComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx, now := t.Context(), time.Now()
		clock := func() time.Time { return now }
		web := NewHeartbeat(f.Partition, overview.Process{Kind: "web"}, nil, hostclock.New(clock, nil))
		worker := NewHeartbeat(f.Partition, overview.Process{Kind: "worker"}, nil, hostclock.New(clock, nil))
		require.NoError(t, web.Beat(ctx))
		require.NoError(t, worker.Beat(ctx))
		require.NoError(t, f.Redis.HSet(ctx, "processes", "somebody", "else").Err())
		kinds := func() (kinds []string) {
			for _, p := range f.Collect(ctx, Look).Processes {
				kinds = append(kinds, p.Kind)
			}
			return kinds
		}
		assert.Equal(t, []string{"web", "worker"}, kinds())
		worker.Leave()
		assert.Equal(t, []string{"web"}, kinds())

		require.NoError(t, f.processes.forget(ctx, time.Now()))
		assert.Equal(t, int64(1), f.Redis.HLen(ctx, "processes").Val(), "what is no process is gone")
		now = now.Add(24 * time.Hour) // the clock is wrong, and not when it was last seen
		require.NoError(t, web.Beat(ctx))
		require.NoError(t, f.processes.forget(ctx, time.Now()))
		assert.Equal(t, []string{"web"}, kinds())
		require.NoError(t, f.processes.forget(ctx, time.Now().Add(forgetAfter+time.Minute)))
		assert.Empty(t, kinds())
	})
}
