package store_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// rotating reports whether any token is being changed.
func (m *model) rotating() bool {
	return len(m.tokens[storetest.Alice])+len(m.tokens[storetest.Bob]) > 2
}

// maxTokens is how many tokens a client has at most: so it is also changed again before the first
// change is through.
const maxTokens = 3

// rotateSome begins to change a client's token, or asks again for one that is being changed.
func (m *model) rotateSome(rt *rapid.T) {
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	old := rapid.SampledFrom(m.tokens[client]).Draw(rt, "token")
	if old == m.holder(client) && len(m.tokens[client]) == maxTokens {
		rt.Skip("it has enough of them")
	}
	name, _, _ := strings.Cut(string(client), "--")
	fresh := bus.NewTokenLike(bus.ClientName(name))
	token, _, err := m.any(rt).RotateToken(m.T.Context(), old, fresh)
	require.NoError(rt, err)
	if old != m.holder(client) {
		require.Equal(rt, m.holder(client), token)
		return
	}
	require.Equal(rt, fresh, token)
	m.tokens[client], m.clients[token] = append(m.tokens[client], token), client
}

// endRotation relabels all batches of a token that is being changed, and may then remove the old
// token.
func (m *model) endRotation(rt *rapid.T) {
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	if len(m.tokens[client]) == 1 {
		rt.Skip("its token is not being changed")
	}
	i := rapid.IntRange(0, len(m.tokens[client])-2).Draw(rt, "token")
	old := m.tokens[client][i]
	m.any(rt).relabel(old)
	if rapid.Bool().Draw(rt, "keep") {
		return
	}
	require.NoError(rt, m.any(rt).FinishRotation(m.T.Context(), old))
	m.tokens[client] = slices.Delete(m.tokens[client], i, i+1)
}

// any returns the fixture of one of the workers.
func (m *model) any(rt *rapid.T) *fixture {
	return m.fixtures[rapid.IntRange(0, len(m.fixtures)-1).Draw(rt, "setting")]
}

func (m *model) publishSome(rt *rapid.T) {
	topic := rapid.SampledFrom(modelTopics).Draw(rt, "topic")
	n := rapid.IntRange(1, 6).Draw(rt, "events")
	p := store.Publication{Topic: topic, Publisher: storetest.Publisher, ReceivedAt: storetest.After(m.ms).UnixMilli()}
	for i := m.last + 1; i <= m.last+n; i++ {
		p.Events = append(p.Events, wiretest.Pack(m.T, topic, fmt.Sprintf(`{"type":%q,"url":"https://x.example/%d"}`, keyOf(i), i)))
	}
	require.NoError(rt, m.any(rt).Publish(m.T.Context(), p))
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
	m.AddSubscriber(rapid.SampledFrom(m.tokens[token]).Draw(rt, "by"), timeout, rapid.IntRange(1, modelMaxEvents).Draw(rt, "max"), topics...)
	m.topics[token] = topics
}

func (m *model) deleteSubscriber(rt *rapid.T) {
	m.skipIfCalm(rt)
	token := rapid.SampledFrom(modelTokens).Draw(rt, "token")
	err := m.DeleteSubscriber(m.T.Context(), rapid.SampledFrom(m.tokens[token]).Draw(rt, "by"))
	if m.topics[token] == nil {
		require.ErrorIs(rt, err, bus.ErrNotSubscribed)
		return
	}
	require.NoError(rt, err)
	_, err = store.NewLetters(m.Store).Trim(m.T.Context(), storetest.After(m.ms), func() bool { return true })
	require.NoError(rt, err)
	delete(m.topics, token)
	delete(m.dead, token)
	delete(m.options, token)
	for _, n := range m.queued[token] {
		if m.doubtful[token] == nil {
			m.doubtful[token] = map[int]bool{}
		}
		m.doubtful[token][n] = true
	}
	delete(m.queued, token)
}

func (m *model) retry(rt *rapid.T) {
	token := rapid.SampledFrom(modelTokens).Draw(rt, "token")
	err := store.EndThrottle(m.T.Context(), m.Store, rapid.SampledFrom(m.tokens[token]).Draw(rt, "by"))
	if m.topics[token] == nil {
		require.ErrorIs(rt, err, bus.ErrNotSubscribed)
		return
	}
	require.NoError(rt, err)
}

