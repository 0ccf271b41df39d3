package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/telemetry"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, slog.LevelWarn, true)
	log.Info("hidden")
	log.Warn("shown", "key", "value", "duration", 1500*time.Millisecond)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), "one line, of JSON")
	assert.Equal(t, "shown", line["msg"])
	assert.Equal(t, "value", line["key"])
	assert.InEpsilon(t, 1.5, line["duration"], 1e-9, "seconds")

	out.Reset()
	telemetry.NewLogger(&out, slog.LevelDebug, false).Debug("shown", "key", "value")
	assert.Contains(t, out.String(), "level=DEBUG msg=shown key=value\n")
}
