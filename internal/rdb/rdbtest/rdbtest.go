// Package rdbtest gives tests a Redis of their own: the embedded engine, and a real redis-server
// that it starts on a free loopback port with its own directory; or, in a second run of the tests,
// a Redis Cluster: see [MainWithCluster]. It also has helpers that tests of several packages share.
package rdbtest

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/rdb"
)

// Raw has Redis's commands, and Do for commands that the library does not have. It is not the
// library's own type, which takes long to compile wherever it is used.
type Raw interface {
	rdb.Commands
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// Server is a Redis for one test, empty at first: one, or a whole cluster.
type Server struct {
	URL string
	// Raw reads and writes Redis by hand, as an operator would.
	Raw Raw
	// engine is the embedded one, if it is that.
	engine *miniredis.Miniredis
	// processes are the server's: one, one for each node of a cluster, or none for the embedded
	// engine.
	processes []*process
	// isSpent is whether they may have been left in another state than they were in.
	isSpent bool
}

// Each runs a test on the embedded engine and on a real redis-server. Where there is no
// redis-server, the second is skipped, but fails in CI. With the race detector it runs on one of
// them: whatever engine answers, our own goroutines do the same, and the interpreter of the
// embedded one would take most of the time. Without the detector every test runs on both.
func Each(t *testing.T, test func(t *testing.T, redis *Server)) {
	if clusters.isSecondRun() {
		t.Run("redis-cluster", func(t *testing.T) { test(t, clusters.lend(t)) })
		return
	}
	if !RaceDetector || !HasServer(Engine()) {
		t.Run("embedded", func(t *testing.T) { test(t, Embedded(t)) })
	}
	t.Run("redis-server", func(t *testing.T) { test(t, Real(t)) })
}

// Fewer returns how many cases, random steps or repetitions a test takes: all, but with the race
// detector a twentieth and at least one. Those find races as well, because each does the same.
func Fewer(all int) int {
	if RaceDetector {
		return max(1, all/20)
	}
	return all
}

// OneGoroutine skips a measurement in one goroutine under the race detector: there is no race to
// detect.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if RaceDetector {
		t.Skip("one goroutine alone measures: without the race detector only")
	}
}

// A stall of the host is not taken for an outage of Redis: patiently, at the end of a URL, lets a
// connection be made all the same, and readPatience an answer come. On loopback a missing server is
// refused at once, so no test waits for this long.
const (
	readPatience = "&read_timeout=30s"
	patiently    = "?dial_timeout=30s" + readPatience
)

// Hurried is a URL for tests that have the server not answer: clients wait as long as the bus does.
func Hurried(url string) string { return strings.Replace(url, readPatience, "", 1) }

// Embedded starts the embedded engine.
func Embedded(t testing.TB) *Server {
	if clusters.isSecondRun() {
		return clusters.lend(t)
	}
	engine := miniredis.RunT(t)
	s := newServer(t, "redis://"+engine.Addr()+patiently)
	s.engine = engine
	return s
}

// OnCommand sets a function to be called as the embedded engine begins a command, with the
// command's name in upper case.
func (s *Server) OnCommand(begins func(name string, arguments ...string)) {
	s.engine.Server().SetPreHook(func(_ *server.Peer, name string, arguments ...string) (isDone bool) {
		begins(name, arguments...)
		return false
	})
}

// Real starts a redis-server. It is ended with the test.
func Real(t testing.TB, arguments ...string) *Server {
	if clusters.isSecondRun() {
		return clusters.lend(t, arguments...)
	}
	address := FreeAddress(t)
	process := startServer(t, address, arguments...)
	return newServer(t, "redis://"+address+patiently, process)
}

func newServer(t testing.TB, url string, processes ...*process) *Server {
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	if len(processes) > 0 {
		options.TLSConfig = processes[0].tls
	}
	raw := redis.NewClient(options)
	t.Cleanup(func() { _ = raw.Close() })
	rdb.KeepScripts()
	return &Server{URL: url, Raw: raw, processes: processes}
}

// Open opens a client of the server. It is closed with the test.
func (s *Server) Open(t testing.TB, adjust ...func(*rdb.Options)) *rdb.Client {
	options := rdb.Options{URL: s.URL, Connections: 10}
	for _, f := range adjust {
		f(&options)
	}
	client, err := rdb.Open(options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// IsEmbedded reports whether the server is the embedded engine.
func (s *Server) IsEmbedded() bool { return len(s.processes) == 0 }

// IsCluster reports whether it is a cluster.
func (s *Server) IsCluster() bool { return rdb.IsClusterURL(s.URL) }

// Reads returns how often a real server has read from connections: once for each small round trip,
// and for this call.
func (s *Server) Reads(t testing.TB) int {
	t.Helper()
	_, rest, _ := strings.Cut(s.Raw.Info(t.Context(), "stats").Val(), "total_reads_processed:")
	n, err := strconv.Atoi(rest[:strings.Index(rest, "\r")])
	require.NoError(t, err)
	return n
}

// Kill ends a real server with SIGKILL; of a cluster, all nodes.
func (s *Server) Kill(t testing.TB) {
	s.isSpent = true
	for _, p := range s.processes {
		p.kill(t)
	}
}

// Restart starts a real server again, after Kill, on the same port and directory. Before, it
// mends the append-only file, as operators should.
func (s *Server) Restart(t testing.TB) {
	for _, p := range s.processes {
		p.repair(t)
		p.start(t)
	}
}

// Freeze stops a real server without ending it: it takes connections, and does not answer. Thaw
// lets it go on.
func (s *Server) Freeze(t testing.TB) {
	s.isSpent = true
	s.signal(t, syscall.SIGSTOP)
}

// Thaw is the end of Freeze.
func (s *Server) Thaw(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, signal syscall.Signal) {
	for _, p := range s.processes {
		require.NoError(t, p.command.Process.Signal(signal))
	}
}

// Main runs a package's tests, and fails them if a goroutine is left.
func Main(m *testing.M, ignore ...goleak.Option) { verify(m.Run, ignore) }

// verify is [Main] with the function that runs the tests.
func verify(run func() int, ignore []goleak.Option) {
	// The Redis client's own: it asks every second for a server that was away, and then sees that
	// it is closed.
	dialling := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	// Honeybadger's client starts these as it is imported, and never ends the second.
	events := goleak.IgnoreTopFunction("github.com/honeybadger-io/honeybadger-go.(*EventsWorker).run")
	notices := goleak.IgnoreTopFunction("github.com/honeybadger-io/honeybadger-go.newBufferedWorker.func1")
	options := append(ignore, dialling, events, notices)
	goleak.VerifyTestMain(patient{run, options}, options...)
}

// patient gives goroutines more time to end than goleak's half a second, which is too short on a
// busy host.
type patient struct {
	run     func() int
	options []goleak.Option
}

func (p patient) Run() int {
	const timeout = 10 * time.Second
	code := p.run()
	for begun := time.Now(); code == 0 && time.Since(begun) < timeout && goleak.Find(p.options...) != nil; {
	}
	return code
}
