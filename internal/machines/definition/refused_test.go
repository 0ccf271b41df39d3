package definition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/definition"
)

// problems returns the problems of a definition, without the names of the files.
func problems(t *testing.T, texts ...string) (all []string) {
	t.Helper()
	definitions, _, err := definition.Load(files(texts...)...)
	if err == nil {
		return nil
	}
	assert.Nil(t, definitions)
	var errs definition.Errors
	require.ErrorAs(t, err, &errs)
	for _, p := range errs {
		all = append(all, strings.TrimPrefix(p.String(), "a.yaml:"))
	}
	return all
}

// refused is a table of definitions, and the beginnings of their problems.
type refused map[string][]string

func (table refused) check(t *testing.T, wrap func(string) string) {
	t.Helper()
	for text, want := range table {
		t.Run(text, func(t *testing.T) {
			got := problems(t, wrap(text))
			require.Len(t, got, len(want), "%q", got)
			for i, problem := range got {
				assert.True(t, strings.HasPrefix(problem, want[i]), "%q begins with %q", problem, want[i])
			}
		})
	}
}

func itself(text string) string { return text }

func TestRefusedDocuments(t *testing.T) {
	const machine = "m: {states: [{gate: g, exit_condition: true}]}"
	refused{
		"":                                   {"1:1: the file is empty"},
		"# only a comment\n":                 {"1:1: the file is empty"},
		"\n":                                 {"1:1: the file is empty"},
		"a: b: c":                            {"1:5: this is not YAML: mapping values are not allowed"},
		"a: [1\nb: \"":                       {"2:5: this is not YAML: while scanning a quoted scalar"},
		"a: \"\xff\"":                        {"1:5: this is not YAML: invalid leading UTF-8 octet"},
		"# ä\r\n\na: ä\x01":                  {"3:5: this is not YAML: control characters are not allowed"},
		"\ufeffa: \"\xc3\"":                  {"1:6: this is not YAML: invalid trailing UTF-8 octet"},
		"a: 1\nb: \xed\xa0\x80":              {"2:4: this is not YAML: invalid Unicode character"},
		"a: *x":                              {"1:4: this is not YAML: unknown anchor"},
		"a: 1\n---\nb: 2":                    {"2:1: a file has one document"},
		"# x\n---\na: 1\n---\n":              {"4:1: a file has one document"},
		"a: 1\n...\n# x\n--- b":              {"4:1: a file has one document"},
		"---\n--- {a: 1}":                    {"2:1: a file has one document"},
		"- a":                                {"1:1: a definition is a map with state_machines, placeholders, plugins; this is a list"},
		"~":                                  {"1:1: a definition is a map with state_machines, placeholders, plugins; this is null"},
		"{}":                                 {"1:1: a definition needs state_machines"},
		"state_machines:":                    {"1:16: a definition needs state_machines, which is null here"},
		"state_machines: []":                 {"1:17: state_machines is a map of machines by their names; this is a list"},
		"state_machine: {" + machine + "}":   {`1:1: a definition has no key "state_machine"`, "1:1: a definition needs state_machines"},
		"state_machines: {m: ~}":             {"1:21: a machine is a map with states; this is null"},
		"state_machines: {m: {}}":            {"1:21: a machine needs states"},
		"state_machines: {m: {states: }}":    {"1:30: a machine needs states, which is null here"},
		"state_machines: {m: {states: []}}":  {"1:30: a machine needs a state at least"},
		"state_machines: {m: {states: [a]}}": {"1:31: a state is a map with gate or action; this is a string"},
		"state_machines: {" + machine + ", " + machine + "}":               {`1:66: the key "m" is there twice, first in line 1`},
		"state_machines: {? [a] : b}":                                      {"1:20: a key must be a string"},
		"state_machines: {a/b: " + machine[3:] + "}":                       {"1:18: a machine's name is 1 to 128 characters"},
		"state_machines: {..: " + machine[3:] + "}":                        {"1:18: a machine's name cannot be .., which is another path"},
		"state_machines: {'.': " + machine[3:] + "}":                       {"1:18: a machine's name cannot be ."},
		"state_machines: {\"\": " + machine[3:] + "}":                      {"1:18: a machine's name is"},
		"state_machines: {\"a\\tb\": " + machine[3:] + "}":                 {"1:18: a machine's name is"},
		"state_machines: {" + strings.Repeat("ä", 129) + machine[1:] + "}": {"1:18: a machine's name is"},
		"state_machines: !!python/object:os.system {a: b}":                 {"1:17: a definition has no values of the kind !!python/object:os.system"},
		"state_machines: !!set {a, b}":                                     {"1:17: a definition has no values of the kind !!set"},
		"state_machines: &x {m: *x}":                                       {"1:24: *x stands for what it is in"},
		"state_machines: {<<: 1}":                                          {"1:22: << needs a map"},
		"state_machines: {<<: [[{}]]}":                                     {"1:23: << needs a map"},
		"{placeholders: {a: [1]}, state_machines: {" + machine + "}}":      {"1:20: a placeholder must be a string or a number; this is a list"},
		"{placeholders: a, state_machines: {" + machine + "}}":             {"1:16: placeholders is a map of strings; this is a string"},
	}.check(t, itself)
}

