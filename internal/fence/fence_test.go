package fence_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/fence"
)

// TestLuaHasTheSameWords as the package.
func TestLuaHasTheSameWords(t *testing.T) {
	lua, err := os.ReadFile("lua/fence.lua")
	require.NoError(t, err)
	for _, line := range []string{
		fmt.Sprintf("local MOVE = '%s' ", fence.Field),
		fmt.Sprintf("return { 0, '%s' }", fence.Refusal),
		fmt.Sprintf("string.find(mark, '%s', 1, true) == 1", fence.Closed),
	} {
		assert.Contains(t, string(lua), line)
	}
}
