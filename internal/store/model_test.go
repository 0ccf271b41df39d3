package store_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// seedsOf returns the seeds of random steps for a test that does not use rapid, from rapid's
// environment variables: first is RAPID_SEED, or drawn, and count is RAPID_CHECKS, or otherwise.
func seedsOf(t *testing.T, otherwise uint64) (first, count uint64) {
	first, _ = strconv.ParseUint(os.Getenv("RAPID_SEED"), 0, 64)
	if first == 0 {
		first = uint64(rand.Uint32())
	}
	count, err := strconv.ParseUint(os.Getenv("RAPID_CHECKS"), 0, 64)
	if err != nil {
		count = otherwise
	}
	t.Logf("RAPID_SEED=%d", first)
	return first, count
}

// TestRandomStepsAgainstAModel drives random sequences of steps and compares the results with a
// model: every event acknowledged once, in order unless a delivery failed, and the layout sound all
// the time.
func TestRandomStepsAgainstAModel(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		t.Parallel()
		one := newFixtureInFlight(t, server, 1)
		two := newFixtureInFlight(t, server, 2)
		one.Queue = storetest.NewQueueAhead(one.Store, 1, modelMaxAhead)
		two.Queue = storetest.NewQueueAhead(two.Store, 2, modelMaxAhead)
		steps, ahead := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			require.NoError(rt, server.Raw.FlushAll(t.Context()).Err())
			one.Register()
			// In the third model workers differ in their settings, as during a rolling change of them. In
			// the fourth nothing upsets the order. In the fifth some batches were refused. In the others a
			// worker holds one of several waiting batches, with those taken ahead.
			models := []func() *model{
				func() *model { return newModel(1, one) }, func() *model { return newModel(2, two) },
				func() *model { return newModel(2, one, two) }, func() *model { return newCalmModel(one) },
				func() *model { return newRefusedModel(one) },
				func() *model { return newQuickModel(1, one) }, func() *model { return newQuickModel(2, two) },
				func() *model { return newQuickModel(2, one, two) },
			}
			m := models[rapid.IntRange(0, len(models)-1).Draw(rt, "model")]()
			m.checkAll = rapid.IntRange(0, 9).Draw(rt, "check all steps") == 0
			defer func() { steps, ahead = steps+m.steps, ahead+m.ahead }()
			rt.Repeat(map[string]func(*rapid.T){
				"publish":       m.publishSome,
				"subscribe":     m.changeSubscription,
				"unsubscribe":   m.deleteSubscriber,
				"retry":         m.retry,
				"acquire":       m.acquireSome,
				"acknowledge":   m.acknowledge,
				"and go on":     m.acknowledgeAndAcquire,
				"fail":          m.failSome,
				"options":       m.changeOptions,
				"lanes":         m.changeLanes,
				"strict":        m.changeStrictness,
				"history":       m.changeHistory,
				"settle":        m.settleSome,
				"redeliver":     m.redeliverSome,
				"drop":          m.dropOldest,
				"scrub":         m.scrub,
				"let time pass": m.pass,
				"deliver all":   m.deliverAll,
				"migrate":       m.migrateBackAndForth,
				"rotate":        m.rotateSome,
				"end rotation":  m.endRotation,
				"":              m.check,
			})
			m.drain(rt)
		})
		t.Logf("%d steps, %d tasks taken ahead", steps, ahead)
		if steps > 1000 { // with the race detector there are few
			require.Positive(t, ahead)
		}
	})
}

var (
	modelTopics  = []bus.TopicName{"gadgets", "widgets"}
	modelTypes   = []bus.EventType{bus.Create, bus.Update, bus.Delete, bus.Noop}
	modelTokens  = []bus.Token{storetest.Alice, storetest.Bob}
	modelWorkers = []bus.WorkerID{"w1", "wA", "wI"} // with room between for their spares
)

const (
	modelMaxEvents = 4
	modelMaxLanes  = 3
	modelMaxAhead  = 3
)

