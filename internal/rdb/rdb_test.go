package rdb_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

func TestMain(m *testing.M) {
	logging.Disable() // the library would log every failed try
	rdbtest.Main(m)
}

// increment counts its runs in a key.
var increment = rdb.NewScript(nil, `return redis.call('INCR', ARGV[1] .. 'count')`)

// write runs [increment], and returns the error that the bus would see.
func write(ctx context.Context, p *rdb.Partition) error {
	return rdb.Wrap("write", p.Run(ctx, increment).Err())
}

func TestAChangeThatNoReplicaConfirmsFails(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	p := server.Open(t, log.LogTo, func(o *rdb.Options) { o.MinReplicas = 1 }).Partition("")
	change := rdb.NewScript(nil, `return {tonumber(ARGV[2]), 'result'}`)
	for range 2 { // at first Redis does not know the script
		changed := p.Change(t.Context(), change, 1)
		assert.ErrorContains(t, changed.Err, "too few replicas")
		assert.ErrorIs(t, rdb.Wrap("change", changed.Err), bus.ErrUnavailable)
		assert.False(t, changed.Changed)
		assert.Empty(t, changed.Results)
	}
	assert.Regexp(t, `^.*redis refuses calls.*too few replicas.*\n$`, log.String(), "it is logged once")
	unchanged := p.Change(t.Context(), change, 0)
	assert.NoError(t, unchanged.Err, "there is nothing to confirm")
	assert.Equal(t, "result", unchanged.Text(0))
}

// TestADatabaseThatIsNotThereIsARefusal has Redis answer all that follows in words that are not
// known here, which is no fault of the bus.
func TestADatabaseThatIsNotThereIsARefusal(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	away := func(o *rdb.Options) { o.URL = strings.Replace(o.URL, "?", "/99?", 1) }
	p := server.Open(t, log.LogTo, away).Partition("")
	script := rdb.NewScript(nil, `return 1`)
	for range 5 {
		assert.ErrorIs(t, rdb.Wrap("get", p.Get(t.Context(), "a").Err()), bus.ErrUnavailable)
		assert.ErrorIs(t, rdb.Wrap("run", p.Run(t.Context(), script).Err()), bus.ErrUnavailable)
		assert.ErrorIs(t, p.Client().Ping(t.Context()), bus.ErrUnavailable)
	}
	assert.Regexp(t, `^.*ERROR.*redis refuses calls.*DB index is out of range.*\n$`, log.String(), "it is logged once")
}

// TestACommandThatAProviderDisables shows that its arguments, which may be secrets, are not logged.
func TestACommandThatAProviderDisables(t *testing.T) {
	server := rdbtest.Real(t, "--rename-command", "HGET", "", "--rename-command", "INFO", "")
	var log rdbtest.Buffer
	p := server.Open(t, log.LogTo).Partition("")
	_, err := p.Memory(t.Context())
	assert.ErrorIs(t, err, rdb.ErrMemoryUnknown)
	assert.Empty(t, log.String(), "the bus does without INFO")
	err = rdb.Wrap("get", p.HGet(t.Context(), "api_tokens", "demo--secret").Err())
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	assert.NotContains(t, err.Error(), "secret")
	assert.Regexp(t, `^.*ERROR.*redis refuses calls.*unknown command 'hget'"\n$`, log.String())
}

// TestACallThatRunsOutOfTimeIsNoOutage gives Redis less time than it takes.
func TestACallThatRunsOutOfTimeIsNoOutage(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	client := server.Open(t, log.LogTo)
	require.NoError(t, client.Ping(t.Context()))
	server.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, write(ctx, client.Partition("")), bus.ErrUnavailable)
	server.Thaw(t)
	require.NoError(t, client.Ping(t.Context()))
	assert.Empty(t, log.String(), "the deadline of a caller says nothing about Redis")
}

// TestAWaitThatRedisBreaksOff demotes Redis during a wait.
func TestAWaitThatRedisBreaksOff(t *testing.T) {
	server := rdbtest.Real(t)
	ctx := t.Context()
	var log rdbtest.Buffer
	waiter := server.Open(t, log.LogTo).Partition("").NewWaiter("list", time.Minute)
	defer waiter.Close()
	ended := make(chan error, 1)
	go func() { ended <- waiter.Wait(ctx, time.Minute) }()
	require.Eventually(t, func() bool {
		return strings.Contains(server.Raw.Info(ctx, "clients").Val(), "blocked_clients:1\r\n")
	}, time.Minute, time.Millisecond)
	require.NoError(t, server.Raw.ReplicaOf(ctx, "127.0.0.1", "1").Err())
	err := <-ended
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	assert.ErrorContains(t, err, "UNBLOCKED")
	assert.Regexp(t, `^.*redis unavailable, retrying.*UNBLOCKED.*\n$`, log.String())

	require.Eventually(t, func() bool { // the connection may be closed at first
		err = waiter.Wait(ctx, time.Minute)
		return assert.ErrorIs(t, err, bus.ErrUnavailable) && strings.Contains(err.Error(), "READONLY")
	}, time.Minute, time.Millisecond)
	require.NoError(t, server.Raw.ReplicaOf(ctx, "NO", "ONE").Err())
	require.Eventually(t, func() bool { return waiter.Wait(ctx, time.Millisecond) == nil }, time.Minute, time.Millisecond)
}

func TestARedisThatIsNotReadyIsUnavailable(t *testing.T) {
	engine := miniredis.RunT(t)
	client, err := rdb.Open(rdb.Options{URL: "redis://" + engine.Addr(), Connections: 1})
	require.NoError(t, err)
	defer client.Close()
	p := client.Partition("")
	waiter := p.NewWaiter("list", time.Minute)
	defer waiter.Close()
	require.NoError(t, waiter.Wait(t.Context(), time.Millisecond), "so that it is connected")
	require.NoError(t, client.Ping(t.Context()))
	for _, answer := range []string{
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
	} {
		engine.SetError(answer)
		assert.ErrorIs(t, waiter.Wait(t.Context(), time.Minute), bus.ErrUnavailable, answer)
		err := write(t.Context(), p)
		assert.ErrorIs(t, err, bus.ErrUnavailable, answer)
		assert.ErrorContains(t, err, answer[:5])
	}
	engine.SetError("")
	assert.NoError(t, waiter.Wait(t.Context(), time.Millisecond))
}

// TestAClosedConnectionIsRedisUnavailable: at a failover the library closes the connections to the
// old master while calls wait on them. That a caller gives up is no failure of Redis.
func TestAClosedConnectionIsRedisUnavailable(t *testing.T) {
	closed := &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	for _, err := range []error{closed, redis.ErrClosed} {
		assert.ErrorIs(t, rdb.Wrap("wait", err), bus.ErrUnavailable)
	}
	assert.NotErrorIs(t, rdb.Wrap("wait", context.Canceled), bus.ErrUnavailable)
	assert.NotErrorIs(t, rdb.Wrap("wait", errors.Join(context.Canceled, closed)), bus.ErrUnavailable)
}
