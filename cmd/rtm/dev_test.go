package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "rtm" { // scripts run the test binary under that name: see installRtm
		main()
	}
	rdbtest.Main(m)
}

// curl is a printed command: user, URL, method and body.
var curl = regexp.MustCompile(`curl \S+ -u (\S+): (\S+)(?: -X (\S+))?(?: -d '(.*)')?`)

// runPrinted sends the request of a printed curl command, and returns the status and the body of
// the response.
func runPrinted(t *testing.T, line string) (status int, body string) {
	t.Helper()
	words := curl.FindStringSubmatch(line)
	require.NotNil(t, words, line)
	method := cmp.Or(words[3], http.MethodGet)
	if words[3] == "" && words[4] != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, words[2], strings.NewReader(words[4]))
	require.NoError(t, err)
	req.SetBasicAuth(words[1], "")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestDevShowsADeliveryAndCommandsThatWork(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, redis *rdbtest.Server) {
		args := []string{"dev", "--port", "0"}
		if !redis.IsEmbedded() {
			args = append(args, "--redis-url", redis.URL)
		}
		for range 2 { // a second run finds the data that the first left in a real Redis
			runDev(t, redis, args)
		}
	})
}

// inBrowser is the line with the address of the console, and the key that logs in there.
var inBrowser = regexp.MustCompile(`in a browser: (\S+) \(log in with (\S+), the root key\)`)

// requireLogin logs in to the console as a line says.
func requireLogin(t *testing.T, line string) {
	t.Helper()
	words := inBrowser.FindStringSubmatch(line)
	require.NotNil(t, words, line)
	form := strings.NewReader("secret=" + words[2])
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, words[1]+"login", form)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusSeeOther, resp.StatusCode)
	assert.NotEmpty(t, resp.Cookies())
}

// startDev runs rtm dev. until reads its screen up to a line with a text, and returns the lines
// with curl on the way, or the one with the console if it was asked for; stop ends it and requires
// that it has logged nothing that a busy host does not explain.
func startDev(t *testing.T, args []string) (until func(text string) (commands []string), stop func()) {
	t.Helper()
	read, stop := startDevScreen(t, args)
	return func(text string) []string {
		t.Helper()
		commands, _ := read(text)
		return commands
	}, stop
}

// startDevScreen is [startDev], but read also returns all lines.
func startDevScreen(t *testing.T, args []string) (read func(text string) (commands, all []string), stop func()) {
	t.Helper()
	if os.Getenv("XDG_STATE_HOME") == "" {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
	}
	ctx, cancel := context.WithCancel(t.Context())
	screen, out := io.Pipe()
	var log bytes.Buffer
	exited := make(chan int)
	go func() {
		status := run(ctx, args, out, &log)
		_ = out.Close()
		exited <- status
	}()
	lines := bufio.NewScanner(screen)
	read = func(text string) (commands, all []string) {
		t.Helper()
		for lines.Scan() {
			all = append(all, lines.Text())
			found := strings.Contains(lines.Text(), text)
			if strings.Contains(lines.Text(), "curl ") || found && inBrowser.MatchString(lines.Text()) {
				commands = append(commands, lines.Text())
			}
			if found {
				return commands, all
			}
		}
		t.Fatalf("it does not print %q; its log: %s", text, log.String())
		return nil, nil
	}
	stop = func() {
		t.Helper()
		cancel()
		go func() { _, _ = io.Copy(io.Discard, screen) }()
		select {
		case status := <-exited:
			assert.Equal(t, app.ExitOK, status)
		case <-time.After(time.Minute):
			t.Fatal("it does not stop")
		}
		assert.Empty(t, unexplained(log.String()))
	}
	return read, stop
}

