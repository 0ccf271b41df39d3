package labelstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/machinestest"
)

func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		topic := "{topic: users, label: {data: id}}"
		var invalid *bus.Invalid
		require.ErrorAs(t, f.TryApply(strings.Replace(gates, "{metadata: go}", topic, 1)), &invalid)
		assert.Contains(t, invalid.Detail, "first has a trigger by topic")
		published := gates + `    publish: {topic: moves, url: "https://app.example/<label>"}`
		require.ErrorAs(t, f.TryApply(published), &invalid)
		assert.Contains(t, invalid.Detail, "moves are not published yet")
	})
}

func TestDefinitionsAreReplacedOnce(t *testing.T) {
	each(t, func(t *testing.T, f *machinestest.Fixture) {
		current, err := f.Definitions(t.Context())
		require.NoError(t, err)
		f.Apply(gates)
		_, err = f.Put(t.Context(), current, current, nil, f.Now)
		require.ErrorIs(t, err, machines.ErrChanged)
	})
}
