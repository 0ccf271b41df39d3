package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bench"
	"routemaster/internal/bench/report"
	"routemaster/internal/bench/stack"
	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// programVariable makes the test binary run as one of the benchmark's programs: see TestMain.
const programVariable = "TEST_ROUTEMASTER_PROGRAM"

func TestMain(m *testing.M) {
	switch program := os.Getenv(programVariable); program {
	case stack.Web:
		os.Exit(app.Daemon(program, "a test", nil, os.Stdout, os.Stderr, app.RunWeb))
	case stack.Worker:
		os.Exit(app.Daemon(program, "a test", nil, os.Stdout, os.Stderr, app.RunWorker))
	case stack.Receiver, stack.Service, stack.Noop:
		ctx, stop := app.StopOnSignal(context.Background())
		err := stack.RunProgram(ctx, program, os.Args[1:]...)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(app.ExitFailed)
		}
		os.Exit(app.ExitOK)
	}
	rdbtest.Main(m)
}

func launch(program string, args ...string) (*exec.Cmd, error) {
	command := exec.Command(os.Args[0], args...)
	// By default the race detector lets a program sleep for a second before it exits.
	command.Env = []string{programVariable + "=" + program, "GORACE=atexit_sleep_ms=0"}
	return command, nil
}

func requireRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("redis-server is not installed: in CI the tests on a real Redis must run")
		}
		t.Skip("redis-server is not installed: install it to run this test")
	}
}

func TestEveryScenarioRunsAndLosesNothing(t *testing.T) {
	requireRedis(t)
	var out bytes.Buffer
	found, err := bench.Run(t.Context(), bench.Options{
		Quick: true, Launch: launch, Out: &out, Progress: io.Discard, Env: []string{"ROUTEMASTER_WORKER_THREADS=16"},
	})
	require.NoError(t, err, out.String())
	require.Len(t, found.Tables, len(bench.Scenarios())-1, "all but that of a cluster")
	for _, table := range found.Tables {
		assert.NotEmpty(t, table.Rows, table.Scenario)
		assert.Contains(t, out.String(), table.Scenario+": "+table.About)
	}
	require.Len(t, found.Summary, len(report.Goals))
	for _, name := range []string{"events lost", "events duplicated", "keys left over", "deliveries unreadable"} {
		measured, ok := found.Figures[name]
		assert.True(t, ok, name)
		assert.Zero(t, measured, name)
	}
	for _, name := range []string{"memory ÷ packed size", "deliveries ÷ POSTs, 1 at a time", "delivered ÷ due"} {
		assert.Positive(t, found.Figures[name], name)
	}
	assert.Contains(t, out.String(), "The daemons have ROUTEMASTER_WORKER_THREADS=16.")
}

// TestAClusterIsMeasuredBesideOneRedis checks that both have rows, with figures, and that nothing
// is lost or left over.
func TestAClusterIsMeasuredBesideOneRedis(t *testing.T) {
	if rdbtest.RaceDetector {
		t.Skip("the scenarios run with the race detector on one Redis, by the same code")
	}
	requireRedis(t)
	var out bytes.Buffer
	found, err := bench.Run(t.Context(), bench.Options{Quick: true, Launch: launch, Out: &out, Progress: io.Discard, Masters: 3})
	require.NoError(t, err, out.String())
	require.Len(t, found.Tables, 1)
	table := found.Tables[0]
	assert.Equal(t, "cluster", table.Scenario)
	rows := map[string]int{}
	for _, row := range table.Rows {
		require.Equal(t, "bus", row[0].Name)
		rows[row[0].Value.(string)]++
		names := map[string]bool{}
		for _, cell := range row {
			assert.False(t, names[cell.Name], "two cells are called %s", cell.Name)
			names[cell.Name] = true
			switch cell.Name {
			case "events/s", "÷ one", "redis µs", "commands/s": // in so short a time nothing may arrive
				assert.Positive(t, cell.Value, "%s of %v", cell.Name, row)
			case "lost", "dup.", "left":
				assert.Zero(t, cell.Value, "%s of %v", cell.Name, row)
			}
		}
	}
	assert.Equal(t, map[string]int{
		"one Redis": 10, "cluster of 3, at home": 7, "cluster of 3, apart": 7, "cluster of 3": 3,
	}, rows, out.String())
	assert.Positive(t, found.Figures[report.ClusterPublish])
	for _, name := range []string{report.Lost, report.LeftOver} {
		measured, ok := found.Figures[name]
		assert.True(t, ok, name)
		assert.Zero(t, measured, name)
	}
	assert.Contains(t, out.String(), "a Redis Cluster: 3 masters without replicas")
}

