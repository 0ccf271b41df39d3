package condition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/condition"
)

const metadata = `{
	"yes": true, "no": false, "nothing": null, "zero": 0, "one": 1, "five": 5, "half": 0.5, "text": "gold", "empty": "",
	"digits": "5", "list": [2, 4, "a", null, [1], {"k": 1.0}], "none": [], "object": {"k": 1, "gold": null, "deep": {"er": "x"}},
	"blank": {}, "huge": 123456789012345678901234567890, "huge_also": 123456789012345678901234567890.0,
	"huger": 123456789012345678901234567891, "tiny": 1e-400, "vast": 1e400, "größe": 180, "with-hyphen": 1, "in": 1, "2nd": 2,
	"hour": 3600, "started": "2026-11-20T18:00:00Z", "started_in_rome": "2026-11-20T19:00:00.5+01:00", "day": "2026-11-20",
	"time": "18:30:00", "umlaut": "ä", "line": "a\nb", "pair": "😀"}`

var errFeed = errors.New("status 503")

// environment is a label's, at 14:05:09 on a Monday in Rome, five hours after it entered its state.
func environment(t testing.TB) *condition.Environment {
	rome, err := time.LoadLocation("Europe/Rome")
	require.NoError(t, err)
	prefs := decode(t, `{"frequency": "daily", "limit": 3, "nested": {"on": true}}`)
	now := time.Date(2026, 11, 23, 14, 5, 9, 999, rome)
	return &condition.Environment{
		Metadata: decode(t, metadata),
		Feed: func(name string) (any, error) {
			switch name {
			case "prefs":
				return prefs, nil
			case "broken":
				return nil, errFeed
			default:
				return nil, condition.ErrUnknown
			}
		},
		EnteredState:  now.Add(-5 * time.Hour).UTC(),
		PreviousState: "welcome",
		Now:           now,
	}
}

func decode(t testing.TB, text string) (value any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&value))
	return value
}

func parse(t testing.TB, source string) *condition.Condition {
	t.Helper()
	c, err := condition.Parse(source)
	require.NoError(t, err, "%q", source)
	return c
}

// requireAll evaluates expressions, which all are true or all false, and their opposites.
func requireAll(t *testing.T, want bool, table string) {
	env := environment(t)
	for source := range strings.Lines(table) {
		source = strings.TrimSpace(source)
		for _, source := range []string{source, "not not " + source, "(" + source + "\n)", "true and (" + source + "\n)"} {
			holds, err := parse(t, source).Evaluate(env)
			if assert.NoError(t, err, source) {
				assert.Equal(t, want, holds, source)
			}
		}
		holds, err := parse(t, "not ("+source+"\n)").Evaluate(env)
		require.NoError(t, err)
		assert.Equal(t, !want, holds, "not (%s)", source)
	}
}

func TestTrue(t *testing.T) { requireAll(t, true, strings.TrimSpace(whatIsTrue)) }

func TestFalse(t *testing.T) { requireAll(t, false, strings.TrimSpace(whatIsFalse)) }

func TestTheExampleOfTheReadMe(t *testing.T) {
	c := parse(t, "metadata.yes and\n12h has passed since system.entered_state and\nsystem.time >= 18:30")
	env := environment(t)
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {4*time.Hour + 25*time.Minute, false}, {24 * time.Hour, false}, {28*time.Hour + 25*time.Minute, true}, {34 * time.Hour, false}} {
		later := *env
		later.Now = env.Now.Add(step.after)
		holds, err := c.Evaluate(&later)
		require.NoError(t, err)
		assert.Equal(t, step.want, holds, "%v later", step.after)
	}
}

func TestFailures(t *testing.T) {
	env := environment(t)
	for source, want := range failures {
		_, err := parse(t, source).Evaluate(env)
		var failure *condition.EvaluationError
		if assert.ErrorAs(t, err, &failure, source) {
			assert.EqualError(t, err, want)
			assert.Equal(t, source, failure.Source)
		}
	}
}

