package definition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPlacesInConditions has a wrong word, nonsense, in scalars of all styles. It is to be found
// where the file has it.
func TestPlacesInConditions(t *testing.T) {
	const begin = "state_machines:\n  m:\n    states:\n      - gate: ä\n"
	for name, condition := range map[string]string{
		"plain":                "exit_condition: metadata.a and nonsense",
		"plain, of two lines":  "exit_condition: metadata.a and\n          metadata.ü and\n\n          nonsense",
		"double quotes":        `exit_condition: "metadata.a = \"x\" and nonsense"`,
		"escapes":              `exit_condition: "\x6detadata.a =\n \"\u00fc\U0001F600\\t\"\t \` + "\n          and\\_nonsense\"",
		"single quotes":        `exit_condition: 'metadata.a = "it''s" and nonsense'`,
		"quotes of two lines":  "exit_condition: 'metadata.a = \"it''s\"\n          and nonsense'",
		"literal":              "exit_condition: |\n          metadata.a and\n\n          metadata.ü = \"ö\" and nonsense",
		"literal with comment": "exit_condition: |2- # why\n            metadata.a and nonsense and\n          true",
		"folded":               "exit_condition: >\n          metadata.a and\n          metadata.b and nonsense\n\n          and true",
		"anchor and tag":       `exit_condition: &c !!str "metadata.a and nonsense"`,
		"flow":                 "exit_condition: metadata.a and nonsense", // see below
	} {
		t.Run(name, func(t *testing.T) {
			text := begin + "        " + condition + "\n"
			if name == "flow" {
				text = "{state_machines: {m: {states: [{gate: ü,\n" + condition + " }]}}}"
			}
			for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + text} {
				text = strings.ReplaceAll(strings.ReplaceAll(text, "gate: ä", "gate: a"), "gate: ü", "gate: a")
				before, _, _ := strings.Cut(text, "nonsense")
				line := 1 + strings.Count(before, "\n")
				column := 1 + len([]rune(strings.TrimPrefix(before[strings.LastIndex(before, "\n")+1:], "\ufeff")))
				assert.Equal(t, []place{{line, column}}, places(t, text), "%q", text)
			}
		})
	}
}

type place struct{ line, column int }

func places(t *testing.T, text string) (places []place) {
	t.Helper()
	for _, p := range errorsOf(t, text) {
		places = append(places, place{p.Line, p.Column})
	}
	return places
}

func TestPlaceOfTheEnd(t *testing.T) {
	text := "state_machines: {m: {states: [{gate: a, exit_condition: 'true and ' }]}}"
	assert.Equal(t, []place{{1, strings.Index(text, " '") + 3 + len("true and")}}, places(t, text), "behind the last word")
}

// TestPlacesWithPlaceholders: text that replaces a placeholder has no place of its own.
func TestPlacesWithPlaceholders(t *testing.T) {
	text := "{placeholders: {a: metadata.long.path}, state_machines: {m: {states: [\n{gate: a, exit_condition: '{placeholders.a} and nonsense'}]}}}"
	assert.Equal(t, []place{{2, 27}}, places(t, text))
	text = strings.Replace(text, "{placeholders.a} and nonsense", "{placeholders.a} and {nothing}", 1)
	assert.Equal(t, []place{{2, 49}}, places(t, text), "a wrong placeholder has")
}
