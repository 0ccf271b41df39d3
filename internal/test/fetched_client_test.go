package test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// fetchBlock is a code block of the client's page: commands, or a file for which they are.
var fetchBlock = regexp.MustCompile("(?s)<!-- fetch(?:: (\\S+))? -->\n```[a-z]+\n(.*?)```")

// TestTheClientIsFetchedAsItsPageSays makes a module beside a checkout, and runs its program.
func TestTheClientIsFetchedAsItsPageSays(t *testing.T) {
	t.Parallel()
	module := fetchClient(t)
	required := module.requirements()
	assert.ElementsMatch(t, []string{
		"routemaster/client", "github.com/cenkalti/backoff/v5", "github.com/go-json-experiment/json",
		"github.com/stretchr/testify", "go.yaml.in/yaml/v3", // for the client's tests
	}, slices.Collect(maps.Keys(required)))
	own, err := os.ReadFile(root + "go.mod")
	require.NoError(t, err)
	delete(required, "routemaster/client")
	for path, version := range required {
		assert.Contains(t, string(own), "\t"+path+" "+version, "the client is tested with the versions in go.mod: have client/go.mod require the same")
	}
	built := slices.Compact(slices.Sorted(slices.Values(
		module.lines("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))))
	assert.Equal(t, []string{
		"github.com/cenkalti/backoff/v5", "github.com/go-json-experiment/json", "routemaster/client", "shop.example/widgets",
	}, built)

	bus := bustest.Start(t, rdbtest.Embedded(t))
	address := rdbtest.FreeAddress(t)
	lines := startReceiver(t, address, []string{filepath.Join(module.folder, "widgets")}, "CALLBACK=https://"+address+"/events",
		"ROUTEMASTER_BUS="+bus.API, "ROUTEMASTER_TOKEN="+bus.AddClient("shop"))
	select {
	case line := <-lines:
		assert.Equal(t, "widgets update https://shop.example/widgets/12", line)
	case <-time.After(bustest.WaitTimeout):
		t.Fatal("it has received nothing")
	}
	bus.Drain() // it prints before it answers, and is killed when the test ends
	bus.RequireNothingLeft()
}

// fetchedModule is a module of another program.
type fetchedModule struct {
	t      *testing.T
	folder string
}

// fetchClient follows the client's page, with this checkout in place of the page's repository.
func fetchClient(t *testing.T) fetchedModule {
	t.Helper()
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	parent := t.TempDir()
	require.NoError(t, os.Symlink(checkout, filepath.Join(parent, "routemaster")))
	m := fetchedModule{t, filepath.Join(parent, "widgets")}
	require.NoError(t, os.Mkdir(m.folder, 0o700))
	blocks := fetchBlock.FindAllStringSubmatch(readPages(t)["../../client/README.md"], -1)
	require.Len(t, blocks, 3)
	for _, block := range blocks {
		if file, text := block[1], block[2]; file != "" {
			require.NoError(t, os.WriteFile(filepath.Join(m.folder, file), []byte(text), 0o600))
		} else {
			m.lines("sh", "-eu", "-c", text)
		}
	}
	return m
}

// requirements are the versions of all modules that it requires, directly or not, by their paths.
// Unlike go list -m, this needs no more of them than a build leaves in the cache.
func (m fetchedModule) requirements() map[string]string {
	required := map[string]string{}
	for _, line := range m.lines("go", "mod", "graph") {
		_, to, _ := strings.Cut(line, " ")
		if path, version, _ := strings.Cut(to, "@"); path != "go" && path != "toolchain" {
			required[path] = version
		}
	}
	return required
}

// lines runs a command in the module's folder, and returns its output. Modules come from the cache
// alone, where the build of this test has left them. The command does not use the tests' build
// flags.
func (m fetchedModule) lines(command ...string) []string {
	m.t.Helper()
	run := exec.CommandContext(m.t.Context(), command[0], command[1:]...)
	run.Dir, run.Stderr = m.folder, &rdbtest.Buffer{}
	run.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	output, err := run.Output()
	require.NoError(m.t, err, "%s", run.Stderr)
	return strings.FieldsFunc(string(output), func(r rune) bool { return r == '\n' })
}