// TestAStackLooksAtAllNodes writes what is to be found into each partition.
func TestAStackLooksAtAllNodes(t *testing.T) {
	requireRedis(t)
	ctx := t.Context()
	s, err := stack.New(ctx, stack.Options{Launch: launch, Masters: 3})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	redis, err := rdb.Open(rdb.Options{URL: "redis+cluster://" + s.Redis, Connections: 1})
	require.NoError(t, err)
	defer redis.Close()
	left := func() int64 {
		keys, err := s.LeftOver(ctx)
		require.NoError(t, err)
		return keys
	}
	require.Zero(t, left())
	before, err := s.RedisStats(ctx)
	require.NoError(t, err)
	partitions, nodes := redis.Partitions("", stack.Partitions), map[string]bool{}
	for i, p := range partitions {
		for _, key := range []string{"batch:x", "relay:05", "jobs:index:relay", "topics"} {
			require.NoError(t, p.Set(ctx, p.Namespace()+key, "1", 0).Err())
		}
		require.EqualValues(t, 3*(i+1), left())
		nodes[p.Node()] = true
	}
	after, err := s.RedisStats(ctx)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, after.Commands-before.Commands, int64(4*stack.Partitions), "of all nodes")
	assert.Len(t, nodes, 3)

	distances := map[stack.Distance]int{}
	for i := range 100 {
		topic, token := fmt.Sprint("topic", i), "token"
		home, there := partitions.Home(bus.TopicName(topic)), partitions.Of(bus.Token(token))
		distance := s.Distance(topic, token)
		assert.Equal(t, home == there, distance == stack.Home)
		assert.Equal(t, home.Node() != there.Node(), distance == stack.Apart)
		distances[distance]++
	}
	assert.Len(t, distances, 3)
}

func TestProfilesAreWritten(t *testing.T) {
	requireRedis(t)
	// A profile is a sample, a hundred a second of CPU time and one each 512 KiB of memory, so a short
	// run may miss web's own functions, but not every time.
	const tries = 30
	seen := map[string]bool{}
	for try := 0; try < tries && !(seen["cpu"] && seen["heap"]); try++ {
		directory := filepath.Join(t.TempDir(), "profiles")
		found, err := bench.Run(t.Context(), bench.Options{
			Quick: true, Launch: launch, Progress: io.Discard, Profile: directory,
			Scenarios: []string{"ingest"}, Publishers: []int{2}, Subscribers: []int{1},
		})
		require.NoError(t, err)
		require.Len(t, found.Tables[0].Rows, 1)
		for kind, sampled := range map[string]string{"cpu": "cpu", "heap": "alloc_space"} {
			read := readProfile(t, filepath.Join(directory, "ingest-01-2-to-1-max-100-timeout-20.web."+kind+".pb.gz"))
			assert.True(t, slices.ContainsFunc(read.SampleType, func(sample *profile.ValueType) bool { return sample.Type == sampled }), kind)
			seen[kind] = seen[kind] || slices.ContainsFunc(read.Function, func(function *profile.Function) bool {
				return strings.HasPrefix(function.Name, "routemaster/internal/web.")
			})
		}
	}
	for _, kind := range []string{"cpu", "heap"} {
		assert.True(t, seen[kind], "web's package is in none of its %s profiles", kind)
	}
}

func readProfile(t *testing.T, path string) *profile.Profile {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	read, err := profile.Parse(file)
	require.NoError(t, err)
	return read
}

