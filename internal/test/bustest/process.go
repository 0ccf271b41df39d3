package bustest

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Process is a daemon that runs as a process of its own. It logs JSON.
type Process struct {
	*exec.Cmd
	// Started is the first line of its log, once it is up.
	Started map[string]any

	name   string
	first  chan string // the first line, or closed if there is none
	mu     sync.Mutex
	log    []string      // the lines after the first
	logged chan struct{} // closed once the log is complete
}

// StartProcess starts the test binary as a daemon, "web" or "worker", and waits until it is up. The
// package's TestMain must call [Main]. The last variable of a name counts.
func StartProcess(t testing.TB, name string, variables ...string) *Process {
	t.Helper()
	return StartCommand(t, exec.Command(os.Args[0]), name, variables...)
}

// BeginProcess is [StartProcess] without the wait.
func BeginProcess(t testing.TB, name string, variables ...string) *Process {
	t.Helper()
	return begin(t, exec.Command(os.Args[0]), name, variables...)
}

// StartCommand is [StartProcess] with a command that becomes the test binary.
func StartCommand(t testing.TB, command *exec.Cmd, name string, variables ...string) *Process {
	t.Helper()
	p := begin(t, command, name, variables...)
	p.AwaitStart(t)
	return p
}

func begin(t testing.TB, command *exec.Cmd, name string, variables ...string) *Process {
	t.Helper()
	p := &Process{Cmd: command, name: name, first: make(chan string, 1), logged: make(chan struct{})}
	p.Env = append(os.Environ(), daemonVariable+"="+name, "ROUTEMASTER_ROOT_KEY="+RootKey, "FORCE_SSL=no",
		"ROUTEMASTER_SSL_VERIFY=no", "ROUTEMASTER_CALLBACK_DENY=none", "PORT=0", "ROUTEMASTER_LOG_FORMAT=json")
	p.Env = append(p.Env, variables...)
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s logged:\n%s", name, p.LogText())
		}
	})
	go func() { // until the process ends
		defer close(p.logged)
		lines := bufio.NewScanner(stderr)
		if lines.Scan() {
			p.first <- lines.Text()
		}
		close(p.first)
		for lines.Scan() {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
		}
	}()
	return p
}

// AwaitStart waits until it is up, unless it was seen to be.
func (p *Process) AwaitStart(t testing.TB) {
	t.Helper()
	if p.Started == nil {
		first, logs := <-p.first
		p.noteStart(t, first, logs)
	}
}

// IsUp reports whether it is up by now.
func (p *Process) IsUp(t testing.TB) bool {
	t.Helper()
	if p.Started == nil {
		select {
		case first, logs := <-p.first:
			p.noteStart(t, first, logs)
		default:
		}
	}
	return p.Started != nil
}

func (p *Process) noteStart(t testing.TB, first string, logs bool) {
	t.Helper()
	require.True(t, logs, "%s logs nothing", p.name)
	require.NoError(t, json.Unmarshal([]byte(first), &p.Started), first)
}

// LogLines are the lines of its log so far, but the first.
func (p *Process) LogLines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.log...)
}

// LogText is its log so far, but the first line.
func (p *Process) LogText() string { return strings.Join(p.LogLines(), "\n") }

// Address is the loopback address that it listens on.
func (p *Process) Address(t testing.TB) string {
	t.Helper()
	listening, ok := p.Started["address"].(string)
	require.True(t, ok, "%v", p.Started)
	_, port, err := net.SplitHostPort(listening)
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", port)
}

// Kill ends the process at once, and waits for it.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// Stop asks the process to stop, and waits for it.
func (p *Process) Stop() error {
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Wait()
}

// Wait waits until the process has ended and its log is complete.
func (p *Process) Wait() error {
	<-p.logged
	return p.Cmd.Wait()
}
