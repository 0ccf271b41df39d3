package definition_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/machines/definition"
)

const everything = `
placeholders:
  host: app.example
plugins:
  logging:
    - class: routemaster.logging:PythonLogger
      kwargs:
        log_level: INFO
state_machines:
  m:
    feeds:
      - name: tests
        url: https://{placeholders.host}/tests/<label>
        timeout: 2s
    webhooks:
      - match: example
        headers:
          Authorization: secret
    publish:
      topic: moves
      url: https://app.example/<label>
      publisher: accounts
    states:
      - gate: first
        timezone: Europe/London
        exit_condition: metadata.go and feeds.tests.x
        triggers:
          - metadata: go
          - time: 18h30m
            timezone: metadata.zone
          - interval: 1h
          - event: entry
          - topic: users
            label:
              url: https://app.example/<label>
            metadata: profile
            create: true
          - topic: orders
            label:
              data: order.user
        next:
          type: context
          path: metadata.plan
          default: act
          destinations:
            - value: pro
              state: act
            - value: 7
              state: end
      - action: act
        webhook: https://app.example/hook
        attempts: 3
        backoff: 10s
        timeout: 5s
        next: last
      - gate: last
        exit_condition: true
        next:
          type: constant
          state: end
      - gate: end
        exit_condition: false
`

// TestBrokenValues replaces each value by one that no definition may contain. The reader reports
// it, and no later step fails because of it.
func TestBrokenValues(t *testing.T) {
	scalars := regexp.MustCompile(`(?m)(?:: |- )([^\s:]\S*(?: [^:\n]+)?)$`).FindAllStringSubmatchIndex(everything, -1)
	assert.Len(t, scalars, 44)
	for _, at := range scalars {
		text := everything[:at[2]] + "!unknown x" + everything[at[3]:]
		assert.NotEmpty(t, problems(t, text), text)
	}
	for _, broken := range []string{"!unknown x", "[!unknown x]", "[!unknown {}, !unknown []]", "&self [*self]", "[{gate: a, exit_condition: true, next: {<<: !unknown x}}]"} {
		assert.NotEmpty(t, problems(t, "state_machines: {m: {states: "+broken+"}}"), broken)
	}
}

// tokens matches the pieces of a definition that [mutate] replaces: keys, values and YAML's
// punctuation.
var tokens = regexp.MustCompile(`[^\s:\[\]{},]+|[\n:\[\]{},]`)

// replacements are the texts that it inserts; most are refused by some step of the loader.
var replacements = strings.Split("\"{placeholders.typo}\"|{placeholders.host}|!unknown x|!include a.yaml|!!set {a}|!!binary aGk=|.nan|.inf|"+
	"1e999|~||''|[]|{}|[a]|{a: b}|&x|*x|<<|{<<: !unknown x}|? [a] : b|\"\\0\"|.|..|true|99999999999999999999|<label>|metadata.x|feeds.x.y|"+
	"gate|action|next|state|type|topic|metadata|first|{type: context}|\n|# ", "|")

// mutate changes a definition. Each three bytes choose a place and its replacement.
func mutate(text string, choices []byte) string {
	for ; len(choices) >= 3; choices = choices[3:] {
		all := tokens.FindAllStringIndex(text, -1)
		if len(all) == 0 {
			return text
		}
		at := all[(int(choices[0])<<8+int(choices[1]))%len(all)]
		text = text[:at[0]] + replacements[int(choices[2])%len(replacements)] + text[at[1]:]
	}
	return text
}

// FuzzMutated loads definitions with one or several faults. Whichever step refuses a definition,
// the steps after it must cope with the rest: the definition is loaded, or has problems.
func FuzzMutated(f *testing.F) {
	places := len(tokens.FindAllStringIndex(everything, -1))
	for place := range places {
		for replacement := range replacements {
			if (place+replacement)%11 == 0 { // enough for each test run; the fuzzer finds the others
				f.Add([]byte{byte(place >> 8), byte(place), byte(replacement)})
			}
		}
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		text := mutate(everything, choices[:min(len(choices), 30)])
		_, warnings, err := definition.LoadApplied(files(text)[0])
		refused := problems(t, text) != nil
		assert.True(t, refused == (err != nil) || refused && len(warnings) > 0, text)
		if _, err := definition.Merged(files(text, everything)...); err == nil {
			_ = problems(t, text, everything)
		}
	})
}

// TestTooManyValues ends what may be read of a file in each of some places of a definition.
func TestTooManyValues(t *testing.T) {
	for left := 5; left < 100; left += 10 {
		// Each line is a list of 999 values and of itself.
		pad := "x: &pad [" + strings.Repeat("1, ", 998) + "1]\n"
		lines := 199_000 / 1000
		text := pad + "y: [" + strings.TrimSuffix(strings.Repeat("*pad, ", lines-1), ", ") + "]\nz: [" +
			strings.TrimSuffix(strings.Repeat("1, ", 200_000-1000*lines-left), ", ") + "]\n" + everything
		assert.Contains(t, fmt.Sprint(problems(t, text)), "at most 200000 values", left)
	}
}
