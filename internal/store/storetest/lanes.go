package storetest

import (
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

// NumberIn returns the number of an event, see [Packed], in a lane of a subscriber.
func (b *Bus) NumberIn(token bus.Token, topic bus.TopicName, lane int) (number int) {
	b.T.Helper()
	lanes, err := b.Lanes(b.T.Context(), token)
	require.NoError(b.T, err)
	require.Less(b.T, lane, lanes.Count)
	for lanes.Of(Packed(b.T, topic, number)) != lane {
		number++
	}
	return number
}