type model struct {
	*fixture
	// fixtures belong to the workers, with one batch of a subscriber in flight or with two.
	fixtures    []*fixture
	maxInFlight int
	// checkAll is whether the invariants are checked after every step.
	checkAll bool
	steps    int
	ahead    int // tasks that were taken ahead
	ms       int
	last     int // number of the last event
	topics   map[bus.Token][]bus.TopicName
	// queued are the events that must still be acknowledged, in order, by subscriber.
	queued map[bus.Token][]int
	// doubtful are events of a deleted subscriber: those in flight may still be acknowledged, the
	// others are never taken.
	doubtful map[bus.Token]map[int]bool
	// disordered are the subscribers with a delivery that failed.
	disordered map[bus.Token]bool
	// throttled is until when (ms after start) a subscriber is throttled.
	throttled map[bus.Token]int
	// refused are the batches that an endpoint has refused. Others are delivered before these.
	refused map[bus.BatchID]bool
	held    map[bus.WorkerID]*storetest.Task
	// options are the subscribers with options, dead the events in dead letters.
	options map[bus.Token]bool
	dead    map[bus.Token][]int
	// laned are the subscribers that have several lanes, or have had since the queue was empty.
	laned map[bus.Token]bool
	// ordered is the number of the last event before the lanes of a subscriber were changed: the
	// order is promised for those behind it.
	ordered map[bus.Token]int
	// strict is whether a subscriber has strict order, for subscribers that ever changed it.
	strict map[bus.Token]bool
	// calm means that no step may upset the order of deliveries.
	calm bool
	// stale are the tasks of workers that were scrubbed meanwhile.
	stale []*storetest.Task
	// tokens are the tokens of each client, by its first token. The last one has the subscription, the
	// others are being changed.
	tokens map[bus.Token][]bus.Token
	// clients has the client that has, or had, a token.
	clients map[bus.Token]bus.Token
}

func newModel(maxInFlight int, fixtures ...*fixture) *model {
	m := &model{
		// Some minutes ago, so that the checks see entries that wait for their turn as put off for long,
		// and migrate sees all workers as dead.
		ms:      sinceStart() - 360_000,
		fixture: fixtures[0], fixtures: fixtures, maxInFlight: maxInFlight, topics: map[bus.Token][]bus.TopicName{}, queued: map[bus.Token][]int{},
		doubtful: map[bus.Token]map[int]bool{}, disordered: map[bus.Token]bool{}, throttled: map[bus.Token]int{},
		refused: map[bus.BatchID]bool{}, held: map[bus.WorkerID]*storetest.Task{},
		options: map[bus.Token]bool{}, dead: map[bus.Token][]int{}, laned: map[bus.Token]bool{}, ordered: map[bus.Token]int{}, strict: map[bus.Token]bool{},
		tokens: map[bus.Token][]bus.Token{}, clients: map[bus.Token]bus.Token{},
	}
	for _, token := range modelTokens {
		m.tokens[token], m.clients[token] = []bus.Token{token}, token
	}
	return m
}

// newCalmModel makes a model in which nothing upsets the order, and whose subscribers have lanes.
func newCalmModel(f *fixture) *model {
	m := newModel(1, f)
	m.calm = true
	for _, token := range modelTokens {
		m.AddSubscriber(token, 0, modelMaxEvents, modelTopics...)
		m.SetOption(token, "order_key", `"/type"`)
		m.SetOption(token, "lanes", "3")
		m.topics[token], m.options[token], m.laned[token] = modelTopics, true, true
	}
	return m
}

// newRefusedModel makes a model of a subscriber with strict order, whose endpoint had refused some
// batches before: one is tried again, and the others wait for that.
func newRefusedModel(f *fixture) *model {
	const refused = 3
	m := newModel(1, f)
	m.AddSubscriber(storetest.Alice, 0, 1, modelTopics...)
	m.topics[storetest.Alice], m.disordered[storetest.Alice] = modelTopics, true
	for m.last < refused { // each with a UID of its own, for these are compared
		m.last++
		m.PublishEvents("widgets", m.last, m.last, m.ms)
		m.queued[storetest.Alice] = append(m.queued[storetest.Alice], m.last)
		task := m.Take(modelWorkers[0], m.ms)
		m.refused[task.Delivery.Batch] = true
		m.fail(task, bus.BatchFailure, m.ms, 1, 0)
	}
	m.setOptions(storetest.Alice, map[string]string{"strict_order": "true"})
	m.options[storetest.Alice], m.strict[storetest.Alice] = true, true
	m.ms++
	m.held[modelWorkers[0]] = m.dueAt(m.ms)
	require.Nil(m.T, m.Take(modelWorkers[1], m.ms))
	return m
}

