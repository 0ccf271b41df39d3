package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/wire"
)

// GapIn returns the content of a gap notice, such as "3 events in 2 batches, 0 to 5: autodrop", and
// when it was made. Times are in ms after [Start].
func GapIn(t testing.TB, task *Task) (told string, at int64) {
	t.Helper()
	require.NotNil(t, task)
	require.Len(t, task.Delivery.Events, 1)
	require.True(t, task.Delivery.Basis.Gap)
	text, err := wire.AppendEventJSON(nil, task.Delivery.Events[0])
	require.NoError(t, err)
	var event struct {
		Topic, Type, URL string
		T                int64
		Data             struct {
			Events, Batches, Since, Until int64
			Reason                        string
		}
	}
	require.NoError(t, json.Unmarshal(text, &event), "%s", text)
	assert.Equal(t, "gap", event.Type)
	assert.Empty(t, event.Topic+event.URL)
	gap, start := event.Data, Start.UnixMilli()
	return fmt.Sprintf("%d events in %d batches, %d to %d: %s",
		gap.Events, gap.Batches, gap.Since-start, gap.Until-start, gap.Reason), event.T - start
}
