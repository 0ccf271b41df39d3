package store_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// TestAWaitThatRedisBreaksOff demotes Redis under a wait.
func TestAWaitThatRedisBreaksOff(t *testing.T) {
	server := rdbtest.Real(t)
	ctx := t.Context()
	var log rdbtest.Buffer
	waiter := queue.New(server.Open(t, log.LogTo).Partition("")).NewWaiter(bus.QueueMain, time.Minute)
	defer waiter.Close()
	ended := make(chan error, 1)
	go func() { ended <- waiter.Wait(ctx, time.Minute) }()
	require.Eventually(t, func() bool { return blockedClients(t, server) == 1 }, time.Minute, time.Millisecond)
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

// blockedClients is how many clients wait for a job.
func blockedClients(t *testing.T, server *rdbtest.Server) int {
	info, err := server.Raw.Info(t.Context(), "clients").Result()
	require.NoError(t, err)
	_, count, _ := strings.Cut(info, "blocked_clients:")
	count, _, _ = strings.Cut(count, "\r\n")
	n, err := strconv.Atoi(count)
	require.NoError(t, err)
	return n
}

func TestAnswersOfARedisThatIsNotReady(t *testing.T) {
	engine := miniredis.RunT(t)
	client, err := rdb.Open(rdb.Options{URL: "redis://" + engine.Addr(), Connections: 1})
	require.NoError(t, err)
	defer client.Close()
	st := store.New(client.Partition(""), store.Options{})
	q := queue.New(client.Partition(""))
	waiter := q.NewWaiter(bus.QueueMain, time.Minute)
	defer waiter.Close()
	require.NoError(t, waiter.Wait(t.Context(), time.Millisecond), "so that it is connected")
	require.NoError(t, st.Ping(t.Context()))
	for _, answer := range []string{
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
	} {
		engine.SetError(answer)
		assert.ErrorIs(t, waiter.Wait(t.Context(), time.Minute), bus.ErrUnavailable, answer)
		_, err := q.Schedule(t.Context(), bus.QueueMain, time.Now(), 1)
		assert.ErrorIs(t, err, bus.ErrUnavailable, answer)
		assert.ErrorContains(t, err, answer[:5])
	}
	engine.SetError("")
	assert.NoError(t, waiter.Wait(t.Context(), time.Millisecond))
}
