package definition_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
)

func TestLayers(t *testing.T) {
	base := `
state_machines:
  m:
    feeds: [{name: f, url: "http://base"}]
    publish: {topic: t, url: "https://base.example/<label>"}
    states: [{gate: g, exit_condition: "true"}]
  n:
    states: [{gate: g, exit_condition: true}]
`
	top := `
state_machines:
  m:
    feeds: ~
    publish: {url: "https://top.example/<label>"}
    states: [{gate: h, exit_condition: no}]
`
	definitions := load(t, top, base)
	m := definitions.Machine("m")
	assert.Empty(t, m.Feeds, "null overrides")
	assert.Equal(t, "https://top.example/<label>", m.Publish.URL)
	assert.EqualValues(t, "t", m.Publish.Topic, "maps merge")
	require.Len(t, m.States, 1, "lists replace")
	assert.EqualValues(t, "h", m.First().Name)
	assert.NotNil(t, definitions.Machine("n"))
	assert.Equal(t, definitions, load(t, top, base, "state_machines: ~"), "null of a later layer is nothing")

	assert.Equal(t, []string{"2:13: this is a string, and a list in b.yaml:6: layers must have the same kind of value, or null in the earlier one"},
		problems(t, "state_machines: {m: {states:\n            a}}", base)[:1])
}

// TestNullRemoves removes keys of later layers by a null of an earlier one, for each kind of value
// that a map may have.
func TestNullRemoves(t *testing.T) {
	base := `
placeholders: {host: app.example, unused: a}
plugins: {logging: []}
state_machines:
  m:
    feeds: [{name: f, url: "http://base"}]
    webhooks: [{match: ^https, headers: {X-A: b}}]
    publish: {topic: t, url: "https://{placeholders.host}/<label>", publisher: alice}
    states: [{gate: g, exit_condition: "true"}]
  n: {clients: [alice], states: [{gate: g, exit_condition: "true"}]}
`
	for _, layers := range [][]string{
		{"state_machines: {m: null}", base},
		{"state_machines: {m: ~}", "{}", base},
		{"{}", "state_machines: {m: ~}", base},
		{"state_machines: {m: ~}", "state_machines: {m: ~}", base},
		{"state_machines: {m: ~}", "state_machines: {m: {feeds: ~}}", base},
	} {
		definitions := load(t, layers...)
		require.Len(t, definitions.Machines, 1, layers)
		assert.EqualValues(t, "n", definitions.Machines[0].Name)
		merged, err := definition.Merged(files(layers...)...)
		require.NoError(t, err)
		assert.Equal(t, definitions, load(t, string(merged)), "%s", merged)
	}
	again := load(t, "state_machines: {m: {states: [{gate: h, exit_condition: false}]}}", "state_machines: {m: ~}", base).Machine("m")
	assert.EqualValues(t, "h", again.First().Name)
	assert.Nil(t, again.Publish, "nothing comes back from behind a null")

	assert.NotEmpty(t, load(t, "{placeholders: {unused: ~}, plugins: {logging: ~}}", base).Machines)
	assert.NotEmpty(t, load(t, "{placeholders: ~, plugins: ~, state_machines: {m: ~}}", base).Machines)
	m := load(t, "state_machines: {m: {feeds: ~, webhooks: ~, publish: {publisher: ~}}, n: {clients: ~}}", base)
	assert.Empty(t, m.Machine("m").Feeds)
	assert.Empty(t, m.Machine("m").Webhooks)
	assert.EqualValues(t, machines.DefaultPublisher, m.Machine("m").Publish.Publisher)
	assert.Nil(t, m.Machine("n").Clients)

	for text, want := range map[string]string{
		"state_machines: {o: ~}":           "1:21: a machine is a map with states; this is null",
		"placeholders: {other: ~}":         "1:23: a placeholder must be a string or a number; this is null",
		"placeholders: {host: ~}":          "there is nothing at {placeholders.host}",
		"state_machines: {n: {states: ~}}": "a machine needs states",
		"state_machines: ~":                "a definition needs state_machines",
	} {
		assert.Contains(t, strings.Join(problems(t, text, base), "\n"), want)
	}
}