// holder is the token that a client's subscription belongs to.
func (m *model) holder(client bus.Token) bus.Token {
	return m.tokens[client][len(m.tokens[client])-1]
}

// check runs after every step. The invariants are looked at after each step of some sequences, and
// now and then in the others, since that takes longer than all the rest.
func (m *model) check(rt *rapid.T) {
	m.steps++
	if m.checkAll || rapid.IntRange(0, 8).Draw(rt, "check") == 0 {
		m.requireSound(rt)
	}
}

func (m *model) requireSound(rt *rapid.T) {
	findings, err := storetest.Check(m.T.Context(), m.Store)
	require.NoError(rt, err)
	for _, v := range findings {
		require.Contains(rt, v.Problem, "of the Ruby original")
	}
}

// longestWait is how long (ms) at most a subscription's timeout or a failure may delay a delivery.
const longestWait = 100

// deliverAll delivers everything, and then nothing may be left: not even a batch that waits for its
// turn and depends on a wake.
func (m *model) deliverAll(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "deliver all") > 0 {
		rt.Skip("not now")
	}
	m.drain(rt)
}

// How long (ms) a refused batch waits while another has its turn, and how often, at most.
const (
	retryPause     = 1000
	maxRetryPauses = 60
)

// deliverDue delivers all that is due.
func (m *model) deliverDue(rt *rapid.T) {
	m.MakeInstant(m.ms)
	// One call passes over a hundred jobs at most, and then returns none, though there may be more.
	for calls := 0; m.Redis.LLen(m.T.Context(), "jobs:instant:main").Val() > 0; calls++ {
		require.Less(rt, calls, 10_000, "jobs that nobody can take")
		if task := m.any(rt).Take(modelWorkers[0], m.ms); task != nil {
			m.requirePresent(rt, task)
			m.acknowledged(rt, task)
		}
	}
}

// drain also ends a round.
func (m *model) drain(rt *rapid.T) {
	for _, worker := range modelWorkers {
		if task := m.held[worker]; task != nil {
			delete(m.held, worker)
			m.acknowledged(rt, task)
		}
	}
	m.ms += longestWait
	m.deliverDue(rt)
	// Refused batches are retried one at a time; so are batches of a subscriber that left and came
	// back.
	for pauses := 0; pauses < maxRetryPauses && m.Redis.Exists(m.T.Context(), "batches:index").Val() > 0; pauses++ {
		m.ms += retryPause
		m.deliverDue(rt)
	}
	for token, left := range m.queued {
		require.Empty(rt, left, "lost for %s, or waiting for nothing", token)
	}
	keys, err := m.Redis.Keys(m.T.Context(), "batch*").Result()
	require.NoError(rt, err)
	require.Empty(rt, keys)
	m.requireSound(rt)
	require.Empty(rt, m.Redis.Keys(m.T.Context(), "jobs:lane:*").Val())
	for _, token := range modelTokens {
		options := "options:" + string(m.holder(token))
		require.False(rt, m.Redis.HExists(m.T.Context(), options, "past_lanes").Val(), "lanes of which nothing is left")
		if !m.Redis.HExists(m.T.Context(), options, "lanes").Val() {
			delete(m.laned, token)
		}
		m.noteOptions(token)
		dead, _ := m.Redis.HGet(m.T.Context(), "deadletters:events", string(m.holder(token))).Int()
		require.Equal(rt, len(m.dead[token]), dead, "the dead of %s", token)
	}
	m.doubtful, m.disordered = map[bus.Token]map[int]bool{}, map[bus.Token]bool{}
}
