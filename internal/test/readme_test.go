package test

import (
	"os"
	"os/exec"
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
	for _, needed := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(needed); err != nil && os.Getenv("CI") == "" {
			t.Skipf("%s is not installed: install it to run this test", needed)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	var walk string
	for _, block := range walkBlock.FindAllStringSubmatch(string(readme), -1) {
		walk += block[1]
	}

	redis := rdbtest.Real(t)
	variable := "ROUTEMASTER_REDIS_URL=" + redis.URL
	web := bustest.StartProcess(t, "web", variable, "ROUTEMASTER_ROOT_KEY=a-long-secret")
	bustest.StartProcess(t, "worker", variable)
	require.Contains(t, walk, "BUS=http://localhost:17890\n")
	walk = strings.Replace(walk, "localhost:17890", web.Address(t), 1)

	bash := exec.CommandContext(t.Context(), "bash", "-eu", "-c", walk)
	bash.Stderr, bash.Env = os.Stderr, append(os.Environ(), "no_proxy=*")
	output, err := bash.Output()
	require.NoError(t, err)
	for _, want := range []string{
		`{"name":"warehouse","token":"warehouse--1"}`, `{"name":"shop","token":"shop--1"}`, "200\n",
		`{"name":"widgets","publisher":"warehouse--1","events":1}`,
		`"subscriber":"shop"`, `"queued":1`, `"pointer":"/type"`,
		`"name":"invoice-shipments"`, `"status":"queued"`, `"attempt":3,"deadline":`, `"status":"succeeded"`,
	} {
		assert.Contains(t, string(output), want)
	}
	assert.Equal(t, 1, strings.Count(string(output), `"status":4`), "one request was wrong: %s", output)
	assert.Equal(t, 2, strings.Count(string(output), `"status":"succeeded"`), "in the look-up and in the archive: %s", output)
	assert.Empty(t, redis.Raw.SMembers(t.Context(), "subscribers").Val(), "the shop has left")
}
