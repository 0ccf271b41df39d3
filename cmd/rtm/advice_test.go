package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// adviceMachine is a machine with a label that gets advice.
const adviceMachine = `
state_machines:
  trial:
    states:
      - {gate: begun, triggers: [{metadata: x}], exit_condition: metadata.x}
`

// TestWhatTheBusAdvisesRuns runs each command that the overview and the example alerts name, as
// printed, with the root key. NAME is a label.
func TestWhatTheBusAdvisesRuns(t *testing.T) {
	b := startBus(t)
	shop := b.addClient(t, "shop")
	b.subscribe(t, shop, "https://shop.example/")
	for _, args := range [][]string{
		{"job", "type", "add", "mail", "--strategy", "at_least_once", "--attempts", "3", "--concurrency", "5", "--pull"},
		{"label", "add", "trial", "ann"},
	} {
		if args[0] == "label" {
			file := t.TempDir() + "/machines.yaml"
			require.NoError(t, os.WriteFile(file, []byte(adviceMachine), 0o600))
			status, _, said := b.rtm(t, rootKey, "machine", "apply", file)
			require.Equal(t, app.ExitOK, status, said)
		}
		status, _, said := b.rtm(t, shop, args...)
		require.Equal(t, app.ExitOK, status, said)
	}
	s := newShell(t, b)
	partitions, divided := *s, rdbtest.Embedded(t)
	partitions.redisURL = "redis+cluster://" + strings.TrimPrefix(divided.URL, "redis://")
	require.NoError(t, store.CreateBus(t.Context(), divided.Open(t), "", 12))
	texts := []string{adviceOfTheOverview()}
	alerts, err := os.ReadFile("../../examples/alerts.yaml")
	require.NoError(t, err)
	texts = append(texts, strings.NewReplacer(
		"{{ $labels.machine }}", "trial", "{{ $labels.subscriber }}", "shop", "{{ $labels.job_type }}", "mail").Replace(strings.Join(strings.Fields(string(alerts)), " ")))
	ran := 0
	for _, command := range regexp.MustCompile("`rtm ([^`]*)`").FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		of := s
		if strings.HasPrefix(command[1], "cluster ") {
			of = &partitions
		}
		of.run(t, rootKey, command[0], "", "NAME", "ann")
		ran++
	}
	assert.Greater(t, ran, 12)
}

// adviceOfTheOverview is the overview's text for a bus with every problem that has a command as its
// remedy.
func adviceOfTheOverview() (text string) {
	s := overview.Sample{
		At: time.Now(), Lost: []bus.DataLoss{{Kind: bus.DataEmpty}}, Damaged: []string{"x"}, Held: []int{4, 7}, Away: []int{5},
		Subscribers: []overview.SubscriberState{{Name: "shop", Dead: 3, Health: 100}},
		Machines:    []overview.MachineState{{Name: "trial", Errored: 1}},
	}
	var sampler overview.Sampler
	figures := sampler.Add(s)
	overview.Judge(&figures, s, nil)
	for _, p := range figures.Problems {
		text += p.Detail + "\n"
	}
	return text
}
