package store_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/deadletter"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// changeOptions gives a subscriber options, without which its batches are not settled in part, or
// takes them from it.
func (m *model) changeOptions(rt *rapid.T) {
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	options := map[string]string{"partial": "true", "dead_letters": ""}
	if rapid.IntRange(0, 3).Draw(rt, "without") == 0 {
		options["partial"] = ""
	}
	by := rapid.SampledFrom(m.tokens[client]).Draw(rt, "by")
	err := m.PatchSubscriber(m.T.Context(), by, bus.Subscription{Options: options}, storetest.After(m.ms))
	if m.topics[client] == nil {
		require.ErrorIs(rt, err, bus.ErrNotSubscribed)
		return
	}
	require.NoError(rt, err)
	if options["partial"] == "" {
		delete(m.options, client)
	} else {
		m.options[client] = true
	}
}

// settleSome has some events of a delivery be acknowledged, some die, and some stay.
func (m *model) settleSome(rt *rapid.T) {
	task := m.pick(rt)
	if task.Delivery.Plan == nil {
		m.acknowledged(rt, task)
		return
	}
	client, got := m.clients[task.Delivery.Subscriber], storetest.Numbers(m.T, task)
	var acknowledged, dying, staying []int
	for i := range got {
		to := rapid.SampledFrom([]*[]int{&acknowledged, &dying, &staying}).Draw(rt, "to")
		*to = append(*to, i)
	}
	slice := &store.SliceResult{KeepTurn: rapid.Bool().Draw(rt, "keep the turn")}
	result := storetest.Result{Delivered: len(acknowledged), Works: true, Health: 1, Slice: slice}
	for _, i := range dying {
		slice.Letters = append(slice.Letters, store.DeadLetter{
			ID: bus.NewBatchID(), Reason: bus.DiedRejected, Events: store.Ranges{{First: i, Last: i}},
		})
	}
	removed := slices.Sorted(slices.Values(slices.Concat(acknowledged, dying)))
	isAll := len(got) == task.Delivery.Total()
	switch {
	case isAll && len(staying) == 0:
	case isAll && rapid.Bool().Draw(rt, "the rest dies"):
		slice.Removed = store.RangesOf(removed)
		slice.Letters = append(slice.Letters, store.DeadLetter{ID: task.Delivery.Batch, Reason: bus.DiedOfAge})
		dying, staying = slices.Sorted(slices.Values(slices.Concat(dying, staying))), nil
	default:
		slice.Removed, result.RetryAt = store.RangesOf(removed), storetest.After(m.ms)
		left := task.Delivery.Total() - len(removed)
		slice.Findings = &store.Findings{Refusals: 1, Suspect: rapid.IntRange(0, left).Draw(rt, "suspect")}
	}
	owned, err := m.any(rt).CompleteAt(m.T.Context(), task, result, storetest.After(m.ms)) // the time of death
	require.NoError(rt, err)
	require.True(rt, owned)
	for _, i := range acknowledged {
		m.gone(rt, client, []int{got[i]})
	}
	for _, i := range dying {
		m.gone(rt, client, []int{got[i]})
		if m.topics[client] != nil { // nothing is kept for one that is gone
			m.dead[client] = append(m.dead[client], got[i])
		}
	}
	m.disordered[client] = true
}

// redeliverSome puts a subscriber's dead letters back into its queue, as many as one call does.
func (m *model) redeliverSome(rt *rapid.T) {
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	letters := deadletter.New(m.any(rt).Store)
	moved, err := letters.Redeliver(m.T.Context(), m.holder(client), deadletter.Selection{})
	if m.topics[client] == nil {
		require.Zero(rt, moved)
		return
	}
	require.NoError(rt, err)
	require.Zero(rt, moved.Remaining, "there are few")
	require.Equal(rt, len(m.dead[client]), moved.Events)
	m.queued[client] = append(m.queued[client], m.dead[client]...)
	delete(m.dead, client)
	m.disordered[client] = true
}
