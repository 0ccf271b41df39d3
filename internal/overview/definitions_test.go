package overview

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEachFigureHasOneDefinition(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Definitions {
		assert.False(t, seen[d.Figure], "%s is defined twice", d.Figure)
		assert.True(t, strings.HasSuffix(d.Is, "."), d.Figure)
		seen[d.Figure] = true
	}
	for _, state := range []State{Gone, PausedState, Stalled, Failing, Behind, Flaky, Idle, OK, Unclaimed, Unheard, Quiet} {
		assert.True(t, seen[string(state)], state)
	}
}