// unexplained returns the lines of a log that neither a busy host, on which Redis may answer later
// than a reader waits, nor the Redis of a test explains, which keeps nothing on disk.
func unexplained(log string) (lines []string) {
	late := false
	for line := range strings.Lines(log) {
		if strings.Contains(line, "i/o timeout") || strings.Contains(line, "deadline exceeded") {
			late = true
		} else if strings.Contains(line, "it keeps nothing on disk") {
			continue
		} else if !late || !strings.Contains(line, "redis available again") {
			lines = append(lines, line)
		}
	}
	return lines
}

func runDev(t *testing.T, redis *rdbtest.Server, args []string) {
	t.Helper()
	until, stop := startDev(t, args)
	requireLogin(t, until("in a browser: ")[0])
	if redis.IsEmbedded() {
		until("keeps nothing after exit and has no memory limit")
	}
	until("-> published to widgets: ")
	until(`: [{"topic":"widgets","type":"create","url":"https://example.com/widgets/1",`)
	until("-> enqueued as a job of paint-widgets: ")
	until(`: {"data":{"widget":1,"colour":"blue"},"attempts":3,"id":"job_`)
	until("-> reported: attempt 3 succeeded")
	until("   archived as succeeded after ")
	commands := until("Ctrl-C stops it")
	require.Len(t, commands, 8)
	var statuses []int
	var bodies []string
	for i, command := range commands {
		status, body := runPrinted(t, command)
		statuses, bodies = append(statuses, status), append(bodies, body)
		switch i {
		case 0:
			until(`<- [{"topic":"widgets","type":"update"`)
		case 2:
			until(`<- [{"topic":"gadgets","type":"noop"`) // after the timeout of 2 s
		case 3:
			until("-> reported: attempt 3 succeeded")
		}
	}
	assert.Equal(t, []int{200, 204, 200, 202, 200, 200, 200, 201}, statuses)
	assert.Contains(t, bodies[4], `"widgets"`)
	assert.Contains(t, bodies[5], `"timeout":2000`)
	assert.Contains(t, bodies[6], `"status":"succeeded"`)
	if redis.IsEmbedded() { // a real Redis keeps the walk's jobs for the second run
		pasteWalkOfJobs(t, commands[0], until)
	}

	stop()
}

// TestDevStaysTheSameFromStartToStart pastes the two lines of the first run, restarts it on the
// same port, and runs rtm without a flag. The root key's file is only for the user.
func TestDevStaysTheSameFromStartToStart(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	_, port, err := net.SplitHostPort(rdbtest.FreeAddress(t))
	require.NoError(t, err)
	args := []string{"dev", "--port", port}
	var first []string
	for range 2 {
		read, stop := startDevScreen(t, args)
		_, lines := read("Ctrl-C stops it")
		var exports []string
		for _, line := range lines {
			if export, ok := strings.CutPrefix(line, "  export "); ok {
				name, value, _ := strings.Cut(export, "=")
				exports = append(exports, name, value)
			}
		}
		require.Len(t, exports, 4, "two lines")
		if first == nil {
			first = exports
			t.Setenv(exports[0], exports[1])
			t.Setenv(exports[2], exports[3])
		}
		assert.Equal(t, first, exports)
		var stdout, stderr bytes.Buffer
		require.Equal(t, app.ExitOK, run(t.Context(), []string{"topic", "list"}, &stdout, &stderr), stderr.String())
		assert.Contains(t, stdout.String(), "widgets\t")
		stop()
	}
	kept, err := os.Stat(filepath.Join(state, "routemaster", "dev-root-key"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), kept.Mode().Perm())
}

func TestDevGivesJobsToTheServiceOfTheEnvironment(t *testing.T) {
	taken := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		taken <- user + ":" + password
		_, _ = io.WriteString(w, `{"status":"succeeded"}`)
	}))
	defer service.Close()
	t.Setenv("DOWNSTREAM_URL", service.URL)
	t.Setenv("DOWNSTREAM_WORKER_AUTH", "s3cret")
	until, stop := startDev(t, []string{"dev", "--port", "0"})
	for _, command := range until("Ctrl-C stops it. Jobs go to " + service.URL + ". What the subscriber receives is printed here:") {
		if strings.Contains(command, "/random_id") {
			status, body := runPrinted(t, command)
			assert.Equal(t, 202, status, body)
		}
	}
	select {
	case credentials := <-taken:
		assert.Equal(t, "jobs:s3cret", credentials)
	case <-time.After(time.Minute):
		t.Error("the service gets no job")
	}
	stop()
}

