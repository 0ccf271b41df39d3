package rdbtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"routemaster/internal/freeport"
)

// process is a redis-server, or another that is started by the same arguments.
type process struct {
	// server is its command: [Engine] if it is empty.
	server, path, address, dir string
	arguments                  []string
	// tls is how clients connect; nil if that is not over TLS.
	tls     *tls.Config
	output  bytes.Buffer
	command *exec.Cmd
}

// startTimeout bounds how long a redis-server may take to answer.
const startTimeout = 30 * time.Second

// Engine is the command of the real Redis on which tests run: the environment's REDIS_SERVER, such
// as valkey-server, or redis-server.
func Engine() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }

// Valkey is the command of an engine that moves a slot in one step, from its version 9 on.
const Valkey = "valkey-server"

// HasServer reports whether there is a command to start a server with.
func HasServer(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// startProcess starts a server with the process's address, directory and arguments.
func startProcess(t testing.TB, p *process) *process {
	t.Helper()
	p.server = cmp.Or(p.server, Engine())
	p.path = NeedCommand(t, p.server)
	t.Cleanup(func() { p.kill(t) })
	p.start(t)
	return p
}

// NeedCommand returns the path of a command that a test needs. Without it the test is skipped; in
// CI it fails.
func NeedCommand(t testing.TB, command string) (path string) {
	t.Helper()
	path, err := exec.LookPath(command)
	if err != nil {
		skip(t, command+" is not installed: install it to run this test")
	}
	return path
}

// skip skips a test that lacks something, and says why; in CI it fails the test.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal("in CI no test may be skipped; " + why)
	}
	t.Skip(why)
}

// startServer starts a redis-server on an address. It stores nothing on disk, unless the arguments
// say so.
func startServer(t testing.TB, address string, arguments ...string) *process {
	t.Helper()
	return startServerWith(t, "", certificate{}, address, arguments...)
}

// startServerWith is [startServer] with a command, if it is not empty, and a certificate.
func startServerWith(t testing.TB, server string, c certificate, address string, arguments ...string) *process {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	directory := t.TempDir()
	all := append([]string{
		"--bind", host, "--dir", directory, "--save", "", "--appendonly", "no",
		"--aof-use-rdb-preamble", "no", // or valkey-check-aof of Valkey 9 could not repair it
	}, c.arguments(port)...)
	return startProcess(t, &process{
		server: server, address: address, dir: directory, arguments: append(all, arguments...), tls: c.config,
	})
}

// client is one of a server. It is no *redis.Client, for the reason that rdb gives: Server leads
// here.
type client interface {
	Raw
	Close() error
}

// client returns a client of the server, for the caller to close.
func (p *process) client() client {
	return redis.NewClient(&redis.Options{Addr: p.address, TLSConfig: p.tls, MaxRetries: -1})
}

// FreeAddress finds a free loopback address. It stays free until its owner listens, and while that
// is restarted: no other test or benchmark, in any process, gets it until this test ends.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return freeAddress(t)
}

// freeAddress is [FreeAddress]. The ports that are so much above its port are free too.
func freeAddress(t testing.TB, above ...int) string {
	t.Helper()
	var ports freeport.Claims
	t.Cleanup(func() { _ = ports.Close() })
	addresses, err := ports.Addresses(1, above...)
	require.NoError(t, err)
	return addresses[0]
}

func (p *process) start(t testing.TB) {
	t.Helper()
	p.command = exec.Command(p.path, p.arguments...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	dieWithParent(p.command)
	require.NoError(t, p.command.Start())
	client := p.client()
	defer client.Close()
	require.Eventually(t, func() bool {
		return client.Ping(context.Background()).Err() == nil
	}, startTimeout, 2*time.Millisecond, "%s did not start", p.server)
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
		t.Logf("%s said:\n%s", p.server, p.output.String())
	}
}

// repair cuts a transaction that was half written when the server was killed off its append-only
// file. The server itself leaves the half there, without its last command, and its later writes
// become part of that transaction: at the next start but one, half a script has run. See
// https://github.com/valkey-io/valkey/pull/4342. Run as redis-check-aof, the server binary is the
// repair tool.
func (p *process) repair(t testing.TB) {
	manifest := filepath.Join(p.dir, "appendonlydir", "appendonly.aof.manifest") // since Redis 7
	if _, err := os.Stat(manifest); errors.Is(err, fs.ErrNotExist) {
		return
	}
	check := exec.Command(p.path, "--fix", manifest)
	check.Args[0] = strings.Replace(p.server, "server", "check-aof", 1)
	check.Stdin = strings.NewReader("y\n")
	output, err := check.CombinedOutput()
	require.NoError(t, err, string(output))
}
