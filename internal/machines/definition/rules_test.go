package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/definition"
)

func errorsOf(t *testing.T, texts ...string) definition.Errors {
	t.Helper()
	_, _, err := definition.Load(files(texts...)...)
	var errs definition.Errors
	require.ErrorAs(t, err, &errs)
	return errs
}

// states are a machine's, a line each: gate or action, name, and where it leads.
func states(lines string) string {
	var b strings.Builder
	b.WriteString("state_machines: {m: {states: [")
	for line := range strings.SplitSeq(lines, "; ") {
		kind, rest, _ := strings.Cut(line, " ")
		name, ahead, _ := strings.Cut(rest, " -> ")
		more := map[string]string{"gate": "exit_condition: true", "action": "webhook: 'http://a'"}[kind]
		b.WriteString("\n{" + kind + ": " + name + ", " + more)
		first, others, several := strings.Cut(ahead, " ")
		switch {
		case several:
			b.WriteString(", next: {type: context, path: metadata.x, default: " + first + ", destinations: [")
			for i, other := range strings.Fields(others) {
				fmt.Fprintf(&b, "{state: %s, value: %d},", other, i)
			}
			b.WriteString("]}")
		case ahead != "":
			b.WriteString(", next: " + ahead)
		}
		b.WriteString("},")
	}
	return b.String() + "\n]}}"
}

func TestRoutes(t *testing.T) {
	const circle, unreachable = "actions lead in a circle: ", "no label can come to "
	for text, want := range map[string][]string{
		"gate a":                     nil,
		"gate a -> a":                nil,
		"gate a -> b; action b -> a": nil,
		"gate a -> b; action b -> c a; action c -> d; gate d":        nil,
		"gate a -> b c; action b -> d; action c -> d; action d -> a": nil,
		"gate a; gate b":                            {"3:8: " + unreachable + "b: no way leads there from the first state, a"},
		"gate a; action b -> a":                     {"3:10: " + unreachable + "b"},
		"gate a; action b -> c; action c -> a":      {"3:10: " + unreachable + "b", "4:10: " + unreachable + "c"},
		"action a -> b; gate b; gate c -> c":        {"4:8: " + unreachable + "c"},
		"gate a -> b; action b -> b a":              {"3:10: " + circle + "b, b; put a gate into it"},
		"gate a -> c; action b -> c; action c -> b": {"3:10: " + circle + "b, c, b"},
		"action a -> b; action b -> c d; action c -> b; action d -> a d; gate e": {"2:10: " + circle + "a, b, d, a", "3:10: " + circle + "b, c, b",
			"5:10: " + circle + "d, d", "6:8: " + unreachable + "e"},
		"gate a -> b; gate a; gate b": {"3:8: there are two states a, the first in line 2"},
	} {
		t.Run(text, func(t *testing.T) {
			got := problems(t, states(text))
			require.Len(t, got, len(want), "%q", got)
			for i := range got {
				assert.True(t, strings.HasPrefix(got[i], want[i]), "%q begins with %q", got[i], want[i])
			}
		})
	}
}

