package test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// walkBlock is a code block that is to be pasted.
var walkBlock = regexp.MustCompile("(?s)<!-- walk -->\n```sh\n(.*?)```")

// TestTheReadmesWalkWorksWhenPasted runs the README's curl commands against processes started as it
// says.
func TestTheReadmesWalkWorksWhenPasted(t *testing.T) {
	t.Parallel()
	rdbtest.NeedCommand(t, "bash")
	rdbtest.NeedCommand(t, "curl")
	rdbtest.NeedCommand(t, "openssl")
	rdbtest.NeedCommand(t, "python3")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	var walk string
	for _, block := range walkBlock.FindAllStringSubmatch(string(readme), -1) {
		walk += block[1]
	}

	redis := rdbtest.Real(t)
	variable := "ROUTEMASTER_REDIS_URL=" + redis.URL
	web := bustest.StartProcess(t, "web", variable, "ROUTEMASTER_ROOT_KEY=a-long-enough-secret")
	bustest.StartProcess(t, "worker", variable)
	require.Contains(t, walk, "BUS=http://localhost:17890\n")
	walk = strings.Replace(walk, "localhost:17890", web.Address(t), 1)

	_, port, _ := net.SplitHostPort(rdbtest.FreeAddress(t))
	walk = strings.ReplaceAll(walk, "8443", port)
	examples, err := filepath.Abs("../../examples")
	require.NoError(t, err)
	directory := t.TempDir()
	require.NoError(t, os.Symlink(examples, filepath.Join(directory, "examples")))
	bash := exec.CommandContext(t.Context(), "bash", "-eu", "-c", walk)
	bash.Dir, bash.Stderr, bash.Env = directory, os.Stderr, append(os.Environ(), "no_proxy=*")
	output, err := bash.Output()
	require.NoError(t, err)
	for _, want := range []string{
		`{"name":"warehouse","token":"warehouse--1"}`, `{"name":"shop","token":"shop--1"}`, "200\n",
		`{"name":"widgets","publisher":"warehouse--1","events":1}`,
		`"subscriber":"shop"`, "widgets update https://warehouse.example/widgets/12\n", `"pointer":"/type"`,
	} {
		assert.Contains(t, string(output), want)
	}
	assert.Equal(t, 1, strings.Count(string(output), `"status":4`), "one request was wrong: %s", output)
	assert.False(t, redis.Raw.SIsMember(t.Context(), "subscribers", "shop--1").Val(), "the shop has left")
}