func TestRefusedPlugins(t *testing.T) {
	refused{
		"{logging: {}}":                                   {"1:20: logging must be a list; this is a map"},
		"{logging: [{}]}":                                 {"1:21: a plugin needs class"},
		"{logging: [{class: a.b}]}":                       {"1:29: a class is module:Name"},
		"{logging: [{class: a:b, more: 1}]}":              {`1:34: a plugin has no key "more"`},
		"{logging: [{class: a:b, kwargs: [1]}]}":          {"1:42: kwargs is a map; this is a list"},
		"{logging: [{class: a:b, kwargs: {a: [1]}}]}":     {"1:46: a plugin's argument must be"},
		"{logging: [{class: a:b, kwargs: {a: {b: {}}}}]}": {"1:50: a plugin's argument must not be nested"},
	}.check(t, func(text string) string {
		return "plugins: " + text + "\nstate_machines: {}"
	})
}

func TestRefusedKeysOfMachines(t *testing.T) {
	refused{
		"feeds: {}":                                                       {"2:8: feeds must be a list; this is a map"},
		"feeds: [{name: a}]":                                              {"2:9: a feed needs url"},
		`feeds: [{url: "http://a"}]`:                                      {"2:9: a feed needs name"},
		`feeds: [{name: a, url: "http://a", x: 1}]`:                       {`2:36: a feed has no key "x": it can have name, url, timeout`},
		`feeds: [{name: "", url: ftp://a}]`:                               {"2:16: the name of a feed must not be empty", "2:25: the url of a feed must be an http or https URL"},
		`feeds: [{name: 1, url: "http://"}]`:                              {"2:16: the name of a feed must be a string; this is a number", "2:24: the url of a feed must be"},
		`feeds: [{name: a, url: "http://a"}, {name: a, url: "http://b"}]`: {`2:44: there are two feeds "a"`},
		`feeds: [{name: a, url: "http://a", timeout: 5}]`:                 {"2:45: timeout must be a duration such as 10s, 5m or 1h, from 10ms to 5m"},
		`feeds: [{name: a, url: "http://a", timeout: 0s}]`:                {"2:45: timeout must be a duration"},
		`feeds: [{name: a, url: "http://a", timeout: 5m1s}]`:              {"2:45: timeout must be a duration"},
		"webhooks: [{}]":                                                  {"2:12: a rule for webhooks needs match", "2:12: a rule for webhooks needs headers"},
		"webhooks: [{match: 'a(?=b)', headers: {}}]":                      {"2:22: match is not a regular expression that RE2 knows: invalid or unsupported Perl syntax: \"(?=\""},
		"webhooks: [{match: '(', headers: {}}]":                           {"2:21: match is not a regular expression that RE2 knows: missing closing ): \"(\""},
		"webhooks: [{match: a, headers: {A B: c}}]":                       {`2:33: "A B" is not the name of a header`},
		"webhooks: [{match: a, headers: {A: [c]}}]":                       {`2:36: the header A must be a string; this is a list`},
		"webhooks: [{match: a, headers: {A: \"c\\r\\nB: d\"}}]":           {`2:36: the header A must not have control characters`},
		"publish: {}": {"2:10: publish needs topic", "2:10: publish needs url"},
		`publish: {topic: T, url: "http://a", publisher: ""}`:   {"2:18: topic: a topic name is", "2:26: the url of an event must be an https URL", "2:49: publisher must not be empty"},
		`publish: {topic: t, url: "https://a", publisher: A B}`: {"2:50: publisher: a name is"},
		"clients: shop":                      {"2:10: clients must be a list of names of clients; this is a string"},
		"clients: []":                        {"2:10: clients: names no client"},
		"clients: [a, {}, root, B, c, d, c]": {"2:14: the name of a client must be a string", "2:18: clients: root always may", "2:24: clients: is not the name", "2:33: clients: names the client c twice"},
	}.check(t, func(text string) string {
		return "state_machines: {m: {\n" + text + ",\nstates: [{gate: g, exit_condition: true}]}}"
	})
}