func TestOpensWithTime(t *testing.T) {
	for source, want := range map[string]bool{
		"3d has passed since system.entered_state":                                  true,
		`metadata.plan = "gold" or (metadata.a and 3d was passed since metadata.b)`: true,
		"metadata.a and system.time >= 18:30":                                       true,
		"not system.now > history.entered_state":                                    true,
		"3d has not passed since system.entered_state":                              false,
		"not 3d has passed since system.entered_state":                              false,
		"system.entered_state = metadata.system and history.previous_state":         false,
		"true": false,
	} {
		assert.Equal(t, want, parse(t, source).OpensWithTime(), source)
	}
}

func TestFeeds(t *testing.T) {
	env := environment(t)
	_, err := parse(t, "feeds.broken.a = 1").Evaluate(env)
	require.ErrorIs(t, err, errFeed)
	require.NotErrorIs(t, err, condition.ErrUnknown)

	c := parse(t, "metadata.yes and feeds.other.a is defined")
	_, err = c.Evaluate(env)
	require.ErrorIs(t, err, condition.ErrUnknown)
	env.Feed = nil
	_, err = c.Evaluate(env)
	require.ErrorIs(t, err, condition.ErrUnknown, "nothing is asked")
	holds, err := parse(t, "metadata.no and feeds.other.a").Evaluate(env)
	require.NoError(t, err)
	assert.False(t, holds, "it does not depend on the feed")
}

func TestEvaluationStopsWhenItIsDecided(t *testing.T) {
	env := environment(t)
	var asked []string
	env.Feed = func(name string) (any, error) {
		asked = append(asked, name)
		return map[string]any{"on": name == "on"}, nil
	}
	for source, want := range map[string]string{
		"feeds.on.on and feeds.off.on and feeds.third":         "on off",
		"feeds.off.on or feeds.on.on or feeds.third":           "off on",
		"(feeds.off.on and feeds.third) or not feeds.off.on":   "off off",
		"not (feeds.on.on or feeds.third) and feeds.third":     "on",
		"feeds.off.on = true and feeds.third":                  "off",
		"metadata.five = 5 or (metadata.five < null and true)": "",
	} {
		asked = nil
		_, err := parse(t, source).Evaluate(env)
		require.NoError(t, err, source)
		assert.Equal(t, want, strings.Join(asked, " "), source)
	}
}

func TestAnEnvironmentWithoutAnything(t *testing.T) {
	env := &condition.Environment{}
	for source, want := range map[string]bool{
		"metadata": false, "metadata.a.b is defined": false, "metadata = null": true,
		"history.previous_state is not defined": true, "system.time = 0:00": true,
	} {
		holds, err := parse(t, source).Evaluate(env)
		require.NoError(t, err)
		assert.Equal(t, want, holds, source)
	}
}

func TestHostileSourcesAreCheap(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("(", n) + "true" + strings.Repeat(")", n) }
	holds, err := parse(t, deep(100)).Evaluate(environment(t))
	require.NoError(t, err)
	assert.True(t, holds)
	_, err = condition.Parse(deep(101))
	assert.ErrorContains(t, err, "line 1, column 101: parentheses nest at most 100 deep\n")
	_, err = condition.Parse(strings.Repeat("(", 16<<10))
	assert.ErrorContains(t, err, "parentheses nest at most 100 deep\n")
	_, err = condition.Parse(strings.Repeat("true ", 4<<10))
	assert.ErrorContains(t, err, "there are 20480 bytes: at most 16384 are allowed\n")
	assert.Less(t, len(err.Error()), 500)

	for _, source := range []string{
		strings.Repeat("not ", 4000) + "true",
		strings.Repeat("1=1 and ", 2000) + "true",
		strings.Repeat("metadata.a=1 or ", 1000) + "true",
		"not " + strings.Repeat("(not ", 99) + "true" + strings.Repeat(")", 99),
		strings.Repeat("((1=1)=(", 49) + "true" + strings.Repeat("))", 49),
	} {
		holds, err := parse(t, source).Evaluate(environment(t))
		require.NoError(t, err)
		assert.True(t, holds, source)
	}
}

