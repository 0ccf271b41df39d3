// Package wiretest packs events for tests of other packages.
package wiretest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/wire"
)

// Pack packs the event of a topic whose JSON a publisher would send. Its timestamp is 0 unless the
// JSON has one.
func Pack(t testing.TB, topic bus.TopicName, json string) wire.PackedEvent {
	t.Helper()
	events, err := wire.ParseEvents([]byte(json), topic, 0, wire.Limits{Events: 1, Data: 1 << 20})
	require.NoError(t, err)
	return events[0]
}
