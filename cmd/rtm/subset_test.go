package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

// optionsOf are the fields that rtm sub set sends for some flags.
func optionsOf(t *testing.T, args ...string) (map[string]any, error) {
	t.Helper()
	command := subSetRow.command(&busFlags{}, nil)
	require.NoError(t, command.ParseFlags(args))
	return optionFields(command.Flags())
}

func TestOptionsAreReadFromFlags(t *testing.T) {
	fields, err := optionsOf(t, "--max-bytes", "1MB", "--max-per-minute", "600", "--max-events-per-minute", "60000",
		"--lanes", "8", "--order-key", "/data/account", "--strict", "--partial=false", "--log-attempts", "all",
		"--keep-age", "1h", "--keep-events", "1000", "--gap-notices", "--dead-letters", "attempts=20,age=72h,keep-events=5,keep-bytes=64KB,keep-age=1h")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"max_bytes": 1_000_000, "max_requests_per_minute": 600, "max_events_per_minute": 60000,
		"lanes": 8, "order_key": "/data/account", "strict_order": true, "partial": false,
		"keep_age": int64(3_600_000), "keep_events": 1000, "gap_notices": true,
		"log_attempts": "all", "dead_letters": map[string]any{
			"attempts": 20, "age": int64(259_200_000), "keep_events": 5, "keep_bytes": 64_000, "keep_age": int64(3_600_000),
		},
	}, fields)

	fields, err = optionsOf(t, "--max-bytes", "off", "--dead-letters", "off", "--log-attempts", "off", "--lanes", "off", "--order-key", "off")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"max_bytes": nil, "dead_letters": nil, "log_attempts": nil, "lanes": nil, "order_key": nil}, fields)

	fields, err = optionsOf(t, "--max-bytes", "2048")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"max_bytes": 2048}, fields)

	for _, wrong := range [][]string{
		{}, {"--max-bytes", "1GB"}, {"--max-bytes", "-"}, {"--max-per-minute", "fast"}, {"--lanes", "1.5"}, {"--dead-letters", "attempts=x"},
		{"--dead-letters", "age=3 days"}, {"--dead-letters", "colour=red"}, {"--dead-letters", ""}, {"--max-bytes", "9999999999"}, {"--keep-age", "1"},
	} {
		_, err := optionsOf(t, wrong...)
		assert.ErrorAs(t, err, new(usageError), "%q", wrong)
	}
	for wrong, right := range map[string]string{
		"sub set --strict=maybe": "--strict must be true or false", "sub set --lanes x": "--lanes must be an integer or off",
		"sub pause --for 2d":      "--for must be a duration such as 30s, 90m or 48h",
		"topic history a --age x": "--age must be a duration", "topic history a --events x": "--events must be an integer",
	} {
		var stderr bytes.Buffer
		status := run(t.Context(), append(strings.Fields(wrong), "-b", "http://127.0.0.1:1", "-t", "x"), t.Output(), &stderr)
		assert.Equal(t, app.ExitUsage, status, wrong)
		assert.Contains(t, stderr.String(), "rtm: "+right)
	}
	assert.Equal(t, app.ExitUsage, run(t.Context(), []string{"sub", "set", "-b", "http://127.0.0.1:1", "-t", "x"}, t.Output(), t.Output()))
}

func TestTimesInTablesBearTheirZone(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	at := time.Date(2026, 1, 31, 23, 10, 7, 0, time.UTC)
	for zone, want := range map[*time.Location]string{
		time.UTC: "2026-01-31 23:10:07 +00:00", time.FixedZone("", 3600): "2026-02-01 00:10:07 +01:00",
	} {
		time.Local = zone
		assert.Equal(t, want, clock(at))
	}
	assert.Equal(t, "-", clock(time.Time{}))
}
