package definition_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
)

// load loads a definition that has no problems.
func load(t *testing.T, texts ...string) *machines.Definitions {
	t.Helper()
	definitions, warnings, err := definition.Load(files(texts...)...)
	require.NoError(t, err)
	assert.Empty(t, warnings)
	return definitions
}

func files(texts ...string) (files []definition.File) {
	for i, text := range texts {
		files = append(files, definition.File{Name: string(rune('a'+i)) + ".yaml", Content: []byte(text)})
	}
	return files
}

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../examples/machines/" + name)
	require.NoError(t, err)
	return string(text)
}

func TestExample(t *testing.T) {
	m := load(t, example(t, "drip-feed.yaml")).Machine("drip_feed")
	require.NotNil(t, m)
	assert.Equal(t, []machines.Feed{{Name: "split_tests", URL: "https://app.example/split-tests/<label>", Timeout: 2 * time.Second}}, m.Feeds)
	assert.Equal(t, &machines.Publish{Topic: "user_states", URL: "https://app.example/users/<label>", Publisher: "machines"}, m.Publish)
	require.Len(t, m.States, 5)

	signedUp := m.First()
	assert.Equal(t, machines.StateName("signed_up"), signedUp.Name)
	assert.Equal(t, "metadata.email_confirmed", signedUp.Gate.Condition.String())
	assert.Equal(t, &machines.Next{Default: "send_welcome"}, signedUp.Next)
	assert.Equal(t, []machines.Trigger{
		{Entry: true},
		{Metadata: []string{"email_confirmed"}},
		{Topic: &machines.TopicTrigger{Topic: "users", LabelURL: "https://app.example/users/<label>", Create: true}},
	}, signedUp.Gate.Triggers)

	assert.Equal(t, &machines.Action{Webhook: "https://mailer.example/welcome/<label>", Attempts: 20, Backoff: 10 * time.Second, Timeout: 10 * time.Second},
		m.State("send_welcome").Action)
	assert.Equal(t, &machines.Action{Webhook: "https://mailer.example/recommendations/<label>", Attempts: 10, Backoff: 30 * time.Second, Timeout: 5 * time.Second},
		m.State("send_recommendations").Action)

	wait, evening := m.State("wait_for_recommendations"), machines.TimeOfDay(18*3600+30*60)
	zone := machines.Zone{Metadata: []string{"timezone"}}
	assert.Equal(t, zone, wait.Gate.Zone)
	assert.Equal(t, []machines.Trigger{
		{TimeOfDay: &evening, Zone: zone},
		{Interval: 24 * time.Hour},
		{Metadata: []string{"has_recommendations"}},
	}, wait.Gate.Triggers)
	assert.Equal(t, "feeds.split_tests.recommendations", wait.Next.Path.String())
	assert.Equal(t, []machines.Destination{{State: "finished", Value: "control"}, {State: "send_recommendations", Value: "weekly"}}, wait.Next.Destinations)
	assert.Equal(t, machines.StateName("send_recommendations"), wait.Next.Default)
	assert.Nil(t, m.State("finished").Next)
}

func TestExampleWithOverrides(t *testing.T) {
	m := load(t, example(t, "overrides.yaml"), example(t, "drip-feed.yaml")).Machine("drip_feed")
	assert.Equal(t, "http://localhost:8025/welcome/<label>", m.State("send_welcome").Action.Webhook)
	require.Len(t, m.Webhooks, 1)
	assert.True(t, m.Webhooks[0].Match.MatchString("http://localhost:8025/welcome/17"))
	assert.Equal(t, map[string]string{"Authorization": "Bearer only-for-tests"}, m.Webhooks[0].Headers)
	assert.Nil(t, m.Publish, "null overrides")
}

// TestThePage loads the definitions shown in docs/machines.md.
func TestThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/machines.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 4)
	load(t, blocks[0][1])
	gate := func(keys string) string {
		return "state_machines:\n  m:\n    states:\n    - gate: done\n      " + strings.ReplaceAll(keys, "\n", "\n      ")
	}
	load(t, gate("exit_condition: true\ntriggers:\n"+blocks[1][1]))
	load(t, gate(blocks[2][1]))
	load(t, gate("exit_condition: true\n"+blocks[3][1])+
		"\n    - {gate: call, exit_condition: true}\n    - {gate: ask, exit_condition: true}\n    - {gate: send_mail, exit_condition: true}\n")
}

// TestFeedsOfTheSeed loads a snippet of the founding document.
func TestFeedsOfTheSeed(t *testing.T) {
	m := load(t, `
state_machines:
  m:
    feeds:
    - name: split_tests
      url: http://localhost:8001/user/<label>
    - name: extra_config
      url: http://localhost:8002/<state_machine>
    states:
    - gate: waiting
      exit_condition: feeds.split_tests.variant = feeds.extra_config.variant
`).Machine("m")
	assert.Equal(t, "http://localhost:8002/<state_machine>", m.Feed("extra_config").URL)
	assert.Equal(t, machines.DefaultFeedTimeout, m.Feed("extra_config").Timeout)
}

