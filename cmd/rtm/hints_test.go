package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client/machines"
	"routemaster/internal/app"
)

// shell runs commands as they are printed, in a shell that has a bus and a token, and a Redis.
type shell struct {
	*testBus
	directory, redisURL string
}

func newShell(t *testing.T, b *testBus) *shell {
	return &shell{b, installRtm(t), b.redis.URL}
}

// run cuts the command out of a text that begins as given, replaces placeholders, and runs it.
func (s *shell) run(t *testing.T, token, text, begins string, placeholders ...string) (stdout string) {
	t.Helper()
	_, after, found := strings.Cut(text, "`rtm "+begins)
	require.True(t, found, "%q must advise %q", text, begins)
	command, _, found := strings.Cut(after, "`")
	require.True(t, found, text)
	command = "rtm " + begins + strings.NewReplacer(placeholders...).Replace(command)
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "PATH="+s.directory+":"+os.Getenv("PATH"), "HOME="+s.directory,
		"ROUTEMASTER_BUS="+s.url, "ROUTEMASTER_TOKEN="+token, "ROUTEMASTER_REDIS_URL="+s.redisURL, "ROUTEMASTER_ROOT_KEY="+rootKey)
	var out, failures bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &failures
	require.NoError(t, shell.Run(), "%s: %s%s", command, out.String(), failures.String())
	return out.String()
}

// problem sends a request that the bus refuses, and returns the detail.
func (b *testBus) problem(t *testing.T, token, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.SetBasicAuth(token, "")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var refused struct{ Detail string }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&refused))
	require.GreaterOrEqual(t, response.StatusCode, 400, path)
	return refused.Detail
}

// TestHintsOfProblemsRun provokes each problem of the API that advises a command, and runs that
// command. Names need quotes, and look like flags.
func TestHintsOfProblemsRun(t *testing.T) {
	b := startBus(t)
	s, shop := newShell(t, b), b.addClient(t, "shop")
	var fails atomic.Bool
	fails.Store(true)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(service.Close)
	definition := func(clients string) string {
		file := filepath.Join(t.TempDir(), "machines.yaml")
		require.NoError(t, os.WriteFile(file, []byte(`
state_machines:
  it's mine:
    `+clients+`
    states:
      - {gate: begun, triggers: [{metadata: go}], exit_condition: metadata.go, next: act}
      - {action: act, attempts: 1, webhook: "`+service.URL+`/", next: end}
      - {gate: end, exit_condition: false}
`), 0o600))
		return file
	}
	status, out, said := b.rtm(t, rootKey, "machine", "apply", definition("clients: [another]"))
	require.Equal(t, app.ExitOK, status, out+said)

	const machine, label = "/state-machines/it's%20mine", "/labels/-$(id)%20%22x"
	assert.Contains(t, s.run(t, shop, b.problem(t, shop, "GET", "/state-machines/another", ""), "machine list"), "it's mine")
	s.run(t, rootKey, b.problem(t, shop, "POST", machine+label, `{"metadata":{}}`), "machine apply", "FILE", definition(""))

	show := func() machines.Status {
		status, err := machines.Of(b.connect(t, shop), "it's mine").Label(t.Context(), `-$(id) "x`)
		require.NoError(t, err)
		return status
	}
	s.run(t, shop, b.problem(t, shop, "GET", machine+label, ""), "label add")
	assert.Equal(t, "begun", show().State)
	s.run(t, shop, b.problem(t, shop, "POST", machine+label, `{"metadata":{}}`), "label set", "PATH=VALUE", "go=true")
	errored := func() bool { return show().Errored != nil }
	require.Eventually(t, errored, soon, 10*time.Millisecond)
	fails.Store(false)
	s.run(t, shop, b.problem(t, shop, "POST", machine+label+"/evaluate", ""), "label retry")
	require.Eventually(t, func() bool { return show().State == "end" }, soon, 10*time.Millisecond)

	s.run(t, shop, b.problem(t, shop, "GET", "/subscriber", ""), "sub add", "URL", "https://shop.example/", "TOPIC", "widgets")
	subscriptions, err := b.connect(t, rootKey).Subscriptions(t.Context())
	require.NoError(t, err)
	assert.Len(t, subscriptions, 1)
}

// TestHintsOfGoingBackRun runs the commands that the errors of going back to the original advise.
func TestHintsOfGoingBackRun(t *testing.T) {
	b := startBus(t)
	s, shop := newShell(t, b), b.addClient(t, "shop")
	for _, args := range [][]string{
		{"pub", "updated", "widgets", "https://shop.example/1"}, {"topic", "history", "widgets", "--age", "1h"}, {"sub", "add", "https://u@shop.example/", "widgets"},
	} {
		status, _, said := b.rtm(t, shop, args...)
		require.Equal(t, app.ExitOK, status, said)
	}
	rotated, err := b.connect(t, rootKey).RotateToken(t.Context(), shop, true, nil)
	require.NoError(t, err)

	back := func() string {
		status, _, said := runMigrate(t, "--back", "--redis-url", b.redis.URL)
		require.Equal(t, app.ExitFailed, status)
		assert.NotContains(t, said, shop)
		assert.NotContains(t, said, rotated.Token)
		return said
	}
	for range 2 { // the order in which the errors come does not matter
		switch said := back(); {
		case strings.Contains(said, "history"):
			s.run(t, rootKey, said, "topic history")
		default:
			s.run(t, rootKey, said, "token rotate")
		}
	}
	tokens, err := b.connect(t, rootKey).Tokens(t.Context())
	require.NoError(t, err)
	require.Len(t, tokens, 1)
	assert.Equal(t, rotated.Token, tokens[0].Token)
}
