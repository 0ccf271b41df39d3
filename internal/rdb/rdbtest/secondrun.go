package rdbtest

import (
	"context"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/rdb"
)

// MainWithCluster is [Main] for tests that hold for every kind of bus: it runs them a second time.
// Then [Each], [Embedded] and [Real] give a test a Redis Cluster on which prepare has made a bus,
// and nothing else differs. Tests of a single Redis call [OneRedisOnly].
//
// There is one run only where there is no redis-server, for benchmarks and fuzzing, and with the
// race detector, see [Each].
func MainWithCluster(m *testing.M, prepare func(testing.TB, *rdb.Client), ignore ...goleak.Option) {
	verify(func() int {
		code := m.Run()
		isTest := !isSet("test.bench") && !isSet("test.fuzz") && !isSet("test.list")
		if code != 0 || RaceDetector || !isTest || !HasServer(Engine()) {
			return code
		}
		clusters.prepare = prepare
		defer clusters.end()
		return m.Run()
	}, ignore)
}

func isSet(name string) bool { return flag.Lookup(name).Value.String() != "" }

// OneRedisOnly skips a test in the second run of [MainWithCluster], and says why it is not about a
// bus on a cluster.
func OneRedisOnly(t testing.TB, why string) {
	t.Helper()
	if clusters.isSecondRun() {
		t.Skip("on one Redis only: " + why)
	}
}

// clusters are the clusters of the second run.
var clusters secondRun

// secondRun lends clusters to tests, one after the other, since it takes seconds to start one.
type secondRun struct {
	// prepare is nil in the first run.
	prepare func(testing.TB, *rdb.Client)
	mu      sync.Mutex
	idle    []*Server
	owners  []*lasting
}

func (r *secondRun) isSecondRun() bool { return r.prepare != nil }

// lend returns a cluster with a new bus only. Servers with arguments are for one test.
func (r *secondRun) lend(t testing.TB, arguments ...string) *Server {
	t.Helper()
	isShared := len(arguments) == 0
	server := r.takeIdle(isShared)
	if server == nil {
		owner := &lasting{TB: t}
		server = startMasters(owner, arguments...)
		r.mu.Lock()
		r.owners = append(r.owners, owner)
		r.mu.Unlock()
	}
	require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
	r.prepare(t, server.Open(t))
	t.Cleanup(func() {
		if isShared && !server.isSpent {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.idle = append(r.idle, server)
			return
		}
		for _, p := range server.processes {
			p.kill(t)
		}
	})
	return server
}

// takeIdle returns a cluster that no test has, if it may be one; nil if there is none.
func (r *secondRun) takeIdle(isShared bool) (server *Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.idle); isShared && n > 0 {
		server, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	return server
}

// end ends all clusters.
func (r *secondRun) end() {
	for _, owner := range r.owners {
		for _, cleanup := range slices.Backward(owner.cleanups) {
			cleanup()
		}
	}
}

// startMasters starts a cluster of three masters without replicas.
func startMasters(t testing.TB, arguments ...string) *Server {
	t.Helper()
	cluster := NewCluster(t, 3, 5*time.Second, func(o *ClusterOptions) { o.Replicas, o.Arguments, o.User = 0, arguments, true })
	options, err := redis.ParseClusterURL("redis://" + cluster.Nodes[0].Address + patiently)
	require.NoError(t, err)
	for _, node := range cluster.Nodes[1:] {
		options.Addrs = append(options.Addrs, node.Address)
	}
	raw := redis.NewClusterClient(options)
	t.Cleanup(func() { _ = raw.Close() })
	raw.AddHook(eachNode{raw})
	server := &Server{URL: cluster.URL, Raw: raw}
	for _, node := range cluster.Nodes {
		server.processes = append(server.processes, node.processes...)
	}
	return server
}

// eachNode runs a command on every node where the library would choose one. It is a hook: a type of
// ours with all commands takes seconds to compile.
type eachNode struct{ cluster *redis.ClusterClient }

// ProcessHook implements [redis.Hook].
func (e eachNode) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd := cmd.(type) {
		case *redis.StatusCmd:
			if name := cmd.Name(); name == "flushall" || name == "config" {
				return e.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
					return node.Do(ctx, cmd.Args()...).Err()
				})
			}
		case *redis.StringSliceCmd:
			if cmd.Name() == "keys" {
				return e.gather(ctx, cmd)
			}
		}
		return next(ctx, cmd)
	}
}

// gather collects the replies of all nodes in one list.
func (e eachNode) gather(ctx context.Context, cmd *redis.StringSliceCmd) error {
	var mu sync.Mutex
	return e.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		some, err := node.Do(ctx, cmd.Args()...).StringSlice()
		mu.Lock()
		defer mu.Unlock()
		cmd.SetVal(append(cmd.Val(), some...))
		return err
	})
}

// ProcessPipelineHook implements [redis.Hook].
func (eachNode) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// DialHook implements [redis.Hook].
func (eachNode) DialHook(next redis.DialHook) redis.DialHook { return next }

// lasting is the test that has something started for all tests: it is cleaned up after the last.
type lasting struct {
	testing.TB
	cleanups []func()
}

// Cleanup implements [testing.TB].
func (l *lasting) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

// Context implements [testing.TB].
func (*lasting) Context() context.Context { return context.Background() }

// Failed implements [testing.TB]. It is called when logging is no longer possible.
func (*lasting) Failed() bool { return false }

// TempDir implements [testing.TB].
func (l *lasting) TempDir() string {
	directory, err := os.MkdirTemp("", "cluster")
	require.NoError(l, err)
	l.Cleanup(func() { _ = os.RemoveAll(directory) })
	return directory
}