// state is a machine with one gate, which has some keys besides.
func state(keys string) string {
	return "state_machines: {m: {states: [{gate: g, exit_condition: false, " + keys + "}]}}"
}

func TestTriggers(t *testing.T) {
	for text, want := range map[string]string{
		"{metadata: a.b-c}":                                        "metadata a.b-c",
		"{time: 18h30m}":                                           "time 18:30",
		"{time: 9h05m, timezone: UTC}":                             "time 09:05 UTC",
		"{time: 0h00m, timezone: Asia/Ho_Chi_Minh}":                "time 00:00 Asia/Ho_Chi_Minh",
		"{time: 23h59m, timezone: Etc/GMT+5}":                      "time 23:59 Etc/GMT+5",
		"{time: 12h00m, timezone: America/Argentina/Buenos_Aires}": "time 12:00 America/Argentina/Buenos_Aires",
		"{time: 12h00m, timezone: metadata.user.zone}":             "time 12:00 metadata.user.zone",
		"{interval: 1d2h30m}":                                      "interval 26h30m0s",
		"{interval: 20m}":                                          "interval 20m0s",
		"{interval: 2d}":                                           "interval 48h0m0s",
		"{interval: 99999d99999h99999m}":                           "interval 2501641h39m0s",
		"{event: entry}":                                           "entry",
		"{topic: users, label: {data: user.id}}":                   "topic users",
		`{topic: users, label: {url: "https://a.example/<label>?m=<state_machine>"}, metadata: a.b}`: "topic users",
	} {
		t.Run(text, func(t *testing.T) {
			triggers := load(t, state("triggers: ["+text+"]")).Machine("m").First().Gate.Triggers
			require.Len(t, triggers, 1)
			assert.Equal(t, want, triggers[0].String())
		})
	}
}

func TestNext(t *testing.T) {
	next := func(text string) *machines.Next {
		return load(t, `{state_machines: {m: {states: [{gate: g, exit_condition: yes, next: `+text+`}, {gate: end, exit_condition: true}]}}}`).Machine("m").First().Next
	}
	assert.Equal(t, next("end"), next("{type: constant, state: end}"), "acceptance 33")
	values := next(`{type: context, path: metadata.n, default: g, destinations: [{state: end, value: 17}, {state: end, value: 1.50},
		{state: end, value: "17"}, {state: end, value: null}, {state: end, value: no}, {state: end, value: "no"}, {state: end, value: 0x12},
		{state: end, value: 12345678901234567890}, {state: end, value: 2020-01-01}]}`)
	var got []any
	for _, d := range values.Destinations {
		got = append(got, d.Value)
	}
	assert.Equal(t, []any{json.Number("17"), json.Number("1.50"), "17", nil, false, "no", json.Number("18"),
		json.Number("12345678901234567890"), "2020-01-01"}, got)
}

func TestBooleanConditions(t *testing.T) {
	for text, want := range map[string]string{"true": "true", "no": "false", "On": "true", `"true"`: "true", "'false'": "false"} {
		definitions := load(t, "state_machines: {m: {states: [{gate: g, exit_condition: "+text+"}]}}")
		assert.Equal(t, want, definitions.Machine("m").First().Gate.Condition.String(), text)
	}
}

// TestPlainScalars loads scalars that YAML 1.1, which the original reads, takes for other types.
func TestPlainScalars(t *testing.T) {
	for text, want := range map[string]any{
		"1e3": json.Number("1e3"), "0o17": json.Number("15"), "08": json.Number("8"), "12:30": "12:30", "2026-01-31": "2026-01-31", "'08'": "08",
	} {
		d := load(t, "state_machines: {m: {states: [{gate: g, exit_condition: true, next: {type: context, path: metadata.x, "+
			"default: g, destinations: [{state: g, value: "+text+"}]}}]}}")
		assert.Equal(t, want, d.Machines[0].States[0].Next.Destinations[0].Value, text)
	}
}

func TestPublisher(t *testing.T) {
	m := load(t, `state_machines: {m: {publish: {topic: t, url: "https://a.example/<label>", publisher: accounts}, states: [{gate: g, exit_condition: true}]}}`)
	assert.EqualValues(t, "accounts", m.Machine("m").Publish.Publisher)
}

func TestMachinesAreInOrder(t *testing.T) {
	definitions := load(t, "state_machines: {b: &m {states: [{gate: g, exit_condition: true}]}, ä b: *m, a: {<<: *m}}")
	var names []machines.Name
	for _, m := range definitions.Machines {
		names = append(names, m.Name)
	}
	assert.Equal(t, []machines.Name{"a", "b", "ä b"}, names)
	assert.Empty(t, load(t, "state_machines: {}").Machines)
}
