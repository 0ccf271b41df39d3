package store_test

import (
	"errors"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// changeHistory makes a topic keep a history of a few events, or none. The check of the layout
// examines the history.
func (m *model) changeHistory(rt *rapid.T) {
	topic := rapid.SampledFrom(modelTopics).Draw(rt, "topic")
	keep := rapid.Int64Range(0, 5).Draw(rt, "kept events")
	if keep == 0 {
		m.removeHistory(rt, topic)
		return
	}
	limits := store.HistoryLimits{Events: keep, Bytes: rapid.Int64Range(0, 1).Draw(rt, "limited bytes") * 200}
	err := store.NewHistory(m.Store).Put(m.T.Context(), topic, "", limits, storetest.After(m.ms))
	require.True(rt, err == nil || errors.Is(err, bus.ErrTopicUnknown), "%v", err)
}

func (m *model) removeHistory(rt *rapid.T, topic bus.TopicName) {
	err := store.NewHistory(m.Store).Delete(m.T.Context(), topic, "")
	require.True(rt, err == nil || errors.Is(err, bus.ErrTopicUnknown) || errors.Is(err, store.ErrNoHistory), "%v", err)
}
