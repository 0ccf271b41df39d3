package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/tools/bench/report"
	"routemaster/tools/bench/stack"
)

// programs is the directory of web and worker, once they are built: see TestMain.
var programs string

// TestMain builds the daemons that are measured. Run by a stack, it is one of the stack's programs.
func TestMain(m *testing.M) {
	if _, _, ok := stack.IsProgram(os.Args[1:]); ok {
		main()
	}
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "bench-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(programs)
		build := exec.Command("go", "build", "-o", programs+string(filepath.Separator), "./cmd/web", "./cmd/worker")
		build.Dir = "../.."
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build web and worker: %v\n%s", err, output)
			return exitFailed
		}
		return m.Run()
	}())
}

// quick are options that show that something works.
func quick() options {
	return options{quick: true, programs: programs, out: io.Discard, progress: io.Discard}
}

// needsMinutes skips a test in `make test`: on a slow host it takes minutes.
func needsMinutes(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make peers runs it")
	}
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
	needsMinutes(t)
	requireRedis(t)
	var out bytes.Buffer
	o := quick()
	o.out, o.env = &out, []string{"ROUTEMASTER_WORKER_THREADS=16"}
	found, err := runScenarios(t.Context(), o)
	require.NoError(t, err, out.String())
	require.Len(t, found.Tables, len(scenarios)-1, "all but cluster")
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
	needsMinutes(t)
	requireRedis(t)
	var out bytes.Buffer
	o := quick()
	o.out, o.masters = &out, 3
	found, err := runScenarios(t.Context(), o)
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

// TestAStackLooksAtAllNodes writes into each partition the keys to be found.
func TestAStackLooksAtAllNodes(t *testing.T) {
	requireRedis(t)
	ctx := t.Context()
	s, err := stack.New(ctx, stack.Options{Programs: programs, Masters: 3})
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
	needsMinutes(t)
	requireRedis(t)
	// A profile is a sample, a hundred a second of CPU time and one each 512 KiB of memory, so a short
	// run may miss web's own functions, but not every time.
	const tries = 30
	seen := map[string]bool{}
	for try := 0; try < tries && !(seen["cpu"] && seen["heap"]); try++ {
		directory := filepath.Join(t.TempDir(), "profiles")
		o := quick()
		o.profile, o.scenarios, o.publishers, o.subscribers = directory, []string{"ingest"}, []int{2}, []int{1}
		found, err := runScenarios(t.Context(), o)
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
	requireRedis(t)
	ctx := t.Context()
	// The receiver's own address is its public one, since all is on loopback.
	there, err := stack.New(ctx, stack.Options{Programs: programs})
	require.NoError(t, err)
	defer func() { require.NoError(t, there.Close()) }()
	require.NoError(t, there.StartWorker(ctx))
	address, err := there.FreeAddresses(1)
	require.NoError(t, err)
	url := "http://" + there.Web
	root, err := client.New(url, stack.RootKey)
	require.NoError(t, err)
	_, err = root.AddToken(ctx, "bench", "bench--1")
	require.NoError(t, err)

	o := quick()
	o.remote = remote{url: url, token: "bench--1", listen: address[0], publicURL: "https://" + address[0]}
	found, err := runScenarios(ctx, o)
	require.NoError(t, err)
	require.Len(t, found.Tables, 4)
	subscriptions, err := root.Subscriptions(ctx)
	require.NoError(t, err)
	assert.Empty(t, subscriptions, "it has left")
	topics, err := root.Topics(ctx)
	require.NoError(t, err)
	assert.Empty(t, topics)

	var stdout, stderr bytes.Buffer
	require.Zero(t, runLine(ctx, []string{"--quick", "--json", "--bus", url, "--token", "bench--1"}, &stdout, &stderr), &stderr)
	var printed struct{ Tables []struct{ Scenario string } }
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &printed))
	require.Len(t, printed.Tables, 1, "publishing only")
	assert.Equal(t, "ingest", printed.Tables[0].Scenario)

	o.remote.token = "unknown"
	_, err = runScenarios(ctx, o)
	require.ErrorContains(t, err, "401 Unauthorized")
}

// TestWhatCannotBeMeasuredIsRefusedFirst is about the command line, since the messages name flags.
func TestWhatCannotBeMeasuredIsRefusedFirst(t *testing.T) {
	for text, args := range map[string]string{
		`unknown scenario "nonsense"; the scenarios are ingest, bulk`: "--scenario ingest,nonsense",
		"scenario backlog needs a bus of its own: no --bus":           "--scenario backlog --bus http://x --token t --listen :1 --public-url https://x",
		"scenario latency needs deliveries: --public-url":             "--scenario latency --bus http://x --token t",
		"a bus needs both --bus and --token":                          "--bus http://x",
		"a running bus cannot be profiled from here":                  "--profile profiles --bus http://x --token t",
		"--public-url needs --listen":                                 "--bus http://x --token t --public-url https://x",
		"--publishers must be 1 or more":                              "--publishers 0",
		"scenario cluster needs a bus on a cluster: --cluster":        "--scenario cluster",
		"--cluster must be from 1 to 12":                              "--cluster 13",
		"it cannot be used with --bus":                                "--cluster 3 --bus http://x --token t",
		"the scenario cluster, which --scenario does not name":        "--cluster 3 --scenario ingest",
		"bench takes no arguments, only flags":                        "extra",
		"must be integers with commas between":                        "--subscribers 1,x",
		`invalid value "x" for flag -duration`:                        "--duration x",
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitUsage, runLine(t.Context(), strings.Fields(args), &stdout, &stderr), args)
		assert.Contains(t, stderr.String(), text)
		assert.Empty(t, stdout.String())
	}
	assert.Zero(t, runLine(t.Context(), []string{"--help"}, io.Discard, io.Discard))
	t.Setenv("PATH", t.TempDir())
	_, err := runScenarios(t.Context(), quick())
	assert.ErrorContains(t, err, "redis-server is not installed: install it")
}
