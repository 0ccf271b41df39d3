package maintenance_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

func newRecorder(st *store.Store) *telemetry.Recorder {
	return telemetry.NewRecorder(telemetry.NewRegistry(), st, slog.New(slog.DiscardHandler))
}

// flushed flushes the recorder, and returns the counters in Redis.
func flushed(t *testing.T, st *store.Store, recorder *telemetry.Recorder) map[bus.Counter]int64 {
	t.Helper()
	recorder.Flush(t.Context())
	counters, err := inspect.Of(st).Counters(t.Context())
	require.NoError(t, err)
	return counters
}