// TestRoutesBesideOtherProblems wants all problems at once: where states lead is checked as far as
// it can be read.
func TestRoutesBesideOtherProblems(t *testing.T) {
	gate := func(name, more string) string { return "{gate: " + name + ", " + more + "},\n" }
	good, end, lone := gate("a", "exit_condition: true, next: b"), gate("b", "exit_condition: false"), gate("lone", "exit_condition: false")
	const unreachable, circle = "no label can come to lone", "actions lead in a circle: x, x"
	for text, want := range map[string][]string{
		gate("a", "exit_condition: 'x =', next: b") + end + lone:                                      {"2:31: exit_condition", "4:8: " + unreachable},
		gate("a", "exit_condition: true, extra: 1, next: b") + end + lone:                             {"2:33: a gate has no key", "4:8: " + unreachable},
		gate("a", "exit_condition: true, next: nowhere") + lone:                                       {"2:39: there is no state", "3:8: " + unreachable},
		good + gate("b", "exit_condition: '{placeholders.typo}'") + lone:                              {"3:28: there is nothing at", "4:8: " + unreachable},
		good + end + "{action: x, webhook: no, next: x},\n" + lone:                                    {"4:10: no label can come to x", "4:10: " + circle, "4:22: webhook must be", "5:8: " + unreachable},
		good + end + lone + gate("a-b", "exit_condition: true, next: b"):                              {"4:8: " + unreachable, "5:8: a state's name is"},
		good + end + lone + gate("a-b", "exit_condition: true, next: lone"):                           {"5:8: a state's name is"},
		gate("a", "exit_condition: true, next: '{placeholders.typo}'") + lone:                         {"2:40: there is nothing at"},
		gate("a", "exit_condition: true, next: !include x") + lone:                                    {"2:39: a definition has no values"},
		gate("a", "exit_condition: true, next: {type: other}") + lone:                                 {`2:46: next has no type "other"`},
		gate("a", "exit_condition: true, next: {type: context, path: x, default: a}") + lone:          {"2:39: a context next needs destinations", "2:61: path: "},
		"{action: x, webhook: 'https://a/', next: ~},\n" + lone:                                       {"2:42: an action needs next"},
		good + gate("a", "exit_condition: true, next: lone") + end + lone:                             {"3:8: there are two states a"},
		"{gate: 1, exit_condition: true, next: b},\n" + end + lone:                                    {"2:8: gate must be a string"},
		good + end + "{},\n" + lone:                                                                   {"4:1: a state needs a name"},
		gate("a", "exit_condition: true, next: {type: constant, state: b}, triggers: 1") + end + lone: {"2:77: triggers must be a list", "4:8: " + unreachable},
	} {
		t.Run(text, func(t *testing.T) {
			got := problems(t, "state_machines: {m: {states: [\n"+text+"]}}")
			require.Len(t, got, len(want), "%q", got)
			for i := range got {
				assert.True(t, strings.HasPrefix(got[i], want[i]), "%q begins with %q", got[i], want[i])
			}
		})
	}
}

func TestTwoDestinationsForOneValue(t *testing.T) {
	equal := func(a, b string) []string {
		return problems(t, "state_machines: {m: {states: [{gate: g, exit_condition: true, next: {type: context, path: metadata.x, default: g, destinations: [\n"+
			"{state: g, value: "+a+"},\n{state: g, value: "+b+"}]}}]}}")
	}
	for _, pair := range []string{"1 1", "1 1.0", "1 true", "0 off", "a a", `a "a"`, "~ null", "1e2 100", "0x10 16"} {
		a, b, _ := strings.Cut(pair, " ")
		got := equal(a, b)
		require.Len(t, got, 1, pair)
		assert.Regexp(t, "^3:19: two destinations are for one value: .* which leads to g; remove one$", got[0])
	}
	for _, pair := range []string{"1 '1'", "true 'true'", "~ ''", "0 null", "1 2", "12345678901234567890 12345678901234567891"} {
		a, b, _ := strings.Cut(pair, " ")
		assert.Empty(t, equal(a, b), pair)
	}
}

func TestFeedsInConditions(t *testing.T) {
	text := "state_machines:\n  m:\n    feeds: [{name: known, url: 'http://a'}]\n    states:\n    - gate: g\n      exit_condition: |\n" +
		"        feeds.known.a or feeds.other.b or\n        feeds.third\n"
	assert.Equal(t, []string{
		`7:26: the machine has no feed "other": add it to feeds`,
		`8:9: the machine has no feed "third": add it to feeds`,
	}, problems(t, text))
}

func TestAllProblemsInOrder(t *testing.T) {
	errs := errorsOf(t, `
state_machines:
  first:
    states:
      - gate: a
        exit_condition: metadata.x =
        triggers: [{time: 25h00m}, {interval: 0m}]
        next: nowhere
  second:
    feeds:
      - {name: f, name: g, url: no}
    states: [{action: b, webhook: "https://a.example"}]
`, `
plugin: 1
state_machines: {third: {states: []}, first: {states: {}}}
`)
	var got []string
	for _, p := range errs {
		got = append(got, fmt.Sprintf("%s:%d", p.File, p.Line))
	}
	assert.Equal(t, []string{"a.yaml:5", "a.yaml:6", "a.yaml:7", "a.yaml:7", "a.yaml:8", "a.yaml:11", "a.yaml:11", "a.yaml:12",
		"b.yaml:2", "b.yaml:3"}, got)
	assert.Equal(t, errs[0].String()+" (and 9 more)", errs.Error())
	assert.Equal(t, errs[0].String(), errs[:1].Error())
}