func TestARemoteBus(t *testing.T) {
	redis := rdbtest.Real(t)
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{
			"ROUTEMASTER_ROOT_KEY": "the-root-key", "ROUTEMASTER_CLIENTS": "bench--1", "ROUTEMASTER_REDIS_URL": redis.URL, "FORCE_SSL": "no",
			"ROUTEMASTER_SSL_VERIFY": "no", "ROUTEMASTER_CALLBACK_DENY": "none", "ROUTEMASTER_ACQUIRE_TIMEOUT": "1",
		}[name]
	})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	log := slog.New(slog.DiscardHandler)
	go func() { ended <- app.ServeWeb(ctx, config, log, listener) }()
	go func() { ended <- app.RunWorker(ctx, config, log) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	}()
	require.Eventually(t, func() bool {
		return redis.Raw.HExists(ctx, "api_tokens:by_token", "bench--1").Val()
	}, time.Minute, time.Millisecond)

	// The receiver's own address is its public one, since all is on loopback.
	address := rdbtest.FreeAddress(t)
	remote := bench.Remote{URL: "http://" + listener.Addr().String(), Token: "bench--1", Listen: address, PublicURL: "https://" + address}
	found, err := bench.Run(ctx, bench.Options{Quick: true, Launch: launch, Progress: io.Discard, Remote: &remote})
	require.NoError(t, err)
	require.Len(t, found.Tables, 4)
	assert.Empty(t, redis.Raw.SMembers(ctx, "subscribers").Val(), "it has left")
	assert.Empty(t, redis.Raw.SMembers(ctx, "topics").Val())

	remote.PublicURL = ""
	found, err = bench.Run(ctx, bench.Options{Quick: true, Launch: launch, Progress: io.Discard, Remote: &remote})
	require.NoError(t, err)
	require.Len(t, found.Tables, 1, "publishing only")

	remote.Token = "unknown"
	_, err = bench.Run(ctx, bench.Options{Quick: true, Launch: launch, Progress: io.Discard, Remote: &remote})
	require.ErrorContains(t, err, "401 Unauthorized")
}

func TestWhatCannotBeMeasuredIsRefusedFirst(t *testing.T) {
	for text, options := range map[string]bench.Options{
		`unknown scenario "nonsense"; the scenarios are ingest, bulk`: {Scenarios: []string{"ingest", "nonsense"}},
		"scenario backlog needs a bus of its own: no --bus":           {Scenarios: []string{"backlog"}, Remote: &bench.Remote{URL: "http://x", Token: "t", Listen: ":1", PublicURL: "https://x"}},
		"scenario latency needs deliveries: --public-url":             {Scenarios: []string{"latency"}, Remote: &bench.Remote{URL: "http://x", Token: "t"}},
		"a bus needs both --bus and --token":                          {Remote: &bench.Remote{URL: "http://x"}},
		"a running bus cannot be profiled from here":                  {Profile: "profiles", Remote: &bench.Remote{URL: "http://x", Token: "t"}},
		"--public-url needs --listen":                                 {Remote: &bench.Remote{URL: "http://x", Token: "t", PublicURL: "https://x"}},
		"--publishers must be 1 or more":                              {Publishers: []int{0}},
		"scenario cluster needs a bus on a cluster: --cluster":        {Scenarios: []string{"cluster"}},
		"--cluster must be from 1 to 12":                              {Masters: 13},
		"it cannot be used with --bus":                                {Masters: 3, Remote: &bench.Remote{URL: "http://x", Token: "t"}},
		"the scenario cluster, which --scenario does not name":        {Masters: 3, Scenarios: []string{"ingest"}},
	} {
		_, err := bench.Run(t.Context(), options)
		assert.ErrorAs(t, err, &bench.UsageError{})
		assert.ErrorContains(t, err, text)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := bench.Run(t.Context(), bench.Options{Launch: launch, Progress: io.Discard})
	assert.ErrorContains(t, err, "redis-server is not installed: install it")
}
