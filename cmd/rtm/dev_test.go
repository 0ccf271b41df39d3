package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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

// runPrinted does what a printed curl command does, and returns the status and the body of the
// answer.
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
			args = append(args, "--redis-url", redis.PatientURL())
		}
		for range 2 { // a second run finds what the first left in a real Redis
			runDev(t, redis, args)
		}
	})
}

func runDev(t *testing.T, redis *rdbtest.Server, args []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	screen, out := io.Pipe()
	var log bytes.Buffer
	exited := make(chan int)
	go func() {
		status := run(ctx, args, out, &log)
		_ = out.Close()
		exited <- status
	}()
	lines := bufio.NewScanner(screen)
	// until reads the screen up to a line with a text, and returns the lines with curl on the way.
	until := func(text string) (commands []string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), "curl ") {
				commands = append(commands, lines.Text())
			}
			if strings.Contains(lines.Text(), text) {
				return commands
			}
		}
		t.Fatalf("it does not print %q; its log: %s", text, log.String())
		return nil
	}
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

	stop()
	go func() { _, _ = io.Copy(io.Discard, screen) }()
	select {
	case status := <-exited:
		assert.Equal(t, app.ExitOK, status)
	case <-time.After(20 * time.Second):
		t.Fatal("it does not stop")
	}
	assert.Empty(t, log.String())
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"--nonsense"}, {"dev", "extra"}, {"dev", "--port", "x"}, {"dev", "--redis-url", "http://x"},
		{"bench", "extra"}, {"bench", "--scenario", "nonsense"}, {"bench", "--bus", "http://x"}, {"bench", "--duration", "x"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitUsage, run(t.Context(), args, &stdout, &stderr), args)
		assert.True(t, strings.HasPrefix(stderr.String(), "rtm: "), stderr.String())
		assert.Contains(t, stderr.String(), "--help", "it says where to read what is right")
		assert.Empty(t, stdout.String())
	}
	for _, args := range [][]string{{"-version"}, {"--version"}, {"-h"}, {"dev", "-h"}, {"bench", "-h"}} {
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
