package test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/store/storetest"
)

// process is a daemon that runs as a process of its own.
type process struct {
	*exec.Cmd
	// started is the first line of its log.
	started map[string]any
	// log is the lines after that, complete once logged is closed.
	log    []string
	logged chan struct{}
	mu     sync.Mutex // for the log before that
}

// startProcess starts a daemon and waits until it is up.
func startProcess(t *testing.T, name string, variables ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0]), name, variables...)
}

// startCommand is startProcess with a command that becomes the daemon.
func startCommand(t *testing.T, command *exec.Cmd, name string, variables ...string) *process {
	t.Helper()
	p := &process{Cmd: command, logged: make(chan struct{})}
	p.Env = append(os.Environ(), daemonVariable+"="+name, "ROUTEMASTER_ROOT_KEY="+rootKey, "FORCE_SSL=no",
		"ROUTEMASTER_SSL_VERIFY=no", "ROUTEMASTER_CALLBACK_DENY=none", "PORT=0", "ROUTEMASTER_LOG_FORMAT=json")
	p.Env = append(p.Env, variables...) // the last one of a name counts
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s logged:\n%s", name, strings.Join(p.log, "\n"))
		}
	})
	lines := bufio.NewScanner(stderr)
	up, first := lines.Scan(), lines.Text()
	go func() { // until the process ends
		defer close(p.logged)
		for lines.Scan() {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
		}
	}()
	require.True(t, up, "%s says nothing", name)
	require.NoError(t, json.Unmarshal([]byte(first), &p.started), first)
	return p
}

// logSoFar is its log after the first line.
func (p *process) logSoFar() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "\n")
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.wait()
}

// stop asks a process to stop, and waits for it.
func (p *process) stop() error {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.wait()
}

func (p *process) wait() error {
	<-p.logged
	return p.Wait()
}

func address(t *testing.T, line map[string]any) string {
	t.Helper()
	listening, ok := line["address"].(string)
	require.True(t, ok, "%v", line)
	_, port, err := net.SplitHostPort(listening)
	require.NoError(t, err)
	return "127.0.0.1:" + port
}

// TestABulkLoadTakesLittleMemory sends many large requests at once and looks at the peak memory of web.
func TestABulkLoadTakesLittleMemory(t *testing.T) {
	const requests, publishers, events = 200, 8, 1000
	redis := storetest.Real(t)
	require.NoError(t, redis.Open(t).PutToken(t.Context(), "publisher--1", "publisher"))
	const alike = "GOMAXPROCS=2" // on every machine: what each processor has is small, but not with the race detector
	web := startProcess(t, "web", "ROUTEMASTER_REDIS_URL="+redis.URL, alike)
	api, client := "http://"+address(t, web.started), newClient(t)
	var all []string
	for i := range events {
		all = append(all, eventBody(i))
	}
	body := "[" + strings.Join(all, ",") + "]"
	var loading sync.WaitGroup
	for range publishers {
		loading.Go(func() {
			for range requests / publishers {
				status, text, err := send(client, api, "publisher--1", "POST", "/topics/widgets", body)
				assert.NoError(t, err)
				assert.Equal(t, http.StatusOK, status, text)
			}
		})
	}
	loading.Wait()
	assert.Equal(t, strconv.Itoa(requests*events), redis.Raw.HGet(t.Context(), "topic:widgets", "counter").Val())

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", web.Process.Pid))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("only Linux tells a process's peak memory")
	}
	require.NoError(t, err)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(peak)[0])
	require.NoError(t, err)
	t.Logf("web's peak memory after %d events: %d kB", requests*events, kilobytes)
	assert.Less(t, kilobytes, 100_000)
}

// TestSignalsStopDaemonsGracefully sends the documented signals.
func TestSignalsStopDaemonsGracefully(t *testing.T) {
	redis := storetest.Real(t)
	for _, name := range []string{"web", "worker"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
			daemon := startProcess(t, name, "ROUTEMASTER_REDIS_URL="+redis.URL)
			require.NoError(t, daemon.Process.Signal(sig))
			assert.NoError(t, daemon.wait(), "%s on %v", name, sig)
		}
	}
	assert.Empty(t, redis.Raw.Keys(t.Context(), "workers").Val())
}