func TestRefusedStates(t *testing.T) {
	refused{
		"{exit_condition: true}":                                           {"2:1: a state needs a name: gate"},
		"{gate: a, action: b}":                                             {"2:19: a state is a gate or an action, and this is both"},
		"{gate: a}":                                                        {"2:1: a gate needs exit_condition (false for an end)"},
		"{gate: ~, exit_condition: true}":                                  {"2:8: a gate needs gate, which is null here"},
		"{gate: a-b, exit_condition: true}":                                {"2:8: a state's name is"},
		"{gate: 1, exit_condition: true}":                                  {"2:8: gate must be a string; this is a number"},
		"{gate: a, exit_condition: 1}":                                     {"2:27: exit_condition must be a string, true or false; this is a number"},
		"{gate: a, exit_condition: ''}":                                    {"2:28: exit_condition: "},
		"{gate: a, exit_condition: true, webhook: b}":                      {`2:33: a gate has no key "webhook"`},
		"{gate: a, exit_condition: true, next: ~}":                         {"2:39: next must not be null"},
		"{gate: a, exit_condition: true, next: }":                          {"2:39: next must not be null"},
		"{gate: a, exit_condition: true, next: b}":                         {`2:39: there is no state "b" in this machine: it has a`},
		"{gate: a, exit_condition: true, next: []}":                        {"2:39: next is the name of a state, or a map with type; this is a list"},
		"{gate: a, exit_condition: true, next: {state: a}}":                {"2:39: next needs type"},
		"{gate: a, exit_condition: true, next: {type: other, state: a}}":   {`2:46: next has no type "other"`},
		"{gate: a, exit_condition: true, next: {type: constant, path: a}}": {"2:39: a constant next needs state", `2:56: a constant next has no key "path"`},
		"{gate: a, exit_condition: true, next: {type: context}}":           {"2:39: a context next needs default", "2:39: a context next needs path", "2:39: a context next needs destinations"},
		"{gate: a, exit_condition: true, next: {type: context, path: metadata.foo.bar+, default: a, destinations: []}}": {
			`2:77: path: '+' cannot be in a name`, "2:106: destinations are 1 to 1000; these are 0"},
		"{gate: a, exit_condition: true, next: {type: context, path: foo.bar, default: a, destinations: [{}]}}": {
			"2:61: path: there is no foo", "2:97: a destination needs state", "2:97: a destination needs value"},
		"{gate: a, exit_condition: true, next: {type: context, path: feeds.f, default: a, destinations: [{state: b, value: {}}]}}": {
			`2:61: the machine has no feed "f"`, `2:105: there is no state "b"`, "2:115: value must be a string"},
		"{gate: a, exit_condition: true, next: {type: context, path: feeds, default: a, destinations: [{state: a, value: .inf}]}}": {
			"2:61: path: feeds is not a value", "2:113: a definition has no values of the kind !!float"},
		"{gate: a, exit_condition: true, next: {type: context, path: metadata.a, default: a, destinations: [{state: a, value: 1e400}, {state: a, value: -.5E+999}, {state: a, value: 0x1_0000_0000_0000_0000}]}}": {
			"2:118: this number is too large", "2:144: this number is too large", "2:173: this number is too large"},
		"{action: a}": {"2:1: an action needs webhook", "2:1: an action needs next"},
		"{action: a, webhook: '<label>', next: ~}": {"2:22: webhook must be an http or https URL", "2:39: an action needs next, which is null here"},
		"{action: a, webhook: 'http://b', next: a, attempts: 0, backoff: 61m, timeout: 1}": {
			"2:10: actions lead in a circle", "2:53: attempts must be an integer from 1 to 1000", "2:65: backoff must be a duration such as 10s, 5m or 1h, from 10ms to 1h", "2:79: timeout must be"},
		"{action: a, webhook: 'http://b', next: a, attempts: 1001, gate_: x}": {"2:10: actions lead in a circle", "2:53: attempts must be", `2:59: an action has no key "gate_"`},
		"{action: a, webhook: 'http://b', next: a}":                           {"2:10: actions lead in a circle: a, a; put a gate into it"},
	}.check(t, func(text string) string { return "state_machines: {m: {states: [\n" + text + "\n]}}" })
}

