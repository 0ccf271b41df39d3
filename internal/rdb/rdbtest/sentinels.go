package rdbtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// masterName is the sentinels' name of the master.
const masterName = "bus"

// failoverConfig has a sentinel notice a dead master, and act, as fast as it can.
const failoverConfig = `
bind %s
port %s
dir %s
sentinel monitor bus %s %s 2
sentinel down-after-milliseconds bus 500
sentinel failover-timeout bus 3000
`

// WithSentinels starts a master, a replica and three sentinels. Kill ends the master, and then
// the replica is made master; Restart brings the old one back, as its replica.
func WithSentinels(t testing.TB) *Server {
	t.Helper()
	address := FreeAddress(t)
	const syncAtOnce = "--repl-diskless-sync-delay" // in s: not to wait for more replicas
	master := startServer(t, address, syncAtOnce, "0")
	host, port, _ := net.SplitHostPort(address)
	replicaAddress := FreeAddress(t)
	replica := startServer(t, replicaAddress, "--replicaof", host+" "+port, syncAtOnce, "0")
	requireFollows(t, replica) // or the sentinels, which ask every 10 s, find out late
	var sentinels []string
	for range 3 {
		sentinel := FreeAddress(t)
		sentinelHost, sentinelPort, _ := net.SplitHostPort(sentinel)
		directory := t.TempDir()
		file := filepath.Join(directory, "sentinel.conf") // the sentinel writes into it
		text := fmt.Sprintf(failoverConfig, sentinelHost, sentinelPort, directory, host, port)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		startProcess(t, &process{address: sentinel, dir: directory, arguments: []string{file, "--sentinel"}})
		sentinels = append(sentinels, sentinel)
	}
	requireAcquainted(t, sentinels)
	raw := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: masterName, SentinelAddrs: sentinels})
	t.Cleanup(func() { _ = raw.Close() })
	return &Server{URL: "redis+sentinel://" + strings.Join(sentinels, ",") + "/" + masterName + patiently, Raw: raw, processes: []*process{master}}
}

// Follow makes the server a replica of another, and waits until it has all that its master has.
func (s *Server) Follow(t testing.TB, master *Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.processes[0].address)
	require.NoError(t, s.Raw.Do(t.Context(), "replicaof", host, port).Err())
	requireFollows(t, s.processes[0])
}

// requireFollows waits until a replica has all that its master has.
func requireFollows(t testing.TB, replica *process) {
	t.Helper()
	client := replica.client()
	defer client.Close()
	require.Eventually(t, func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, startTimeout, 10*time.Millisecond, "the replica does not follow")
}

// requireAcquainted waits until the sentinels know the replica and one another.
func requireAcquainted(t testing.TB, sentinels []string) {
	t.Helper()
	for _, address := range sentinels {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: address})
		defer sentinel.Close()
		require.Eventually(t, func() bool {
			master, err := sentinel.Master(t.Context(), masterName).Result()
			return err == nil && master["num-slaves"] == "1" && master["num-other-sentinels"] == "2"
		}, startTimeout, 10*time.Millisecond, "the sentinels do not find one another")
	}
}
