package buscopy_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/buscopy"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func label(i int) machines.LabelName { return machines.LabelName(fmt.Sprintf("label-%d", i)) }

// TestABusIsCopiedThereAndBack copies a bus with all kinds of data to partitions, to another number
// of them, to the same number, and back to one Redis. There it is identical to the original, and
// goes on.
func TestABusIsCopiedThereAndBack(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		one := newSide(t, server, server.Open(t), 0)
		one.fill()
		before := dump(t, server)
		last := one
		for _, count := range []int{3, 5, 5} {
			to := another(t, server)
			next := newSide(t, to, to.Open(t), count)
			requireCopied(last, next)
			last = next
		}
		assert.Equal(t, before, dump(t, server), "the source is only read")
		to := another(t, server)
		back := newSide(t, to, to.Open(t), 0)
		requireCopied(last, back)
		for key, value := range before {
			if isMadeAnew(key) {
				delete(before, key)
			} else {
				assert.Equal(t, value, dump(t, to)[key], key)
			}
		}
		for key := range dump(t, to) {
			assert.True(t, isMadeAnew(key) || before[key] != "", key)
		}
		requireServes(t, last)
		requireServes(t, back)
	})
}

// isMadeAnew reports whether a key may differ from the original: accounts without their change
// counter, the key that wakes clients waiting for jobs, and the queue of labels, whose walks are
// due at once.
func isMadeAnew(key string) bool {
	return key == "accounts" || key == "work:pulls" || strings.HasSuffix(key, ":machines") && strings.HasPrefix(key, "jobs:")
}

// dump returns all data of a Redis, without differences that are only in the order of elements.
func dump(t *testing.T, server *rdbtest.Server) map[string]string {
	t.Helper()
	all := rdbtest.Dump(t, server.Raw)
	for key := range all {
		if strings.HasPrefix(key, "jobs:instant:") { // entries of several partitions come in any order
			all[key] = fmt.Sprint(server.Raw.LLen(t.Context(), key).Val())
		}
	}
	return all
}

// requireServes requires that a copy has all, and goes on with it.
func requireServes(t *testing.T, s *side) {
	t.Helper()
	ctx := t.Context()
	for i := range topics {
		s.publish(topic(i), eventsOfTopic, eventsOfTopic) // the key is another one
		s.publish(topic(i), 1, 1)                         // the key is known, and nothing is stored
	}
	got := s.deliver(ctx)
	for i := range readers {
		for _, of := range topicsOf(i) {
			assert.Equal(t, append(storetest.UpTo(1, eventsOfTopic), eventsOfTopic), got[reader(i)][of], "%s of %s", of, reader(i))
		}
	}
	all := jobs.NewBus(s.partitions)
	for i := range jobTypes {
		list, _, err := all.Open(ctx, jobs.Filter{Type: jobType(i), Limit: 10})
		require.NoError(t, err)
		var ids []jobs.ID
		for _, job := range list {
			ids = append(ids, job.ID)
		}
		assert.ElementsMatch(t, jobIDs(i), ids)
	}
	f := s.machines()
	f.Now = f.Now.Add(time.Hour)
	f.Change("m:x", label(1), `{"go": true}`)
	storetest.RequireAllSound(t, s.Bus)
}

// TestACopyToACluster is the same with a real cluster.
func TestACopyToACluster(t *testing.T) {
	cluster := rdbtest.NewCluster(t, 3, time.Minute, func(o *rdbtest.ClusterOptions) { o.Replicas = 0 })
	server, to := rdbtest.Real(t), rdbtest.Real(t)
	one := newSide(t, server, server.Open(t), 0)
	one.fill()
	on := newSide(t, nil, cluster.Open(t), store.DefaultPartitions)
	requireCopied(one, on)
	back := newSide(t, to, to.Open(t), 0)
	requireCopied(on, back)
	requireServes(t, on)
	mark := layout.Keys{Namespace: on.partitions[0].Namespace()}.Copying()
	require.NoError(t, on.partitions[0].Set(t.Context(), mark, 1, 0).Err())
	_, err := store.AwaitBus(t.Context(), cluster.Open(t), cluster.Open(t), "", store.Options{}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, store.ErrCopying)
	requireServes(t, back)
}

