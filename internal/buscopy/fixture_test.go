package buscopy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/buscopy"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/outbound"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// side is a bus, with helpers that act as its clients and workers.
type side struct {
	*store.Bus
	t          testing.TB
	server     *rdbtest.Server
	partitions rdb.Partitions
}

// newSide makes an empty bus of count partitions, 0 for one without.
func newSide(t testing.TB, server *rdbtest.Server, client *rdb.Client, count int) *side {
	t.Helper()
	s := &side{t: t, server: server}
	if count == 0 {
		s.partitions = rdb.Partitions{client.Partition("")}
	} else {
		require.NoError(t, store.CreateBus(t.Context(), client, "", count))
		s.partitions = client.Partitions("", count)
	}
	var all []*store.Store
	for _, p := range s.partitions {
		all = append(all, storetest.OpenOn(p))
	}
	s.Bus = store.NewBus(all...)
	return s
}

// another returns a second Redis of the same engine.
func another(t testing.TB, server *rdbtest.Server) *rdbtest.Server {
	if server.IsEmbedded() {
		return rdbtest.Embedded(t)
	}
	return rdbtest.Real(t)
}

// run copies a bus, with options that a test may adjust.
func run(from, to *side, adjust ...func(*buscopy.Options)) (buscopy.Report, error) {
	o := buscopy.Options{From: from.partitions, To: to.partitions}
	for _, f := range adjust {
		f(&o)
	}
	return buscopy.Run(from.t.Context(), o)
}

// requireCopied copies a bus, and requires that the copy is equal.
func requireCopied(from, to *side) buscopy.Report {
	from.t.Helper()
	report, err := run(from, to)
	require.NoError(from.t, err)
	require.Empty(from.t, report.Findings)
	for _, row := range report.Rows {
		require.Equal(from.t, row.Source, row.Target, row.What)
	}
	require.True(from.t, report.IsEqual())
	return report
}

const (
	topics, readers = 4, 5
	eventsOfTopic   = 7
)

func topic(i int) bus.TopicName { return bus.TopicName(fmt.Sprintf("topic_%c", 'a'+i)) }

func reader(i int) bus.Token { return bus.Token(fmt.Sprintf("reader%d--1", i)) }

// topicsOf are the two topics that a reader has subscribed to.
func topicsOf(i int) []bus.TopicName {
	return []bus.TopicName{topic(i % topics), topic((i + 1) % topics)}
}

// fill gives a bus something of everything.
func (s *side) fill() {
	s.t.Helper()
	s.fillEvents()
	s.addLetterAndReplay(reader(1))
	s.addJobs()
	s.addLabels()
}

// fillEvents gives a bus subscribers, and events for them that were relayed and not delivered.
func (s *side) fillEvents() {
	s.t.Helper()
	ctx := s.t.Context()
	s.register(storetest.Publisher)
	history := int64(100)
	limits, err := store.NewHistoryLimits(&history, nil, nil)
	require.NoError(s.t, err)
	for i := range readers {
		s.register(reader(i))
		uuid, timeout, maxEvents := fmt.Sprint("uuid", i), time.Duration(0), 2
		require.NoError(s.t, s.Subscribe(ctx, reader(i), bus.Subscription{
			Topics: topicsOf(i), Callback: "https://reader.example/", UUID: &uuid, Timeout: &timeout, MaxEvents: &maxEvents,
		}, storetest.Start))
	}
	lanes, err := bus.ParseOption("keep_events", "1000")
	require.NoError(s.t, err)
	require.NoError(s.t, s.PatchSubscriber(ctx, reader(0), bus.Subscription{Options: map[string]string{"keep_events": lanes}}, storetest.Start))
	for i := range topics {
		home := s.Home(topic(i))
		s.publish(topic(i), 1, 1)
		require.NoError(s.t, store.NewHistory(home).Put(ctx, topic(i), storetest.Publisher, limits, storetest.Start))
		s.publish(topic(i), 2, eventsOfTopic)
	}
	require.NoError(s.t, storetest.NewWorker(s.Bus, s.clock).Relay(ctx, storetest.Start))
}

func (s *side) clock() time.Time { return storetest.Start }

func (s *side) register(token bus.Token) {
	s.t.Helper()
	name, _, _ := strings.Cut(string(token), "--")
	require.NoError(s.t, s.PutToken(s.t.Context(), token, bus.ClientName(name)))
}

// publish publishes the events first..last of a topic, with an idempotency key.
func (s *side) publish(topic bus.TopicName, first, last int) {
	s.t.Helper()
	p := storetest.Publication(s.t, topic, first, last, 0)
	p.IdempotencyKey = &bus.IdempotencyKey{Key: fmt.Sprint(topic, first), Digest: "d"}
	require.NoError(s.t, s.Home(topic).PublishAll(s.t.Context(), p)[0].Err)
}