func TestPlaceholders(t *testing.T) {
	webhook := func(text string) string {
		return "state_machines: {m: {states: [{action: a, webhook: \"" + text + "\", next: b}, {gate: b, exit_condition: true}]}}"
	}
	placeholders := "placeholders: {host: '{placeholders.name}.example:{placeholders.port}', name: app, port: 8080, map: {a: b}, odd: '{a'}\n"
	for text, want := range map[string]string{
		"http://{placeholders.host}/{placeholders.map.a}{placeholders.name}": "http://app.example:8080/bapp",
		"http://a/}{":                  "http://a/}{",
		"http://a/{placeholders.odd}}": "http://a/{a}",
	} {
		m := load(t, strings.Replace(placeholders, "map: {a: b}, ", "", 1)+strings.Replace(webhook(text), "{placeholders.map.a}", "b", 1)).Machine("m")
		assert.Equal(t, want, m.First().Action.Webhook)
	}
	for text, want := range map[string]string{
		"{nothing}":                 "there is nothing at {nothing}: a placeholder is a path from the top",
		"{}":                        "there is nothing at {}",
		"a{2,3}":                    "there is nothing at {2,3}",
		"{placeholders.}":           "there is nothing at {placeholders.}",
		"{placeholders.name.a}":     "there is nothing at {placeholders.name.a}",
		"{placeholders}":            "{placeholders} is a map: a placeholder stands for a string or a number",
		"{state_machines.m.states}": "{state_machines.m.states} is a list",
		"{placeholders.yes}":        "{placeholders.yes} is true or false",
		"{placeholders.circle}":     "{placeholders.circle} stands for what it is in",
		"{placeholders.two}":        "",
	} {
		text := "placeholders: {name: app, yes: yes, circle: '{placeholders.two}', two: 'x{placeholders.circle}'}\n" + webhook(text)
		assert.Contains(t, strings.Join(problems(t, text), "\n"), want, text)
	}
	assert.Len(t, problems(t, "{placeholders: {a: '{placeholders.b}', b: '{placeholders.a}'}, state_machines: {}}"), 1, "a circle is one problem")
}

func TestMerged(t *testing.T) {
	odd := `
placeholders: {'yes': "no", n: 0x1F, date: 2020-01-01, plain: !!str off, "<<": 'a
  b', "5": "5", null: x}
state_machines:
  m: {states: [{gate: g, exit_condition: "true", next: {type: context, path: metadata.a, default: g, destinations: [
    {value: "off", state: g}, {value: off, state: g}, {value: "31", state: g}, {value: 0x1F, state: g}, {value: ~, state: g},
    {value: "null", state: g}, {value: 1_000, state: g}, {value: 0o17, state: g}, {value: 2020-01-01, state: g}, {value: 1e4, state: g}]}}]}
`
	odd = strings.Replace(odd, ", null: x", "", 1)
	for name, layers := range map[string][]string{
		"example":  {example(t, "overrides.yaml"), example(t, "drip-feed.yaml")},
		"odd":      {odd, "state_machines: {n: {<<: {states: [{gate: a, exit_condition: false}]}}}"},
		"override": {"state_machines: {m: {feeds: ~}}", odd},
	} {
		t.Run(name, func(t *testing.T) {
			merged, err := definition.Merged(files(layers...)...)
			require.NoError(t, err)
			assert.Equal(t, load(t, layers...), load(t, string(merged)), "%s", merged)
		})
	}
}

func TestMergedKeepsOneFileAsItIs(t *testing.T) {
	merged, err := definition.Merged(files(example(t, "drip-feed.yaml"))...)
	require.NoError(t, err)
	assert.Equal(t, example(t, "drip-feed.yaml"), string(merged))
}

func TestMergedRefuses(t *testing.T) {
	for _, layers := range [][]string{{}, {"a: b: c"}, {"a: 1", "a: b: c"}, {"{a: 1, a: 2}"}, {"a: 1", "a: []"}} {
		_, err := definition.Merged(files(layers...)...)
		var errs definition.Errors
		require.ErrorAs(t, err, &errs, "%q", layers)
		assert.Len(t, errs, 1)
	}
}

