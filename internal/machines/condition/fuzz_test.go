package condition_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/condition"
)

func FuzzParse(f *testing.F) {
	for _, table := range []string{whatIsTrue, whatIsFalse} {
		for source := range strings.Lines(table) {
			f.Add(source)
		}
	}
	for source := range failures {
		f.Add(source)
	}
	for _, source := range []string{"(a = ?\n", "a and b or c", "\"\\ud83d", "ä\xff", "# a\r\n (", "not (not (1 or 2)) and\v3 is in # 4\n metadata"} {
		f.Add(source)
	}
	env := environment(f)
	f.Fuzz(func(t *testing.T, source string) {
		c, err := condition.Parse(source)
		if err != nil {
			requirePlaced(t, source, err)
			return
		}
		require.Equal(t, source, c.String())
		holds, failure := c.Evaluate(env)
		x := c.Explain(env)
		require.Equal(t, failure == nil, x.Value != nil)
		require.NotEmpty(t, x.Parts)
		for _, part := range x.Parts {
			requireSamePart(t, env, part)
		}
		opposite, err := condition.Parse("not (" + source + "\n)")
		if err != nil { // it is too deep, or too long
			return
		}
		denied, err := opposite.Evaluate(env)
		require.Equal(t, failure == nil, err == nil)
		require.Equal(t, failure == nil, denied != holds)
	})
}

// requirePlaced requires that a syntax error marks a part of the source.
func requirePlaced(t *testing.T, source string, err error) {
	t.Helper()
	var failure *condition.SyntaxError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, source, failure.Source)
	require.LessOrEqual(t, failure.Offset+failure.Length, len(source))
	before := source[:failure.Offset]
	require.Equal(t, 1+strings.Count(before, "\n"), failure.Line)
	require.Equal(t, 1+utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]), failure.Column)
	require.Len(t, strings.Split(err.Error(), "\n"), 3)
}

// requireSamePart requires that a part of an explanation is a condition of its own, with the same
// truth.
func requireSamePart(t *testing.T, env *condition.Environment, part condition.Part) {
	t.Helper()
	c, err := condition.Parse(part.Text)
	require.NoError(t, err)
	again := c.Explain(env)
	require.Equal(t, part.Text, again.Parts[0].Text)
	require.Equal(t, part.Value, again.Parts[0].Value)
	require.Equal(t, part.Error == "" && !part.Unknown, again.Value != nil)
}
