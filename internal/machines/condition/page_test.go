package condition_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/condition"
)

var (
	pageMetadata = regexp.MustCompile("(?s)<!-- metadata of the examples -->\n```json\n(.*?)```")
	pageExample  = regexp.MustCompile("(?m)^\\| `(.+)` \\| (true|false|fails|refused) \\|$")
)

// TestTheExamplesOfThePage evaluates the examples in docs/machines.md.
func TestTheExamplesOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/machines.md")
	require.NoError(t, err)
	metadata := pageMetadata.FindSubmatch(page)
	require.NotNil(t, metadata)
	env := environment(t)
	env.Metadata = decode(t, string(metadata[1]))
	seen := map[string]int{}
	for _, row := range pageExample.FindAllStringSubmatch(string(page), -1) {
		assert.Equal(t, row[2], resultOf(row[1], env), row[1])
		seen[row[2]]++
	}
	assert.Len(t, seen, 4, "each result is shown")
	assert.Greater(t, seen["true"], 10)
}

// resultOf evaluates a condition and returns its result as the page writes it.
func resultOf(source string, env *condition.Environment) string {
	c, err := condition.Parse(source)
	if err != nil {
		return "refused"
	}
	switch holds, err := c.Evaluate(env); {
	case err != nil:
		return "fails"
	case holds:
		return "true"
	}
	return "false"
}