func TestAMachineThatHearsItselfIsAWarning(t *testing.T) {
	_, warnings, err := definition.Load(files(`
state_machines:
  m:
    states:
      - {gate: g, exit_condition: true, triggers: [{topic: moves, label: {data: label}}]}
    publish: {topic: moves, url: "https://app.example/<label>"}
`)...)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0].String(), "a.yaml:6:14: the machine hears the topic moves, to which it publishes")
}

func TestWarnings(t *testing.T) {
	text := `
plugins:
  logging: [{class: "routemaster.logging:PythonLogger", kwargs: {log_level: INFO, more: {a: 1}, on: true}}]
  metrics: anything
state_machines:
  m:
    owner: somebody
    states:
      - {gate: g, exit_condition: true, triggers: [{metadata: metadata.a.b}]}
`
	definitions, warnings, err := definition.Load(files(text)...)
	require.NoError(t, err)
	require.NotNil(t, definitions)
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	assert.Equal(t, []string{
		"a.yaml:3:21: the plugin routemaster.logging:PythonLogger is ignored: logs and metrics are those of the bus",
		"a.yaml:4:3: there are no plugins of the kind metrics: this is ignored",
		`a.yaml:7:5: a machine has no key "owner": it is ignored; there are states, feeds, webhooks, publish, clients`,
		"a.yaml:9:63: this is for metadata.metadata.a.b, since the path of a trigger begins within the metadata: write a.b",
	}, got)
	_, warnings, err = definition.Load(files(strings.Replace(text, "true,", "nonsense,", 1))...)
	assert.Error(t, err)
	assert.Len(t, warnings, 4, "also with an error")
}

func TestAGateThatNoClockOpensIsAWarning(t *testing.T) {
	warned := func(gate string) bool {
		_, warnings, err := definition.Load(files("state_machines: {m: {states: [\n{gate: g, exit_condition: " + gate + "}]}}")...)
		require.NoError(t, err)
		for _, w := range warnings {
			assert.Equal(t, "a.yaml:2:27: the condition depends on the time, but no trigger follows the clock: add interval or time", w.String())
		}
		return len(warnings) > 0
	}
	const later = "3d has passed since system.entered_state, next: g"
	for gate, want := range map[string]bool{
		later: true,
		later + ", triggers: [{event: entry}, {topic: a, label: {data: a}}]": true,
		later + ", triggers: [{event: entry}, {interval: 1d}]":               false,
		later + ", triggers: [{time: 9h00m}]":                                false,
		later + ", triggers: [{metadata: a}]":                                false,
		"3d has passed since system.entered_state":                           false,
		"metadata.a, next: g, triggers: [{event: entry}]":                    false,
	} {
		assert.Equal(t, want, warned(gate), gate)
	}
	assert.Len(t, problems(t, "state_machines: {m: {states: [{gate: g, exit_condition: '{missing}', next: g}]}}"), 1)
}

func TestHeadersAreNotInErrors(t *testing.T) {
	text := "state_machines: {m: {webhooks: [{match: a, headers: {A: \"pass\\nword\", \"B C\": password}}], states: []}}"
	assert.NotContains(t, fmt.Sprint(problems(t, text)), "word")
}

func TestLimits(t *testing.T) {
	gates := func(n int) string {
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("gate g%d -> g%d", i, (i+1)%n))
		}
		return states(strings.Join(lines, "; "))
	}
	assert.Empty(t, problems(t, gates(1000)))
	assert.Equal(t, []string{"1:30: a machine may have 1000 states, and this is 1001"}, problems(t, gates(1001)))

	all := func(n int) string {
		var b strings.Builder
		b.WriteString("state_machines:\n m0: &m {states: [{gate: g, exit_condition: true}]}\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, " m%d: *m\n", i)
		}
		return b.String()
	}
	assert.Empty(t, problems(t, all(1000)))
	assert.Equal(t, []string{"2:2: there may be 1000 machines, and this is 1001"}, problems(t, all(1001)))

	assert.Empty(t, problems(t, states("gate a -> a"+strings.Repeat(" a", 1000))))
	assert.Regexp(t, "2:.*destinations are 1 to 1000; these are 1001", problems(t, states("gate a -> a"+strings.Repeat(" a", 1001))))

	text := states("gate g") + "\n#"
	assert.Empty(t, problems(t, text+strings.Repeat("x", definition.MaxBytes-len(text))))
	assert.Equal(t, []string{"1:1: a file has at most 1048576 bytes, and this one 1048577: divide it"},
		problems(t, text+strings.Repeat("x", definition.MaxBytes-len(text)+1)))
}