// walkBlock is a code block that is to be pasted.
var walkBlock = regexp.MustCompile("(?s)<!-- walk -->\n```sh\n(.*?)```")

// pasteWalkOfJobs pastes the blocks of docs/jobs.md into a shell, each when the job of the block
// before is done. The printed command has the address and the token.
func pasteWalkOfJobs(t *testing.T, printed string, until func(text string) []string) {
	t.Helper()
	for _, needed := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(needed); err != nil && os.Getenv("CI") == "" {
			t.Logf("%s is not installed: install it to test the walk of docs/jobs.md", needed)
			return
		}
	}
	page, err := os.ReadFile("../../docs/jobs.md")
	require.NoError(t, err)
	blocks := walkBlock.FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 3)
	words := curl.FindStringSubmatch(printed)
	api, _, _ := strings.Cut(words[2], "/topics/")
	first := strings.NewReplacer("http://127.0.0.1:17890", api, "dev--4e92", words[1]).Replace(blocks[0][1])
	require.NotEqual(t, blocks[0][1], first)

	bash := exec.CommandContext(t.Context(), "bash", "-eu")
	var output bytes.Buffer
	bash.Stdout, bash.Stderr, bash.Env = &output, os.Stderr, append(os.Environ(), "no_proxy=*")
	shell, err := bash.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, bash.Start())
	for _, block := range []string{first, blocks[1][1]} {
		_, err = io.WriteString(shell, block)
		require.NoError(t, err)
		until("-> reported: attempt 3 succeeded")
	}
	_, err = io.WriteString(shell, blocks[2][1])
	require.NoError(t, err)
	require.NoError(t, shell.Close())
	require.NoError(t, bash.Wait(), output.String())
	assert.NotContains(t, output.String(), `"status":4`, "no request was wrong")
	assert.Contains(t, output.String(), `[{"id":"job_9d1a3c58-54f0-4b54-8a8f-0b7e4f0c2a11",`, "it is fetched")
	assert.True(t, strings.HasSuffix(output.String(), "200\n"), output.String())
	assert.GreaterOrEqual(t, strings.Count(output.String(), `"status":"succeeded"`), 2, "in the look-up and in the archive")
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"--nonsense"}, {"dev", "extra"}, {"dev", "--port", "x"}, {"dev", "--redis-url", "http://x"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitUsage, run(t.Context(), args, &stdout, &stderr), args)
		assert.True(t, strings.HasPrefix(stderr.String(), "rtm: "), stderr.String())
		assert.Contains(t, stderr.String(), "--help", "it says where to read what is right")
		assert.Empty(t, stdout.String())
	}
	for _, args := range [][]string{{"-version"}, {"--version"}, {"-h"}, {"dev", "-h"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitOK, run(t.Context(), args, &stdout, &stderr), args)
		assert.NotEmpty(t, stdout.String())
		assert.Empty(t, stderr.String())
	}
	t.Setenv("ROUTEMASTER_WORKER_THREADS", "many")
	var stdout, stderr bytes.Buffer
	assert.Equal(t, app.ExitUsage, run(t.Context(), []string{"dev"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "ROUTEMASTER_WORKER_THREADS")
}

// TestKeysExpireInTheEmbeddedEngine waits for a key to go, on which for example the history of the
// figures relies.
func TestKeysExpireInTheEmbeddedEngine(t *testing.T) {
	engine := miniredis.RunT(t)
	require.NoError(t, engine.Set("turn", "1"))
	engine.SetTTL("turn", time.Second)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- passTime(ctx, engine) }()
	require.Eventually(t, func() bool { return !engine.Exists("turn") }, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}
