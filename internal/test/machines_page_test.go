package test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

var (
	// walkedBlock is a code block that is to be pasted, and the output that the page shows below it.
	walkedBlock = regexp.MustCompile("(?s)<!-- walk -->\n```sh\n(.*?)```\n\n```\n(.*?)```")
	// changing is what each run has others of: times, and the space between the parts of a value.
	changing = regexp.MustCompile(`\s|\d{13}|\d{4}-\d\d-\d\dT[\d:.]+Z`)
)

// TestTheWalkOfThePageOfMachines pastes the blocks of docs/machines.md, and compares what they
// print with what the page shows.
func TestTheWalkOfThePageOfMachines(t *testing.T) {
	for _, needed := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(needed); err != nil && os.Getenv("CI") == "" {
			t.Skipf("%s is not installed: install it to run this test", needed)
		}
	}
	page, err := os.ReadFile("../../docs/machines.md")
	require.NoError(t, err)
	blocks := walkedBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, strings.Count(string(page), "<!-- walk -->"), "each shows its output")
	var walk, want string
	for _, block := range blocks {
		walk += block[1]
		want += block[2]
	}

	bus, service := bustest.Start(t, rdbtest.Embedded(t)), machinestest.NewService(t)
	service.Answer(machinestest.With(204, ""))
	for _, replaced := range [][2]string{
		{"http://127.0.0.1:17890", bus.API}, {"dev--4e92", bus.AddClient("dev")}, {"root-UWBJ", bustest.RootKey},
		{"http://localhost:4000", service.URL},
	} {
		require.Contains(t, walk, replaced[0])
		walk = strings.ReplaceAll(walk, replaced[0], replaced[1])
	}
	bash := exec.CommandContext(t.Context(), "bash", "-eu", "-c", walk)
	bash.Dir, bash.Stderr, bash.Env = t.TempDir(), os.Stderr, append(os.Environ(), "no_proxy=*")
	output, err := bash.Output()
	require.NoError(t, err)
	assert.Equal(t, changing.ReplaceAllString(want, ""), changing.ReplaceAllString(string(output), ""))

	var printed strings.Builder
	for _, call := range service.Calls() {
		printed.WriteString(call.Path + " " + call.Body.Label + "\n")
	}
	assert.Equal(t, "/welcome/user-7 user-7\n/invoice/user-7 user-7\n", printed.String())
}
