package rdb_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func open(t *testing.T, seeds ...string) *rdb.ClusterClient {
	c := rdb.NewClusterClient(seeds, func(address string) *redis.Client {
		return redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// node is a node alone, which has all slots, and its address.
func node(t *testing.T) (server *rdbtest.Server, address string) {
	t.Helper()
	server = rdbtest.ClusterNode(t)
	require.NoError(t, server.Raw.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	options, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	return server, options.Addr
}

// TestSomeSeedsDoNotAnswer has a seed that refuses connections, one that never answers, and one
// that knows no slots.
func TestSomeSeedsDoNotAnswer(t *testing.T) {
	_, address := node(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	empty, err := redis.ParseURL(rdbtest.ClusterNode(t).URL)
	require.NoError(t, err)
	for range 10 { // they are asked in any order
		c := open(t, rdbtest.FreeAddress(t), silent.Addr().String(), empty.Addr, address)
		master, err := c.Master(t.Context(), 42)
		require.NoError(t, err)
		assert.Equal(t, address, master.Address)
		require.NoError(t, c.Close())
	}
}

func TestNoSeedAnswers(t *testing.T) {
	address := rdbtest.FreeAddress(t)
	c := open(t, address)
	_, err := c.Master(t.Context(), 42)
	assert.ErrorContains(t, err, address)
	assert.ErrorContains(t, c.Ping(t.Context()), address)
	require.NoError(t, c.Close())
	_, err = c.Master(t.Context(), 42)
	assert.ErrorIs(t, err, redis.ErrClosed)
}

// TestNodesThatTellNoHosts are where they were reached: the clients may know them by other names
// than they do.
func TestNodesThatTellNoHosts(t *testing.T) {
	server := rdbtest.ClusterNode(t, "--cluster-preferred-endpoint-type", "unknown-endpoint")
	require.NoError(t, server.Raw.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	options, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(options.Addr)
	require.NoError(t, err)
	master, err := open(t, "localhost:"+port).Master(t.Context(), 42)
	require.NoError(t, err)
	assert.Equal(t, "localhost:"+port, master.Address)
}

func TestASlotThatNoNodeHas(t *testing.T) {
	server, address := node(t)
	require.NoError(t, server.Raw.Do(t.Context(), "cluster", "delslots", 42).Err())
	c := open(t, address)
	_, err := c.Master(t.Context(), 42)
	assert.ErrorContains(t, err, "no node has slot 42")
	require.NoError(t, server.Raw.Do(t.Context(), "cluster", "addslots", 42).Err())
	require.Eventually(t, func() bool {
		master, err := c.Master(t.Context(), 42)
		return err == nil && master.Address == address
	}, time.Minute, time.Millisecond)
}

// TestManyCallersLoadTheMapOnce counts the requests to a node.
func TestManyCallersLoadTheMapOnce(t *testing.T) {
	server, address := node(t)
	c := open(t, address)
	var failed atomic.Int32
	done := make(chan struct{})
	const callers = 50
	for range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			if _, err := c.Master(t.Context(), 42); err != nil {
				failed.Add(1)
			}
		}()
	}
	for range callers {
		<-done
	}
	assert.Zero(t, failed.Load())
	assert.Contains(t, fmt.Sprint(server.Raw.Info(t.Context(), "commandstats").Val()), "cmdstat_cluster|slots:calls=1,")
}
