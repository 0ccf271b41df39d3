package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestRandomStepsAgainstAModel drives random sequences of steps and compares them with what must come of
// them: every event acknowledged once, in order unless a delivery failed, and the layout sound after
// every step.
func TestRandomStepsAgainstAModel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, server *storetest.Server) {
		for _, abreast := range []int{1, 2} {
			f := newFixture(t, server, func(o *store.Options) { o.Abreast = abreast })
			rapid.Check(t, func(rt *rapid.T) {
				require.NoError(rt, f.raw.FlushAll(t.Context()).Err())
				f.register()
				m := newModel(f, abreast)
				rt.Repeat(map[string]func(*rapid.T){
					"publish":       m.publishSome,
					"subscribe":     m.changeSubscription,
					"unsubscribe":   m.deleteSubscriber,
					"acquire":       m.acquireSome,
					"acknowledge":   m.acknowledge,
					"fail":          m.failSome,
					"scrub":         m.scrub,
					"let time pass": m.pass,
					"":              m.check,
				})
				m.drain(rt)
			})
		}
	})
}

var (
	modelTopics  = []bus.TopicName{"gadgets", "widgets"}
	modelTokens  = []bus.Token{alice, bob}
	modelWorkers = []bus.WorkerID{"w1", "w2", "w3"}
)

const modelMaxEvents = 4

type model struct {
	*fixture
	abreast int
	ms      int
	last    int // number of the last event
	topics  map[bus.Token][]bus.TopicName
	// queued are the events that must still be acknowledged, in order, by subscriber.
	queued map[bus.Token][]int
	// doubtful are events of a deleted subscriber that need not come up, but may.
	doubtful map[bus.Token]map[int]bool
	// disordered are the subscribers with a delivery that failed.
	disordered map[bus.Token]bool
	// throttled is until when (ms after start) a subscriber is left alone.
	throttled map[bus.Token]int
	held      map[bus.WorkerID]*store.Task
	// stale are the tasks of workers that were scrubbed meanwhile.
	stale []*store.Task
}

func newModel(f *fixture, abreast int) *model {
	return &model{
		fixture: f, abreast: abreast, topics: map[bus.Token][]bus.TopicName{}, queued: map[bus.Token][]int{},
		doubtful: map[bus.Token]map[int]bool{}, disordered: map[bus.Token]bool{}, throttled: map[bus.Token]int{}, held: map[bus.WorkerID]*store.Task{},
	}
}

func (m *model) publishSome(rt *rapid.T) {
	topic := rapid.SampledFrom(modelTopics).Draw(rt, "topic")
	n := rapid.IntRange(1, 6).Draw(rt, "events")
	m.publish(topic, m.last+1, m.last+n, m.ms)
	for range n {
		m.last++
		for token, topics := range m.topics {
			if slices.Contains(topics, topic) {
				m.queued[token] = append(m.queued[token], m.last)
			}
		}
	}
}

func (m *model) changeSubscription(rt *rapid.T) {
	token := rapid.SampledFrom(modelTokens).Draw(rt, "token")
	topics := rapid.SliceOfDistinct(rapid.SampledFrom(modelTopics), rapid.ID).Draw(rt, "topics")
	timeout := time.Duration(rapid.SampledFrom([]int{0, 10, 100}).Draw(rt, "timeout")) * time.Millisecond
	m.subscribe(token, timeout, rapid.IntRange(1, modelMaxEvents).Draw(rt, "max"), topics...)
	m.topics[token] = topics
}

func (m *model) deleteSubscriber(rt *rapid.T) {
	token := rapid.SampledFrom(modelTokens).Draw(rt, "token")
	err := m.DeleteSubscriber(m.t.Context(), token)
	if m.topics[token] == nil {
		require.ErrorIs(rt, err, bus.ErrNotSubscribed)
		return
	}
	require.NoError(rt, err)
	delete(m.topics, token)
	for _, n := range m.queued[token] {
		if m.doubtful[token] == nil {
			m.doubtful[token] = map[int]bool{}
		}
		m.doubtful[token][n] = true
	}
	delete(m.queued, token)
}