// addLetterAndReplay writes a dead letter of a subscriber as deliveries do, and a replay as its
// steps do that has copied nothing yet.
func (s *side) addLetterAndReplay(token bus.Token) {
	s.t.Helper()
	p := s.Of(token).Partition()
	k, ctx := layout.Keys{Namespace: p.Namespace()}, s.t.Context()
	letter, packed := storetest.LetterID(1), string(storetest.Packed(s.t, topic(1), 1))
	replay := bus.ReplayID("AAAABBBBCCCCDDDDEEEE")
	require.NoError(s.t, p.Pipelined(ctx, "write", func(pipe rdb.Commands) {
		pipe.RPush(ctx, k.DeadLetter(letter), string(token), 1, 3, packed)
		pipe.HSet(ctx, k.DeadLetterCause(letter), "reason", "gone", "status", 410, "error", "", "note", "",
			"webhook_id", "", "revision", 0, "bytes", len(packed), "died_at", 1)
		pipe.ZIncrBy(ctx, k.DeadLetters(token), 1, string(letter))
		pipe.HIncrBy(ctx, k.DeadLetterEvents(), string(token), 1)
		pipe.HIncrBy(ctx, k.DeadLetterBytes(), string(token), int64(len(packed)))
		pipe.HSet(ctx, k.Replay(replay), "token", string(token), "topic", string(topicsOf(1)[0]), "next", 1, "to", 2,
			"copied", 0, "skipped", 0, "state", "running", "created_at", 1)
		pipe.SAdd(ctx, k.RunningReplays(), string(replay))
		pipe.SAdd(ctx, k.Replays(token), string(replay))
	}))
}

func jobType(i int) jobs.TypeName { return jobs.TypeName(fmt.Sprintf("type:%d", i)) }

// jobIDs are the ids of the jobs of a type, in order.
func jobIDs(i int) (ids []jobs.ID) {
	for n := range 3 {
		ids = append(ids, jobs.ID(fmt.Sprintf("00000000-0000-4000-8000-0000000000%d%d", i, n)))
	}
	return ids
}

const jobTypes = 4

// addJobs makes job types, one of them with a schedule, and jobs: queued, later and archived.
func (s *side) addJobs() {
	s.t.Helper()
	all, ctx := jobs.NewBus(s.partitions), s.t.Context()
	for i := range jobTypes {
		name := jobType(i)
		t := jobs.Type{
			Name: name, Strategy: jobs.AtLeastOnce, Attempts: 1, Concurrency: 1, Pull: true, Owner: "publisher",
			Timeout: time.Minute, Retention: time.Hour, CreatedAt: storetest.Start, UpdatedAt: storetest.Start,
		}
		if i == 0 {
			t.Schedule, t.Timezone, t.ScheduleData = "0 * * * *", "UTC", []byte(`{"of":"schedule"}`)
		}
		require.NoError(s.t, all.CreateType(ctx, t))
		var list []jobs.NewJob
		for n, id := range jobIDs(i) {
			list = append(list, jobs.NewJob{ID: id, Data: fmt.Appendf(nil, `{"n":%d}`, n)})
		}
		_, err := all.Of(name).Enqueue(ctx, name, list, "", storetest.Start)
		require.NoError(s.t, err)
	}
}

const machineYAML = `
state_machines:
  m:x:
    states:
      - {gate: g, triggers: [{interval: 20m}], exit_condition: metadata.go, next: end}
      - {gate: end, exit_condition: false}
`

// addLabels applies machines, and makes labels in two states.
func (s *side) addLabels() {
	s.t.Helper()
	f := s.machines()
	f.Apply(machineYAML)
	for i := range 9 {
		f.Create("m:x", label(i), fmt.Sprintf(`{"go": %v}`, i%3 == 0))
	}
}

func (s *side) machines() *machinestest.Fixture {
	client := outbound.New(outbound.Config{ConnectTimeout: time.Minute, Timeout: time.Minute, MaxIdle: 1, UserAgent: "test"}, time.Now)
	s.t.Cleanup(client.Close)
	return machinestest.Beside(s.t, s.partitions, client)
}

// deliver has workers deliver all that is due, and returns the numbers of the events that each
// subscriber gets of each topic, in order.
func (s *side) deliver(ctx context.Context) map[bus.Token]map[bus.TopicName][]int {
	s.t.Helper()
	got := map[bus.Token]map[bus.TopicName][]int{}
	worker := storetest.NewWorker(s.Bus, s.clock)
	require.NoError(s.t, worker.Relay(ctx, storetest.Start))
	for _, st := range s.All() {
		q := storetest.NewQueue(st, 1)
		for {
			_, err := q.Schedule(ctx, bus.QueueMain, storetest.Start.Add(time.Minute), 1000)
			require.NoError(s.t, err)
			taken, err := q.Acquire(ctx, bus.QueueMain, "AAAABBBBCCCCDDDDEEEE", bus.Failing, storetest.Start)
			require.NoError(s.t, err)
			if taken.Task == nil {
				break
			}
			delivery := taken.Task.Payload.(*store.Delivery)
			of := got[delivery.Subscriber]
			if of == nil {
				of = map[bus.TopicName][]int{}
				got[delivery.Subscriber] = of
			}
			for _, event := range delivery.Events {
				name := storetest.TopicOf(s.t, event)
				of[name] = append(of[name], storetest.Number(s.t, event))
			}
			_, err = q.Complete(ctx, taken.Task, queue.Result{Detail: store.DeliveryResult{Delivered: len(delivery.Events), Health: 1}}, storetest.Start)
			require.NoError(s.t, err)
		}
	}
	return got
}
