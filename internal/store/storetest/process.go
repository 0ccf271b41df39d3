package storetest

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// process is a redis-server.
type process struct {
	path, address string
	arguments     []string
	output        bytes.Buffer
	command       *exec.Cmd
}

// startWithin bounds how long a redis-server may take to answer.
const startWithin = 10 * time.Second

func startProcess(t testing.TB, arguments []string) *process {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed: in CI the tests on a real Redis must run")
		}
		t.Skip("redis-server is not installed: install it to run this test on a real Redis too")
	}
	address := freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	p := &process{path: path, address: address, arguments: append([]string{
		"--bind", host, "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "no",
	}, arguments...)}
	t.Cleanup(func() { p.kill(t) })
	p.start(t)
	return p
}

// freeAddress finds a loopback port that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func (p *process) start(t testing.TB) {
	t.Helper()
	p.command = exec.Command(p.path, p.arguments...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	dieWithParent(p.command)
	require.NoError(t, p.command.Start())
	client := redis.NewClient(&redis.Options{Addr: p.address, MaxRetries: -1})
	defer client.Close()
	require.Eventually(t, func() bool {
		return client.Ping(context.Background()).Err() == nil
	}, startWithin, 2*time.Millisecond, "redis-server did not start")
}

// kill ends the process at once; the test ends every one it started.
func (p *process) kill(t testing.TB) {
	if p.command == nil || p.command.Process == nil {
		return
	}
	_ = p.command.Process.Kill()
	_ = p.command.Wait() // it says that it was killed
	p.command = nil
	if t.Failed() {
		t.Logf("redis-server said:\n%s", p.output.String())
	}
}