func TestPaths(t *testing.T) {
	c := parse(t, "metadata.größe = feeds.prefs.limit and # metadata.comment\n (system.now and \"metadata.x\" is in metadata.größe)")
	var got []string
	for _, p := range c.Paths() {
		require.Equal(t, p.String(), c.String()[p.Offset:][:len(p.String())])
		got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p))
	}
	assert.Equal(t, []string{"1:1 metadata.größe", "1:18 feeds.prefs.limit", "2:3 system.now", "2:37 metadata.größe"}, got)
}

func TestParsePath(t *testing.T) {
	for text, want := range map[string]string{
		"metadata.five": "5", "feeds.prefs.frequency": `"daily"`, "history.previous_state": `"welcome"`, "metadata.x.y": "null",
		"system.time": "50709", "history.entered_state": `"2026-11-23T08:05:09.000000999Z"`,
	} {
		p, err := condition.ParsePath(text)
		require.NoError(t, err)
		require.NoError(t, p.Validate())
		assert.Equal(t, text, p.String())
		value, err := p.Lookup(environment(t))
		require.NoError(t, err)
		got, err := json.Marshal(value)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), text)
	}
	for text, want := range map[string]string{
		"metadata.text.x": "line 1, column 1: metadata.text is a string, not an object: metadata.text.x",
		"feeds.broken.a":  "line 1, column 1: the feed broken failed (status 503): feeds.broken.a",
	} {
		p, err := condition.ParsePath(text)
		require.NoError(t, err)
		_, err = p.Lookup(environment(t))
		assert.EqualError(t, err, want)
		_, err = condition.Path{Names: p.Names}.Lookup(environment(t))
		assert.EqualError(t, err, want, "made by hand")
	}
}

func TestParsePathRefuses(t *testing.T) {
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "foo.bar+", "a b", `a."b"`, "a\n", "a\xff"} {
		_, err := condition.ParsePath(text)
		var failure *condition.SyntaxError
		require.ErrorAs(t, err, &failure, "%q", text)
		assert.Equal(t, text, failure.Source)
	}
	for _, text := range []string{"go", "foo.bar", "feeds", "system", "history", "system.today", "history.now", "system.now.x"} {
		p, err := condition.ParsePath(text)
		require.NoError(t, err, "a trigger may have it")
		require.Error(t, p.Validate(), text)
		_, err = p.Lookup(environment(t))
		require.Error(t, err)
	}
}

func TestEqual(t *testing.T) {
	for _, pair := range [][2]any{
		{1, 1.0}, {true, 1}, {0, false}, {int64(7), json.Number("7.0")}, {uint64(7), json.Number("70e-1")}, {nil, nil},
		{[]any{1, "a"}, []any{true, "a"}}, {map[string]any{"a": 1}, map[string]any{"a": json.Number("1")}},
	} {
		assert.True(t, condition.Equal(pair[0], pair[1]), "%v", pair)
		assert.True(t, condition.Equal(pair[1], pair[0]), "%v", pair)
	}
	for _, pair := range [][2]any{
		{1, "1"}, {nil, 0}, {nil, false}, {"", nil}, {[]any{}, map[string]any{}}, {[]any{1}, []any{1, 1}}, {[]any{1}, []any{2}},
		{map[string]any{"a": nil}, map[string]any{"b": nil}}, {map[string]any{"a": 1}, map[string]any{}}, {0.1, json.Number("0.11")},
		{struct{}{}, 0}, {map[string]any{"a": 1}, map[string]any{"a": 2}},
	} {
		assert.False(t, condition.Equal(pair[0], pair[1]), "%v", pair)
		assert.False(t, condition.Equal(pair[1], pair[0]), "%v", pair)
	}
}