// TestLaughs has documents that are small, and large once they are read.
func TestLaughs(t *testing.T) {
	var aliases, placeholders, nested strings.Builder
	aliases.WriteString("x0: &x0 [a]\n")
	placeholders.WriteString("state_machines: {}\nplaceholders:\n  x0: lol\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&aliases, "x%d: &x%d [*x%d, *x%d, *x%d]\n", i, i, i-1, i-1, i-1)
		fmt.Fprintf(&placeholders, "  x%d: '{placeholders.x%d}{placeholders.x%d}'\n", i, i-1, i-1)
	}
	nested.WriteString(strings.Repeat("[", 500_000))
	for text, want := range map[string]string{
		aliases.String():      "a definition has at most 200000 values",
		placeholders.String(): "strings have more than 4194304 bytes once placeholders are replaced",
		nested.String():       "this is not YAML",
	} {
		assert.Contains(t, fmt.Sprint(problems(t, text)), want)
	}
}

// TestCirclesOfMachines warns of machines that set off one another through topics.
func TestCirclesOfMachines(t *testing.T) {
	machine := func(name, hears, publishes string) string {
		return fmt.Sprintf("  %s:\n    states: [{gate: a, exit_condition: true, triggers: [{topic: %s, label: {data: l}}]}]\n"+
			"    publish: {topic: %s, url: \"https://x.example\"}\n", name, hears, publishes)
	}
	warnings := func(text string) (messages []string) {
		_, warnings, err := definition.Load(files("state_machines:\n" + text)...)
		require.NoError(t, err)
		for _, w := range warnings {
			messages = append(messages, w.String())
		}
		return messages
	}
	assert.Empty(t, warnings(machine("a", "x", "y")+machine("b", "y", "z")+machine("c", "y", "v")))
	found := warnings(machine("c", "z", "x") + machine("a", "x", "y") + machine("b", "y", "z") + machine("d", "z", "w"))
	require.Len(t, found, 1)
	assert.Regexp(t, `^a.yaml:4:5: machines may set off one another for ever: .*a publishes y, which b hears`, found[0])
	assert.Contains(t, found[0], "c publishes x, which a hears")
}

func TestALabelChoosesNoHost(t *testing.T) {
	text := func(url string) string {
		return "state_machines: {m: {feeds: [{name: f, url: \n" + url + "}], states: [{gate: g, exit_condition: true}]}}"
	}
	for url, at := range map[string]string{
		"'http://<label>'":                "2:9",
		"'https://a.<label>.example/x'":   "2:12",
		"'https://<label>:x@a.example/'":  "2:10",
		"'https://a.example:<label>?x=1'": "",
	} {
		got := problems(t, text(url))
		require.Len(t, got, 1, url)
		assert.True(t, strings.HasPrefix(got[0], at), got[0])
		if at == "" { // it is no port
			continue
		}
		assert.Contains(t, got[0], "must not have <label> before its path")
		_, warnings, err := definition.LoadApplied(files(text(url))[0])
		require.NoError(t, err, "it was applied by an earlier version")
		assert.Len(t, warnings, 1)
	}
	for _, url := range []string{"'https://a.example/<label>'", "'https://<state_machine>.example?<label>'", "'https://a#<label>'"} {
		assert.Empty(t, problems(t, text(url)), url)
	}
	got := problems(t, "state_machines: {m: {publish: {topic: t, url: 'https://<label>.example/'}, states: [{gate: g, exit_condition: true}]}}")
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "the url of an event must not have <label>")
}

func TestAPatternWithoutAnAnchorIsAWarning(t *testing.T) {
	for pattern, anchored := range map[string]bool{
		`a\.example`: false, `.*a`: false, `^http://a|b`: false, `(?m)^a`: false, `a^`: false,
		`^https://a/`: true, `\Ahttps://a/`: true, `(?i)^https://(a|b)/`: true, `^http://a/|^http://b/`: true, `(^http://a/)`: true,
	} {
		_, warnings, err := definition.Load(files("state_machines: {m: {webhooks: [\n{match: '" + pattern +
			"', headers: {A: b}}], states: [{gate: g, exit_condition: true}]}}")...)
		require.NoError(t, err)
		assert.Equal(t, anchored, len(warnings) == 0, pattern)
		for _, w := range warnings {
			assert.True(t, strings.HasPrefix(w.String(), "a.yaml:2:9: match "), w.String())
			assert.Contains(t, w.Message, `^https://app\.example/`)
		}
	}
}