func (m *model) acquireSome(rt *rapid.T) {
	worker := rapid.SampledFrom(modelWorkers).Draw(rt, "worker")
	task := m.acquire(worker, m.ms)
	if before := m.held[worker]; before != nil && task != nil {
		// As when an answer is lost: it is the same job, unless its subscriber is gone, or left alone since another of
		// its batches failed.
		token := before.Delivery.Subscriber
		if before.Delivery.Batch != task.Delivery.Batch && m.throttled[token] <= m.ms {
			require.Nil(rt, m.topics[token])
		}
	}
	delete(m.held, worker)
	if task == nil {
		return
	}
	m.held[worker] = task
	token := task.Delivery.Subscriber
	require.LessOrEqual(rt, len(task.Delivery.Events), modelMaxEvents)
	abreast := 0
	for _, other := range m.held {
		if other.Delivery.Subscriber == token {
			abreast++
		}
	}
	require.LessOrEqual(rt, abreast, m.abreast)
	got := numbers(m.t, task)
	require.True(rt, slices.IsSorted(got))
	if m.abreast == 1 && !m.disordered[token] && len(m.doubtful[token]) == 0 {
		require.Equal(rt, m.queued[token][:len(got)], got, "the oldest come first")
	}
}

// pick takes one of the tasks that are held.
func (m *model) pick(rt *rapid.T) *store.Task {
	var workers []bus.WorkerID
	for _, worker := range modelWorkers {
		if m.held[worker] != nil {
			workers = append(workers, worker)
		}
	}
	if len(workers) == 0 {
		rt.Skip("no task is held")
	}
	worker := rapid.SampledFrom(workers).Draw(rt, "worker")
	task := m.held[worker]
	delete(m.held, worker)
	return task
}

func (m *model) acknowledge(rt *rapid.T) {
	task := m.pick(rt)
	m.acknowledged(rt, task)
}

func (m *model) acknowledged(rt *rapid.T, task *store.Task) {
	token, got := task.Delivery.Subscriber, numbers(m.t, task)
	require.True(rt, m.settle(task, store.Outcome{Health: 1}))
	for _, n := range got {
		i := slices.Index(m.queued[token], n)
		if i < 0 {
			require.True(rt, m.doubtful[token][n], "event %d was acknowledged twice, or is not %s's", n, token)
			delete(m.doubtful[token], n)
			continue
		}
		m.queued[token] = slices.Delete(m.queued[token], i, i+1)
	}
}

func (m *model) failSome(rt *rapid.T) {
	task := m.pick(rt)
	wait := rapid.IntRange(0, 50).Draw(rt, "wait")
	outcome := store.Outcome{Health: -2, RetryAt: after(m.ms + wait)}
	if throttle := rapid.IntRange(-50, 50).Draw(rt, "throttle"); throttle > 0 {
		outcome.ThrottledUntil = after(m.ms + throttle)
		m.throttled[task.Delivery.Subscriber] = m.ms + throttle
	}
	require.True(rt, m.settle(task, outcome))
	m.disordered[task.Delivery.Subscriber] = true
}

func (m *model) scrub(rt *rapid.T) {
	if len(m.held) == 0 {
		rt.Skip("no task is held")
	}
	m.ms++
	_, err := m.ScrubQueues(m.t.Context(), after(m.ms), bus.Queues[:]...)
	require.NoError(rt, err)
	for worker, task := range m.held {
		m.stale = append(m.stale, task)
		delete(m.held, worker)
	}
	for _, task := range m.stale {
		require.False(rt, m.settle(task, store.Done), "a scrubbed worker's settle is void")
	}
	if m.abreast > 1 {
		m.disordered[alice], m.disordered[bob] = true, true
	}
}

func (m *model) pass(rt *rapid.T) {
	m.ms += rapid.IntRange(1, 60).Draw(rt, "ms")
	m.schedule(m.ms)
}

func (m *model) check(rt *rapid.T) {
	violations, err := m.Check(m.t.Context())
	require.NoError(rt, err)
	require.Empty(rt, violations)
}

// drain delivers all there is, and then nothing may be left.
func (m *model) drain(rt *rapid.T) {
	for len(m.held) > 0 {
		for worker, task := range m.held {
			delete(m.held, worker)
			m.acknowledged(rt, task)
		}
	}
	for range 3 { // what waits for its turn comes up by itself at the latest
		m.ms += 1_000_000
		m.schedule(m.ms)
		for task := m.acquire("w1", m.ms); task != nil; task = m.acquire("w1", m.ms) {
			m.acknowledged(rt, task)
		}
	}
	for token, left := range m.queued {
		require.Empty(rt, left, "lost for %s", token)
	}
	keys, err := m.raw.Keys(m.t.Context(), "batch*").Result()
	require.NoError(rt, err)
	require.Empty(rt, keys)
	m.check(rt)
}
