package store

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
)

// TestHotScriptsMakeFewFunctions counts the functions that every run creates: Redis creates them
// anew each time. Keys are written inline where they are needed, except one whose function has a
// condition.
func TestHotScriptsMakeFewFunctions(t *testing.T) {
	t.Parallel()
	for file, most := range map[string]int{
		"lua/topic_publish.lua": 30, "../queue/lua/acquire.lua": 39, "../queue/lua/complete_acquire.lua": 60,
	} {
		entry, err := os.ReadFile(file)
		require.NoError(t, err)
		always, _, seldom := strings.Cut(rdb.ComposeScript(strings.Join(Library, ""), string(entry)), "\nmakers = function()\n")
		require.True(t, seldom, "%s has makers", file)
		made := regexp.MustCompile(`(?m)^(?:local )?function ([\w.]+)`).FindAllStringSubmatch(always, -1)
		assert.LessOrEqual(t, len(made), most, file)
		for _, function := range made {
			if strings.HasSuffix(function[1], "_key") {
				assert.Equal(t, "current_of_lane_key", function[1], file)
			}
		}
	}
}