// TestACopyThatIsBrokenOff leaves a mark, with which nothing starts on the target, until a copy has
// been completed.
func TestACopyThatIsBrokenOff(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		from := newSide(t, server, server.Open(t), 0)
		from.fill()
		target := another(t, server)
		client := target.Open(t)
		to := newSide(t, target, client, 0)
		ctx, stop := context.WithCancel(t.Context())
		_, err := buscopy.Run(ctx, buscopy.Options{From: from.partitions, To: to.partitions, Progress: func(step string, _, _ int) {
			if step == "copying" {
				stop()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		_, err = store.OpenOne(t.Context(), client, "", store.Options{})
		require.ErrorIs(t, err, store.ErrCopying)
		found, err := storetest.Check(t.Context(), to.First())
		require.NoError(t, err)
		require.NotEmpty(t, found)
		assert.Equal(t, "copying", found[0].Key)

		_, err = run(to, from)
		require.ErrorContains(t, err, "the source is itself a copy that has not ended")
		_, err = run(from, to)
		require.ErrorContains(t, err, "an earlier copy to this Redis has not ended; --restart")
		to.notice()
		_, err = run(from, to, func(o *buscopy.Options) { o.Restart = true })
		require.ErrorContains(t, err, "web or worker has run on the target since the earlier copy")
		require.NoError(t, target.Raw.Del(t.Context(), "bus").Err())
		report, err := run(from, to, func(o *buscopy.Options) { o.Restart = true })
		require.NoError(t, err)
		assert.True(t, report.IsEqual(), report)
		_, err = store.OpenOne(t.Context(), client, "", store.Options{})
		require.NoError(t, err)
		requireServes(t, to)
	})
}

// TestACopyThatIsNotEqual reports the differences, and leaves the mark.
func TestACopyThatIsNotEqual(t *testing.T) {
	server, target := rdbtest.Embedded(t), rdbtest.Embedded(t)
	from, to := newSide(t, server, server.Open(t), 0), newSide(t, target, target.Open(t), 3)
	from.fill()
	report, err := run(from, to, func(o *buscopy.Options) {
		o.Progress = func(step string, _, _ int) {
			if step == "counting the target" {
				p := to.Of(reader(0)).Partition()
				require.NoError(t, p.Del(t.Context(), p.Namespace()+"topics:"+string(reader(0))).Err())
			}
		}
	})
	require.NoError(t, err)
	assert.False(t, report.IsEqual())
	assert.Contains(t, report.Rows, buscopy.Row{What: "subscriptions", Source: 2 * readers, Target: 2*readers - 2, IsMain: true})
	assert.NotEmpty(t, report.Findings)
	for _, f := range report.Findings {
		assert.NotContains(t, f, string(reader(0)))
	}
	assert.EqualValues(t, 1, target.Raw.Exists(t.Context(), to.partitions[0].Namespace()+"copying").Val())
}

// TestWhatIsNotCopied is refused before anything is written.
func TestWhatIsNotCopied(t *testing.T) {
	for _, refused := range []struct {
		says string
		does func(ctx context.Context, from, to *side)
	}{
		{`the target is not empty: it has 1 keys, such as topics;`, func(ctx context.Context, _, to *side) {
			to.partitions[2].SAdd(ctx, to.partitions[2].Namespace()+"topics", "x")
		}},
		{`1 key that the layout does not know, or that belongs to another partition, such as mine:…:`, func(ctx context.Context, from, _ *side) {
			from.partitions[0].Set(ctx, "mine:"+string(reader(1)), 1, 0)
		}},
		{"the source is in use: 1 thread of workers seen in the last 30s; stop all", func(ctx context.Context, from, _ *side) {
			from.partitions[0].HSet(ctx, "workers", "w", time.Now().UnixMilli())
		}},
		{"the target is in use: 1 thread of workers", func(ctx context.Context, _, to *side) {
			to.partitions[1].HSet(ctx, to.partitions[1].Namespace()+"workers", "w", time.Now().UnixMilli())
		}},
		{"the source is in use: web 7 on here; stop all", func(ctx context.Context, from, _ *side) {
			from.partitions[0].HSet(ctx, "processes", "x", fmt.Sprintf(`{"kind":"web","host":"here","pid":7,"seen_at":%d}`, time.Now().UnixMilli()))
		}},
		{"moves of the machine m are still to be published", func(ctx context.Context, from, _ *side) {
			from.partitions[0].RPush(ctx, "machines:outbox:m", "x")
		}},
		{"a rotation of tokens is under way on the source: finish it first, with `rtm token rotate reader1`", func(ctx context.Context, from, _ *side) {
			from.register(reader(1))
			from.partitions[0].HSet(ctx, "api_tokens:rotations", string(reader(1)), "new--1")
		}},
		{"the Ruby original may run on the source", func(ctx context.Context, from, _ *side) {
			from.partitions[0].Set(ctx, "migration", 1, 0)
		}},
		{"the source has no keys: give the URL", func(ctx context.Context, from, _ *side) {
			from.partitions[0].Del(ctx, "topics")
		}},
		{"topics of partition 00 cannot be read", func(ctx context.Context, from, _ *side) {
			from.partitions[0].Set(ctx, "topics", 1, 0)
		}},
	} {
		server, target := rdbtest.Embedded(t), rdbtest.Embedded(t)
		from, to := newSide(t, server, server.Open(t), 0), newSide(t, target, target.Open(t), 3)
		from.partitions[0].SAdd(t.Context(), "topics", "x")
		refused.does(t.Context(), from, to)
		_, err := run(from, to)
		require.ErrorContains(t, err, refused.says, refused.says)
		assert.NotContains(t, err.Error(), string(reader(1)))
	}
}

// TestEventsOnTheirWay between partitions stay so on as many, and are refused on others.
func TestEventsOnTheirWay(t *testing.T) {
	server := rdbtest.Embedded(t)
	from := newSide(t, server, server.Open(t), 3)
	from.fillEvents()
	for i := range topics {
		from.publish(topic(i), eventsOfTopic, eventsOfTopic)
	}
	to := func(count int) *side { s := rdbtest.Embedded(t); return newSide(t, s, s.Open(t), count) }
	_, err := run(from, to(0))
	require.ErrorContains(t, err, "events are on their way from partition 0")
	same := to(3)
	requireCopied(from, same)
	got := same.deliver(t.Context())
	for i := range readers {
		for _, of := range topicsOf(i) {
			assert.Equal(t, append(storetest.UpTo(1, eventsOfTopic), eventsOfTopic), got[reader(i)][of], "%s of %s", of, reader(i))
		}
	}
}

// TestSubscribersOfLate do not get events that were on their way before they subscribed.
func TestSubscribersOfLate(t *testing.T) {
	server, target := rdbtest.Embedded(t), rdbtest.Embedded(t)
	from, to := newSide(t, server, server.Open(t), 3), newSide(t, target, target.Open(t), 3)
	from.notice()
	from.fillEvents()
	for i := range topics {
		from.publish(topic(i), eventsOfTopic+1, eventsOfTopic+3)
	}
	late := []bus.Token{"late--", "late--", "late--"}
	for number := range late {
		for !from.partitions[number].Owns(string(late[number])) {
			late[number] += "1"
		}
		from.register(late[number])
		sub := bus.Subscription{Topics: []bus.TopicName{topic(0), topic(1)}, Callback: "https://late.example/"}
		require.NoError(t, from.Subscribe(t.Context(), late[number], sub, storetest.Start))
	}
	for i := range topics {
		from.publish(topic(i), eventsOfTopic+4, eventsOfTopic+5)
	}
	requireCopied(from, to)
	to.notice()
	got := to.deliver(t.Context())
	for _, token := range late {
		for i := range 2 {
			assert.Equal(t, []int{eventsOfTopic + 4, eventsOfTopic + 5}, got[token][topic(i)], "%s of %s", topic(i), token)
		}
	}
	for i := range readers {
		for _, of := range topicsOf(i) {
			assert.Equal(t, storetest.UpTo(1, eventsOfTopic+5), got[reader(i)][of], "%s of %s", of, reader(i))
		}
	}
}

// notice looks at the marks of all partitions, as processes do.
func (s *side) notice() {
	s.t.Helper()
	for _, p := range s.partitions {
		require.NoError(s.t, rdb.NewIdentity(p, slog.New(slog.DiscardHandler), s.clock).Notice(s.t.Context()))
	}
}

// TestJobsOfOneIDInTwoPartitions cannot be copied to one Redis.
func TestJobsOfOneIDInTwoPartitions(t *testing.T) {
	server, target := rdbtest.Embedded(t), rdbtest.Embedded(t)
	from, to := newSide(t, server, server.Open(t), 3), newSide(t, target, target.Open(t), 0)
	for _, p := range from.partitions[:2] {
		name := "a"
		for !p.Owns(name) {
			name += "a"
		}
		require.NoError(t, p.HSet(t.Context(), p.Namespace()+"work:job:"+string(jobIDs(0)[0]), "type", name).Err())
	}
	_, err := run(from, to)
	require.ErrorContains(t, err, "two jobs have the id "+string(jobIDs(0)[0]))
}

// TestAProcessThatStartsDuringACopy is noticed at the end: its changes may not be copied.
func TestAProcessThatStartsDuringACopy(t *testing.T) {
	server, target := rdbtest.Embedded(t), rdbtest.Embedded(t)
	from, to := newSide(t, server, server.Open(t), 0), newSide(t, target, target.Open(t), 3)
	from.fillEvents()
	_, err := run(from, to, func(o *buscopy.Options) {
		o.Progress = func(step string, _, _ int) {
			if step == "examining the target" {
				from.partitions[0].HSet(t.Context(), "processes", "x",
					fmt.Sprintf(`{"kind":"web","host":"here","pid":7,"seen_at":%d}`, time.Now().UnixMilli()))
			}
		}
	})
	require.ErrorContains(t, err, "the source is in use: web 7 on here")
	assert.EqualValues(t, 1, target.Raw.Exists(t.Context(), to.partitions[0].Namespace()+"copying").Val())
}

// TestACopyOnTheSameRedis needs a namespace that neither has the other's keys nor is in them.
func TestACopyOnTheSameRedis(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		from := newSide(t, server, server.Open(t), 0)
		from.fillEvents()
		before := dump(t, server)
		_, err := buscopy.Run(t.Context(), buscopy.Options{From: from.partitions, To: rdb.Partitions{server.Open(t).Partition("new:")}})
		require.ErrorContains(t, err, `the target is on the same Redis as the source, and keys of one namespace would be keys of the other ("" and "new:")`)
		assert.Equal(t, before, dump(t, server))
	})
}

// TestAWholePartHasTheExpiryToo copies keys whose last part is empty, as a list is read.
func TestAWholePartHasTheExpiryToo(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		from := newSide(t, server, server.Open(t), 0)
		from.register(reader(1))
		key := "attempts:" + string(reader(1))
		for range 200 {
			require.NoError(t, server.Raw.RPush(t.Context(), key, "x").Err())
		}
		require.NoError(t, server.Raw.PExpire(t.Context(), key, time.Hour).Err())
		target := another(t, server)
		to := newSide(t, target, target.Open(t), 0)
		requireCopied(from, to)
		assert.Positive(t, target.Raw.PTTL(t.Context(), key).Val())
	})
}
