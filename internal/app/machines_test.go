package app_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
)

// TestWrongMachinesEndWeb requires an error of the configuration, for which programs end with 2.
func TestWrongMachinesEndWeb(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("state_machines:\n  m:\n    states: 7\n"), 0o600))
	for file, want := range map[string]string{wrong: wrong + ":3:", "missing.yaml": "missing.yaml"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		err = app.ServeWeb(t.Context(), app.Config{Machines: []string{file}}, slog.New(slog.DiscardHandler), listener)
		var refused *app.ConfigError
		require.ErrorAs(t, err, &refused)
		assert.Contains(t, err.Error(), want)
	}
}
