package store_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// newQuickModel makes a model of a quick subscriber with many waiting batches. A worker holds the
// first of them.
func newQuickModel(maxInFlight int, fixtures ...*fixture) *model {
	const waiting = 20
	m := newModel(maxInFlight, fixtures...)
	m.AddSubscriber(storetest.Alice, 0, 1, modelTopics...)
	m.topics[storetest.Alice] = modelTopics
	m.PublishEvents("widgets", 1, 1, m.ms)
	may := modelMaxAhead
	first := m.Take(modelWorkers[0], m.ms)
	require.True(m.T, m.Complete(first, storetest.Result{Delivered: 1, Ahead: &may}))
	m.PublishEvents("widgets", 2, 1+waiting, m.ms)
	m.last = 1 + waiting
	for n := 2; n <= m.last; n++ {
		m.queued[storetest.Alice] = append(m.queued[storetest.Alice], n)
	}
	for _, worker := range modelWorkers { // workers that come in vain put the rest into the lane
		if task := fixtures[0].Take(worker, m.ms); task != nil {
			m.held[worker] = task
		}
	}
	return m
}

// acknowledgement returns the result of a delivery of all taken events: of the batch, or of a
// slice. Some batches taken ahead may be done after it.
func (m *model) acknowledgement(rt *rapid.T, task *storetest.Task) storetest.Result {
	result := delivered(task)
	may := rapid.IntRange(0, modelMaxAhead).Draw(rt, "may be taken ahead")
	result.Ahead = &may
	ahead := task.AheadTasks()
	for _, done := range ahead[:rapid.IntRange(0, len(ahead)).Draw(rt, "done")] {
		result.Done = append(result.Done, delivered(done))
	}
	if sent := len(task.Delivery.Events); sent < task.Delivery.Total() {
		result.RetryAt = storetest.After(m.ms)
		result.Slice = &store.SliceResult{
			KeepTurn: true, Removed: store.Ranges{{First: 0, Last: sent - 1}}, Findings: &store.Findings{},
		}
	}
	return result
}

// delivered is the result of a task whose events were all acknowledged.
func delivered(task *storetest.Task) storetest.Result {
	return storetest.Result{Health: 1, Delivered: len(task.Delivery.Events)}
}

// allGone records that the events of a task, and of the batches done after it, will not come up
// again.
func (m *model) allGone(rt *rapid.T, task *storetest.Task, result storetest.Result) {
	client := m.clients[task.Delivery.Subscriber]
	m.gone(rt, client, storetest.Numbers(m.T, task))
	for _, done := range task.AheadTasks()[:len(result.Done)] {
		m.gone(rt, client, storetest.Numbers(m.T, done))
	}
	if m.maxInFlight > 1 && len(result.Done) < len(task.Ahead) { // others come later
		m.disordered[client] = true
	}
}

// failing returns the task that fails: the given one, or one that was taken ahead with it. The
// tasks before it are done.
func (m *model) failing(rt *rapid.T, task *storetest.Task) *storetest.Task {
	ahead := task.AheadTasks()
	at := rapid.IntRange(0, len(ahead)).Draw(rt, "fails")
	if at == 0 {
		return task
	}
	task.Ahead = slices.Delete(slices.Clone(task.Ahead), at-1, at)
	result := delivered(task)
	for _, done := range ahead[:at-1] {
		result.Done = append(result.Done, delivered(done))
	}
	require.True(rt, m.any(rt).Complete(task, result))
	m.allGone(rt, task, result)
	return ahead[at-1]
}
