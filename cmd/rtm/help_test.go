package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"routemaster/internal/app"
)

// TestEveryCommandExplainsItself walks all commands.
func TestEveryCommandExplainsItself(t *testing.T) {
	var walk func(*cobra.Command) int
	walk = func(command *cobra.Command) (seen int) {
		for _, child := range command.Commands() {
			if !slices.Contains([]string{"help", "completion"}, child.Name()) { // cobra's own
				seen += 1 + walk(child)
			}
		}
		assert.NotEmpty(t, command.Short, command.CommandPath())
		if command.HasParent() {
			assert.Contains(t, command.Example, "  "+command.CommandPath(), "%s needs an example", command.CommandPath())
			var stdout, stderr bytes.Buffer
			assert.Equal(t, app.ExitOK, run(t.Context(), append(words(command), "--help"), &stdout, &stderr))
			assert.Contains(t, stdout.String(), command.Example)
			assert.Empty(t, stderr.String())
			stdout.Reset()
			assert.Equal(t, app.ExitUsage, run(t.Context(), append(words(command), "--nonsense"), &stdout, &stderr))
			assert.Contains(t, stderr.String(), `Run "`+command.CommandPath()+` --help" for usage.`)
			assert.Empty(t, stdout.String())
		}
		return seen
	}
	assert.GreaterOrEqual(t, walk(newRoot()), 15)
}

// words are the arguments that call a command.
func words(command *cobra.Command) (args []string) {
	for c := command; c.HasParent(); c = c.Parent() {
		args = append(args, c.Name())
	}
	slices.Reverse(args)
	return args
}

// A suggestion stood behind a printed \u0009.
func TestASuggestionIsIndented(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, app.ExitUsage, run(t.Context(), []string{"tokne"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "\n  token\n")
	assert.NotContains(t, stderr.String(), `\u`)
}
