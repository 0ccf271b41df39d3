package store_test

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
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
	m.patch(rt, client, options)
}

// changeLanes changes the lanes of a subscriber.
func (m *model) changeLanes(rt *rapid.T) {
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	options := map[string]string{"lanes": "", "order_key": ""}
	if lanes := rapid.IntRange(1, modelMaxLanes).Draw(rt, "lanes"); lanes > 1 {
		options = map[string]string{"lanes": fmt.Sprint(lanes), "order_key": `"/type"`}
	}
	m.patch(rt, client, options)
}

// changeStrictness makes the order of a subscriber strict, or ends that.
func (m *model) changeStrictness(rt *rapid.T) {
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	strict := rapid.Bool().Draw(rt, "strict")
	options := map[string]string{"strict_order": ""}
	if strict {
		options["strict_order"] = "true"
	}
	m.patch(rt, client, options)
	m.strict[client] = strict
}

// patch changes options of a subscriber.
func (m *model) patch(rt *rapid.T, client bus.Token, options map[string]string) {
	by := rapid.SampledFrom(m.tokens[client]).Draw(rt, "by")
	err := m.PatchSubscriber(m.T.Context(), by, bus.Subscription{Options: options}, storetest.After(m.ms))
	if m.topics[client] == nil {
		require.ErrorIs(rt, err, bus.ErrNotSubscribed)
		return
	}
	require.NoError(rt, err)
	if lanes, changes := options["lanes"]; changes {
		m.laned[client] = m.laned[client] || lanes != ""
		m.ordered[client] = m.last
	}
	m.noteOptions(client)
}

// noteOptions notes whether a subscriber has options, or lanes of earlier options.
func (m *model) noteOptions(client bus.Token) {
	if m.Redis.Exists(m.T.Context(), "options:"+string(m.holder(client))).Val() == 0 {
		delete(m.options, client)
		return
	}
	m.options[client] = true
}

// requireOneOfAKey requires that no two deliveries in flight for a subscriber have events of one
// key, and that the oldest events of each key come first. It considers events that were published
// since the subscriber's lanes were changed.
func (m *model) requireOneOfAKey(rt *rapid.T, client bus.Token, task *storetest.Task) {
	inFlight := map[bus.EventType]bool{}
	for _, other := range m.held {
		if other != task && m.clients[other.Delivery.Subscriber] == client {
			for _, n := range storetest.Numbers(m.T, other) {
				inFlight[keyOf(n)] = inFlight[keyOf(n)] || n > m.ordered[client]
			}
		}
	}
	queued := map[bus.EventType][]int{}
	for _, n := range m.queued[client] {
		if n > m.ordered[client] {
			queued[keyOf(n)] = append(queued[keyOf(n)], n)
		}
	}
	for _, n := range storetest.Numbers(m.T, task) {
		if n <= m.ordered[client] {
			continue
		}
		key := keyOf(n)
		require.False(rt, inFlight[key], "two of a key in flight")
		require.Equal(rt, queued[key][0], n, "the oldest of a key come first")
		queued[key] = queued[key][1:]
	}
}

// keyOf is the type of a model's event, by which it gets its lane.
func keyOf(n int) bus.EventType { return modelTypes[n%len(modelTypes)] }

// settleSome acknowledges some events of a delivery, lets some die, and keeps some.
func (m *model) settleSome(rt *rapid.T) {
	m.skipIfCalm(rt)
	task := m.pick(rt)
	if task.Delivery.Basis == nil {
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
	m.skipIfCalm(rt)
	client := rapid.SampledFrom(modelTokens).Draw(rt, "client")
	letters := store.NewLetters(m.any(rt).Store)
	moved, err := letters.Redeliver(m.T.Context(), m.holder(client), store.LetterSelection{})
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