func (m *model) acquireSome(rt *rapid.T) {
	worker := rapid.SampledFrom(modelWorkers).Draw(rt, "worker")
	m.acquired(rt, worker, m.any(rt).Take(worker, m.ms))
}

// acquired checks the task that a worker got.
func (m *model) acquired(rt *rapid.T, worker bus.WorkerID, task *storetest.Task) {
	if before := m.held[worker]; before != nil && task != nil {
		// As when a response is lost, it is the same job, unless its subscriber is gone, or throttled
		// since another of its batches failed, or it was refused before and yields to another. A worker
		// with a smaller setting gives up batches that one with a larger has taken, and so does a worker
		// that meets a strict order.
		token := m.clients[before.Delivery.Subscriber]
		_, strict := m.strict[token]
		if len(m.fixtures) == 1 && !strict && before.Delivery.Batch != task.Delivery.Batch && m.throttled[token] <= m.ms && !m.refused[before.Delivery.Batch] {
			require.Nil(rt, m.topics[token])
		}
	}
	delete(m.held, worker)
	if task == nil {
		return
	}
	m.held[worker] = task
	m.ahead += len(task.Ahead)
	token := m.clients[task.Delivery.Subscriber]
	require.Equal(rt, m.holder(token), task.Delivery.Subscriber)
	require.LessOrEqual(rt, len(task.Delivery.Events), modelMaxEvents)
	inFlight := 0
	for _, other := range m.held {
		if m.clients[other.Delivery.Subscriber] == token {
			inFlight++
		}
	}
	if m.laned[token] {
		require.LessOrEqual(rt, inFlight, modelMaxLanes+m.maxInFlight)
	} else {
		require.LessOrEqual(rt, inFlight, m.maxInFlight)
	}
	m.requirePresent(rt, task)
	got := storetest.Numbers(m.T, task)
	require.True(rt, slices.IsSorted(got))
	if m.maxInFlight == 1 && !m.disordered[token] && len(m.doubtful[token]) == 0 {
		if m.laned[token] {
			m.requireOneOfAKey(rt, token, task)
			return
		}
		for _, ahead := range task.AheadTasks() {
			got = append(got, storetest.Numbers(m.T, ahead)...)
		}
		require.Equal(rt, m.queued[token][:len(got)], got, "the oldest come first")
	}
}

// requirePresent requires that a taken batch is of the present subscription: batches of an earlier
// one are dropped.
func (m *model) requirePresent(rt *rapid.T, task *storetest.Task) {
	token := m.clients[task.Delivery.Subscriber]
	for _, one := range append(task.AheadTasks(), task) {
		for _, n := range storetest.Numbers(m.T, one) {
			require.False(rt, m.doubtful[token][n], "event %d is of an earlier subscription of %s", n, token)
		}
	}
}

