package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnknownVariablesAreNamedWithTheNearest(t *testing.T) {
	values := map[string]string{
		"ROUTEMASTER_WORKER_THREAD": "1", "ROUTEMASTER_REDIS_ULR": "1", "ROUTEMASTER_PORT": "8080", "ROUTEMASTER_FORCE_SSL": "no",
		"ROUTEMASTER_TIMEOUT": "1", "ROUTEMASTER_TOKEN": "1", "ROUTEMASTER_OUR_REDIS": "redis://x", "REDIS_ENV_KEY": "ROUTEMASTER_OUR_REDIS",
		"ROUTEMASTER_SERVICE_HOST": "10.0.0.1", "ROUTEMASTER_SERVICE_PORT_HTTP": "1", "ROUTEMASTER_PORT_17890_TCP_ADDR": "10.0.0.1",
		"ROUTEMASTER_WEB_PORT": "tcp://10.0.0.1:80", "OTHER": "1",
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	assert.Equal(t, []unknownVariable{
		{"ROUTEMASTER_FORCE_SSL", "FORCE_SSL"},
		{"ROUTEMASTER_PORT", "PORT"},
		{"ROUTEMASTER_REDIS_ULR", "ROUTEMASTER_REDIS_URL"},
		{"ROUTEMASTER_WORKER_THREAD", "ROUTEMASTER_WORKER_THREADS"},
	}, unknownVariables(names, func(name string) string { return values[name] }))
}

// TestEveryVariableInTheSourcesIsKnown keeps the list true when a program reads a new one.
func TestEveryVariableInTheSourcesIsKnown(t *testing.T) {
	known := knownVariables()
	variables, found := regexp.MustCompile(`"(ROUTEMASTER_[A-Z_]*[A-Z])"`), 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range variables.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.Contains(t, known, match[1], path)
		}
		return err
	}))
	assert.Greater(t, found, 30)
}
