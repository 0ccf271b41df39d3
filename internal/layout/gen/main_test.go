package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/layout"
)

const root = "../../.."

// TestWhatIsGeneratedIsFresh compares the generated files with the ones that are checked in.
func TestWhatIsGeneratedIsFresh(t *testing.T) {
	files, err := generate(root)
	require.NoError(t, err)
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s is not what the table says: run go generate ./internal/layout", path)
	}
}

// TestPagesHaveAllKeys holds that each group has its table on its page and, if it has hashes with
// fields, these on the page of fields.
func TestPagesHaveAllKeys(t *testing.T) {
	for _, g := range layout.Groups {
		text, err := os.ReadFile(filepath.Join(root, g.Page))
		require.NoError(t, err)
		assert.Contains(t, string(text), "<!-- end of keys of "+g.Name+" -->")
		page, err := os.ReadFile(filepath.Join(root, layout.FieldPage))
		require.NoError(t, err)
		if listed := fields(g); listed != "" {
			assert.Contains(t, string(page), strings.TrimSpace(listed), g.Name)
		}
	}
}