// pick takes one of the tasks that are held.
func (m *model) pick(rt *rapid.T) *storetest.Task {
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

func (m *model) acknowledged(rt *rapid.T, task *storetest.Task) {
	result := m.acknowledgement(rt, task)
	require.True(rt, m.any(rt).Complete(task, result))
	m.allGone(rt, task, result)
}

// acknowledgeAndAcquire is acknowledge and acquire in one round trip.
func (m *model) acknowledgeAndAcquire(rt *rapid.T) {
	task := m.pick(rt)
	result := m.acknowledgement(rt, task)
	owned, next, err := m.any(rt).CompleteAndAcquire(m.T.Context(), task, result, bus.Failing, storetest.After(m.ms))
	require.NoError(rt, err)
	require.True(rt, owned)
	m.allGone(rt, task, result)
	require.NoError(rt, next.Err)
	m.acquired(rt, task.Worker, next.Task)
}

// gone notes that a subscriber's events will not come up any more.
func (m *model) gone(rt *rapid.T, token bus.Token, got []int) {
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

// skipIfCalm skips a step that may upset the order.
func (m *model) skipIfCalm(rt *rapid.T) {
	if m.calm {
		rt.Skip("the order must hold")
	}
}

func (m *model) failSome(rt *rapid.T) {
	m.skipIfCalm(rt)
	task := m.failing(rt, m.pick(rt))
	wait := rapid.IntRange(0, 50).Draw(rt, "wait")
	result := storetest.Result{Health: -2, RetryAt: storetest.After(m.ms + wait)}
	result.Failure = rapid.SampledFrom([]bus.Failure{0, bus.EndpointFailure, bus.BatchFailure}).Draw(rt, "failure")
	if result.Failure != 0 { // an endpoint's failure may be laid to the batch
		m.refused[task.Delivery.Batch] = true
	}
	if throttle := rapid.IntRange(-50, 50).Draw(rt, "throttle"); throttle > 0 {
		result.ThrottledUntil = storetest.After(m.ms + throttle)
		client := m.clients[task.Delivery.Subscriber]
		m.throttled[client] = max(m.throttled[client], m.ms+throttle)
	}
	client := m.clients[task.Delivery.Subscriber]
	if _, was := m.strict[client]; was && task.Delivery.Basis != nil { // by the options that were read
		result.Slice = &store.SliceResult{KeepTurn: rapid.Bool().Draw(rt, "keep the turn")}
	}
	require.True(rt, m.any(rt).Complete(task, result))
	m.disordered[client] = true
}

// maxDropped is how many batches one call drops at most.
const maxDropped = 100

// dropOldest drops batches now and then: they must be the oldest that are not being delivered.
func (m *model) dropOldest(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "drop") > 0 {
		rt.Skip("not now")
	}
	ctx := m.T.Context()
	held := map[string]bool{}
	for _, task := range m.held {
		for _, one := range append(task.AheadTasks(), task) {
			held[string(one.Delivery.Batch)] = true
		}
	}
	var want []store.DroppedBatch
	for _, bid := range m.Redis.ZRange(ctx, "batches:index", 0, -1).Val() {
		if len(want) == maxDropped {
			break
		}
		if held[bid] {
			continue
		}
		batch := m.Redis.LRange(ctx, "batch:"+bid, 0, -1).Val()
		if len(batch) == 0 { // it was migrated back
			batch = m.Redis.LRange(ctx, "batches:"+bid, 0, -1).Val()
		}
		token, events := m.clients[bus.Token(batch[0])], batch[3:]
		want = append(want, store.DroppedBatch{Subscriber: m.holder(token), Events: len(events)})
		var got []int
		for _, event := range events {
			got = append(got, storetest.Number(m.T, wire.PackedEvent(event)))
		}
		m.gone(rt, token, got)
	}
	dropped, err := m.any(rt).OldestBatches().Drop(ctx, storetest.After(m.ms), nil)
	require.NoError(rt, err)
	require.Equal(rt, want, dropped)
}

func (m *model) scrub(rt *rapid.T) {
	if len(m.held) == 0 {
		rt.Skip("no task is held")
	}
	m.ms++
	_, err := m.Scrub(m.T.Context(), storetest.After(m.ms), bus.Queues[:]...)
	require.NoError(rt, err)
	for worker, task := range m.held {
		m.stale = append(append(m.stale, task), task.AheadTasks()...)
		delete(m.held, worker)
	}
	for _, task := range m.stale {
		require.False(rt, m.Complete(task, storetest.Done), "a scrubbed worker's completion is void")
	}
	if m.maxInFlight > 1 {
		m.disordered[storetest.Alice], m.disordered[storetest.Bob] = true, true
	}
}

// migrateBackAndForth moves all batches to the original's keys, and perhaps back. All workers count
// as dead.
func (m *model) migrateBackAndForth(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "migrate") > 0 {
		rt.Skip("not now")
	}
	if len(m.options) > 0 {
		rt.Skip("the original knows no options")
	}
	for _, topic := range modelTopics {
		m.removeHistory(rt, topic) // nor histories
	}
	report := func(u migrate.Unmoved) { require.Fail(rt, u.Key, u.Reason) }
	_, err := migrate.Run(m.T.Context(), m.any(rt).Partition, migrate.Options{Apply: true, Back: true, Report: report})
	if m.rotating() {
		require.ErrorContains(rt, err, "is being changed")
		return
	}
	require.NoError(rt, err)
	if rapid.Bool().Draw(rt, "forth") {
		_, err = migrate.Run(m.T.Context(), m.any(rt).Partition, migrate.Options{Apply: true, Report: report})
		require.NoError(rt, err)
	}
	for worker, task := range m.held {
		m.stale = append(m.stale, task)
		delete(m.held, worker)
	}
	m.disordered[storetest.Alice], m.disordered[storetest.Bob] = true, true
}

func (m *model) pass(rt *rapid.T) {
	m.ms += rapid.IntRange(1, 60).Draw(rt, "ms")
	m.MakeInstant(m.ms)
}
