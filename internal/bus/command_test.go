package bus_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
)

func TestCommand(t *testing.T) {
	for want, got := range map[string]string{
		"`rtm doctor`":                               bus.Command("doctor"),
		"`rtm label show trial ann`":                 bus.Command("label show", "trial", "ann"),
		"`rtm label list --errored trial`":           bus.Command("label list --errored", "trial"),
		"`rtm label set 'a b' ann PATH=VALUE`":       bus.Command("label set", "a b", "ann", "PATH=VALUE"),
		"`rtm label show trial -- --json`":           bus.Command("label show", "trial", "--json"),
		"`rtm label show -- -a -b`":                  bus.Command("label show", "-a", "-b"),
		"`rtm dead list --subscriber=shop`":          bus.Command("dead list --subscriber=", "shop"),
		"`rtm dead list --subscriber=-x:y`":          bus.Command("dead list --subscriber=", "-x:y"),
		"`rtm label show '' 'it'\\''s \"$HOME\"'`":   bus.Command("label show", "", `it's "$HOME"`),
		"`rtm job type del a`, `rtm job type del b`": bus.Commands("job type del", []string{"b", "a"}),
	} {
		assert.Equal(t, want, got)
	}
	assert.Regexp(t, "^(`rtm topic del t`, ){10}…$", bus.Commands("topic del", slices.Repeat([]string{"t"}, 11)))
}

// TestShellWord requires that a shell reads quoted words back.
func TestShellWord(t *testing.T) {
	for _, word := range []string{"", "plain", "a b", "it's", `"`, `\`, "$HOME", "`id`", "*", "~", "#x", "a;b", "ä", "a=b", "!1", "-n"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s.' x "+bus.ShellWord(word)).Output()
		require.NoError(t, err)
		assert.Equal(t, word, strings.TrimSuffix(strings.TrimPrefix(string(out), "x."), "."))
	}
}
