package definition_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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

// TestBrokenValues puts what is no value of a definition in the place of each value. It was
// reported when the file was read, and nothing else is to fail by it.
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