// TestMergeKeys compares with the results of the original's loader: the last of several << lines
// wins, the first of several maps in one line wins, and a key of the map itself wins over all.
func TestMergeKeys(t *testing.T) {
	const maps = "placeholders: {a: &a {x: 1, y: 1, z: 1}, b: &b {x: 2, y: 2}, m: {z: 3, "
	for lines, want := range map[string]string{
		"<<: *a, <<: *b}": "{x: 2, y: 2, z: 3}", "<<: *b, <<: *a}": "{x: 1, y: 1, z: 3}",
		"<<: [*a, *b]}": "{x: 1, y: 1, z: 3}", "<<: [*b, *a], <<: {y: 4}}": "{x: 2, y: 4, z: 3}",
	} {
		assert.Equal(t, mergedJSON(t, "placeholders: {a: {x: 1, y: 1, z: 1}, b: {x: 2, y: 2}, m: "+want+"}"), mergedJSON(t, maps+lines+"}"), lines)
	}
}

// mergedJSON is a document after its merge keys, with all keys sorted.
func mergedJSON(t *testing.T, text string) string {
	t.Helper()
	merged, err := definition.Merged(files(text, "{}")...)
	require.NoError(t, err)
	var decoded any
	require.NoError(t, yaml.Unmarshal(merged, &decoded))
	written, err := json.Marshal(decoded)
	require.NoError(t, err)
	return string(written)
}

// TestPreambles loads documents with preambles. Problems have their places in the file.
func TestPreambles(t *testing.T) {
	machine := "state_machines: {m: {states: [{gate: g, exit_condition: x}]}}"
	for preamble, lines := range map[string]int{
		"%YAML 1.1\n---\n": 2, "%YAML 1.2\n---\n": 2, "%YAML 1.3 # new\r\n---\n": 2, "\ufeff": 0, "\ufeff%YAML 1.2\n---\n": 2,
		"# first\n\n%TAG ! !x\n%YAML\t1.2 \n---\n": 5, "\ufeff# a comment\n": 1, "---\n": 1,
	} {
		got := problems(t, preamble+machine)
		require.Len(t, got, 1, "%q: %q", preamble, got)
		assert.Regexp(t, fmt.Sprintf(`^%d:\d+: exit_condition: `, 1+lines), got[0], "%q", preamble)
	}
	for _, preamble := range []string{"%YAML 2.0\n---\n", "%YAML 1.2\n%YAML 1.2\n---\n", "%YAML 1\n---\n", "{} %YAML 1.2\n---\n"} {
		assert.Regexp(t, `this is not YAML|a file has one document`, problems(t, preamble+machine), "%q", preamble)
	}
}

// FuzzLoad wants problems to have places in the file, and merged layers to be read again.
func FuzzLoad(f *testing.F) {
	f.Add("state_machines: {m: {states: [{gate: a, exit_condition: \"true and\\n\\x20x\"}]}}", "a: [*b, &b c]")
	f.Add("a: |2-\n   b\n", "a: !!str 'it''s'\n<<: {c: {a}}")
	f.Add(everything, "state_machines: {m: {states: [{gate: !x y}, {gate: a, exit_condition: &a true, next: *a}]}}")
	f.Add(states("gate a -> b; action b -> b a"), "placeholders: {a: '{placeholders.a}'}")
	f.Fuzz(func(t *testing.T, a, b string) {
		_, warnings, err := definition.Load(files(a, b)...)
		errs, _ := err.(definition.Errors)
		assert.Equal(t, err != nil, len(errs) > 0)
		for _, p := range append(errs, warnings...) {
			text := map[string]string{"a.yaml": a, "b.yaml": b}[p.File]
			assert.True(t, p.Line >= 1 && p.Line <= 2+strings.Count(text, "\n")+strings.Count(text, "\r") && p.Column >= 1, p)
		}
		merged, err := definition.Merged(files(a, b)...)
		if err != nil {
			return
		}
		again, err := definition.Merged(definition.File{Content: merged}, definition.File{Content: []byte("~")})
		require.NoError(t, err, "%s", merged)
		assert.Equal(t, string(merged), string(again))
	})
}
