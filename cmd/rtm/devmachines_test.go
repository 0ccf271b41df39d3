package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/machines/definition"
	"routemaster/internal/rdb/rdbtest"
)

const welcome = "../../examples/machines/welcome.yaml"

var (
	// walkedBlock is a [walkBlock], and the output that the page shows below it.
	walkedBlock = regexp.MustCompile(walkBlock.String() + "\n\n```\n(.*?)```")
	// changing matches the parts that differ between runs: times, and the space between the parts of a
	// value.
	changing = regexp.MustCompile(`\s|\d{13}|\d{4}-\d\d-\d\dT[\d:.]+Z`)
	// notes are lines without a definition.
	notes = regexp.MustCompile(`(?m)^ *(#.*)?\n`)
)

// TestDevRunsTheExampleMachine pastes the blocks of docs/machines.md, and compares their output
// with the page's. The environment has other machines, and a service for jobs.
func TestDevRunsTheExampleMachine(t *testing.T) {
	rdbtest.NeedCommand(t, "bash")
	rdbtest.NeedCommand(t, "curl")
	page, err := os.ReadFile("../../docs/machines.md")
	require.NoError(t, err)
	example, err := os.ReadFile(welcome)
	require.NoError(t, err)
	assert.Contains(t, string(page), "```yaml\n"+notes.ReplaceAllString(string(example), "")+"```", "the page shows the example")
	blocks := walkedBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, strings.Count(string(page), "<!-- walk -->"), "each shows its output")
	var walk, want string
	for _, block := range blocks {
		walk += block[1]
		want += block[2]
	}

	t.Setenv("ROUTEMASTER_MACHINES", "missing.yaml")
	t.Setenv("DOWNSTREAM_URL", "http://127.0.0.1:9")
	t.Setenv("DOWNSTREAM_WORKER_AUTH", "s3cret")
	until, stop := startDev(t, []string{"dev", "--port", "0", "--machines", welcome})
	until("-> applied 1 machine, 5 states:")
	until("   welcome: signed_up, send_welcome, looking_around, send_tips, done")
	printed := curl.FindStringSubmatch(until("# make a label")[0])
	until("Ctrl-C stops it. Jobs go to http://127.0.0.1:9. What the subscriber and the service receive is printed here:")
	api, _, _ := strings.Cut(printed[2], "/topics/")
	for _, replaced := range [][2]string{{"http://127.0.0.1:17890", api}, {"dev--4e92", printed[1]}} {
		require.Contains(t, walk, replaced[0])
		walk = strings.ReplaceAll(walk, replaced[0], replaced[1])
	}
	bash := exec.CommandContext(t.Context(), "bash", "-eu", "-c", walk)
	var output bytes.Buffer
	bash.Stdout, bash.Stderr, bash.Env = &output, os.Stderr, append(os.Environ(), "no_proxy=*")
	require.NoError(t, bash.Start())
	until("<- POST /welcome/send_welcome/user-7 (X-Idempotency-Token: ")
	until(`): {"label":"user-7","metadata":{"confirmed":true,"plan":"gold"}}`)
	require.NoError(t, bash.Wait())
	assert.Equal(t, changing.ReplaceAllString(want, ""), changing.ReplaceAllString(output.String(), ""))
	stop()
}

// TestDevRefusesWrongMachines requires that nothing is started: no line says so.
func TestDevRefusesWrongMachines(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("state_machines:\n  m:\n    states: 7\n"), 0o600))
	for files, want := range map[string][2]string{
		wrong:          {wrong + ":3:13: states must be a list; this is a number\n", "rtm: --machines: the definition has 1 problem; nothing was started\n"},
		"missing.yaml": {"", "rtm: --machines: open missing.yaml: "},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitFailed, run(t.Context(), []string{"dev", "--port", "0", "--machines", files}, &stdout, &stderr), files)
		assert.Contains(t, stdout.String(), want[0])
		assert.Contains(t, stderr.String(), want[1])
		assert.NotContains(t, stdout.String(), "Routemaster runs")
	}
}

// TestDevKeepsLabelsWhoseStateWouldVanish requires one line that says why it has ended.
func TestDevKeepsLabelsWhoseStateWouldVanish(t *testing.T) {
	redis := rdbtest.Embedded(t)
	args := []string{"dev", "--port", "0", "--redis-url", redis.URL, "--machines"}
	until, stop := startDev(t, append(args, welcome))
	add := strings.Fields(until("Ctrl-C stops it")[0]) // the first command with curl: user and URL
	api, _, _ := strings.Cut(add[4], "/topics/")
	var stdout, stderr bytes.Buffer
	label := []string{"label", "add", "welcome", "user-7", "-b", api, "-t", strings.TrimSuffix(add[3], ":")}
	require.Equal(t, app.ExitOK, run(t.Context(), label, &stdout, &stderr), stderr.String())
	stop()
	err := run(t.Context(), append(args, "../../examples/machines/drip-feed.yaml"), &stdout, &stderr)
	assert.Equal(t, app.ExitFailed, err)
	assert.Regexp(t, `^rtm: --machines: .* welcome.signed_up \(1\); .* then `+"`rtm machine apply --move=welcome.signed_up:NEW ../../examples/machines/drip-feed.yaml`"+`\n$`, stderr.String())
}

func TestCommandsToTryWithAMachine(t *testing.T) {
	d := devBus{api: "http://bus"}
	assert.Empty(t, d.machineCommands("t"))
	for condition, want := range map[string]string{
		"metadata.user.plan":       `bin/rtm label set 'it'\''s mine' user-7 user.plan=true -b http://bus -t t` + "\n",
		"metadata.user.plan.n > 1": "", // evaluating a proposal must not fail
	} {
		yaml := `state_machines: {it's mine: {states: [{action: a, webhook: "https://a.example", next: b}, ` +
			`{gate: b, triggers: [event: entry, metadata: user.plan], exit_condition: ` + condition + `}]}}`
		var err error
		d.machines, _, err = definition.Load(definition.File{Content: []byte(yaml)})
		require.NoError(t, err)
		assert.Contains(t, d.machineCommands("t"), want)
		assert.Equal(t, want != "", strings.Contains(d.machineCommands("t"), "label set"))
	}
}