func TestRefusedTriggers(t *testing.T) {
	const zone = "name one of the IANA database"
	refused{
		"entry":                        {"2:1: a trigger is a map with one of metadata, time, interval, event or topic; this is a string"},
		"{}":                           {"2:1: a trigger needs one of metadata, time, interval, event or topic"},
		"{timezone: UTC}":              {"2:1: a trigger needs one of"},
		"{time: 18h30m, interval: 1d}": {"2:16: a trigger has one kind, and this has time and interval"},
		"{metadata: a, event: entry}":  {"2:15: a trigger has one kind, and this has metadata and event"},
		"{topic: a, label: {data: a}, time: 18h30m}": {"2:30: a trigger has one kind, and this has topic and time"},
		"{metadata: foo.bar+}":                       {"2:19: metadata: '+' cannot be in a name"},
		"{metadata: a..b}":                           {`2:12: metadata: "a..b" is no path`},
		"{metadata: ~}":                              {"2:12: a trigger with metadata needs metadata, which is null here"},
		"{metadata: a, timezone: UTC}":               {`2:15: a trigger with metadata has no key "timezone"`},
		"{time: 18:30}":                              {"2:8: time must be hours and minutes, such as 18h30m or 9h05m: write 18h30m"},
		"{time: 12h58}":                              {"2:8: time must be hours and minutes, such as 18h30m or 9h05m: write 12h58m"},
		"{time: 18h3m}":                              {"2:8: time must be hours and minutes"},
		"{time: 24h00m}":                             {"2:8: time must be a time of day"},
		"{time: 23h60m}":                             {"2:8: time must be a time of day"},
		"{time: 12h00m, timezone: Europe/Bielefeld}": {`2:26: there is no time zone "Europe/Bielefeld": ` + zone},
		"{time: 12h00m, timezone: Local}":            {`2:26: there is no time zone "Local": ` + zone},
		"{time: 12h00m, timezone: ''}":               {"2:26: timezone must not be empty"},
		"{time: 12h00m, timezone: ../../etc/passwd}": {"2:26: there is no time zone"},
		"{time: 12h00m, timezone: metadata.a+b}":     {"2:36: timezone: '+' cannot be in a name"},
		"{interval: 30m2h}":                          {"2:12: interval must be days, hours and minutes in this order, such as 1d2h30m or 20m"},
		"{interval: ''}":                             {"2:12: interval must be days, hours and minutes"},
		"{interval: 20}":                             {"2:12: interval must be days, hours and minutes"},
		"{interval: 30s}":                            {"2:12: interval must be days, hours and minutes in this order, such as 1d2h30m or 20m: at least 1m, without seconds"},
		"{interval: 0d0h0m}":                         {"2:12: interval must be 1m at least"},
		"{event: entry}, {event: entry}":             {`2:17: the gate has two triggers "entry"`},
		"{time: 9h00m}, {time: 09h00m}":              {`2:16: the gate has two triggers "time 09:00"`},
		"{topic: a, label: {data: a}}, {topic: a, label: {data: b}}": {`2:31: the gate has two triggers "topic a"`},
		"{time: 9h00m}, {time: 9h00m, timezone: UTC}":                nil,
		"{event: exit}":                    {`2:9: there is no event "exit": event is entry`},
		"{topic: Users, label: {data: a}}": {"2:9: topic: a topic name is"},
		"{topic: users}":                   {"2:1: a trigger with topic needs label"},
		"{topic: users, label: {}}":        {"2:23: label needs one of url"},
		"{topic: users, label: {url: 'https://a/<label>', data: a}}": {"2:23: label needs one of url"},
		"{topic: users, label: {url: 'https://a/b'}}":                {"2:29: url must have <label> once"},
		"{topic: users, label: {url: 'http://a/<label>'}}":           {"2:29: the url of an event must be an https URL"},
		"{topic: users, label: {data: a}, create: 1}":                {"2:42: create must be true or false; this is a number"},
	}.check(t, func(text string) string {
		return "state_machines: {m: {states: [{gate: g, exit_condition: true, triggers: [\n" + text + "\n]}]}}"
	})
}
