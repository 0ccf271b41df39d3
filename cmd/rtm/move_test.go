package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// runMove runs rtm move, and returns its exit status and what it prints.
func runMove(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, failures bytes.Buffer
	status = run(ctx, append([]string{"move"}, args...), &out, &failures)
	return status, out.String(), failures.String()
}

// waitingBus is a bus with a subscriber, for whom a batch waits.
func waitingBus(t *testing.T, server *rdbtest.Server) *store.Store {
	t.Helper()
	ctx, st := t.Context(), store.New(server.Open(t).Partition(""), store.Options{})
	require.NoError(t, st.PutToken(ctx, shop, "shop"))
	require.NoError(t, st.Subscribe(ctx, shop, bus.Subscription{Topics: []bus.TopicName{"widgets"}, Callback: "https://shop.example/"}, time.Now()))
	require.NoError(t, st.PublishAll(ctx, store.Publication{Topic: "widgets", Publisher: shop, Events: []wire.PackedEvent{rubyEvent}, ReceivedAt: 1})[0].Err)
	return st
}

func TestMove(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, from *rdbtest.Server) {
		ctx, to := t.Context(), rdbtest.Embedded(t)
		waitingBus(t, from)
		on := func(args ...string) []string {
			return append(args, "--from", from.URL, "--to", to.URL)
		}
		status, stdout, stderr := runMove(ctx, on()...)
		assert.Equal(t, exitNotOver, status)
		assert.Equal(t, "Copied 1 token, 1 topic and 1 subscriber; 3 changes made now.\n"+
			"No web runs on the new Redis. Start it now: until the switch it is not ready, and refuses clients.\n"+
			"No worker runs on the new Redis. Start it now.\n"+
			"Publishes go to the old Redis. Next: the same with --switch.\n", stdout)
		assert.Equal(t, "rtm: the move is not over\n", stderr)

		impatient, cancel := context.WithCancel(ctx)
		printed := make(chan string)
		go func() {
			_, stdout, stderr := runMove(impatient, on("--switch", "--wait")...)
			printed <- stdout + stderr
		}()
		there := store.New(to.Open(t).Partition(""), store.Options{})
		publish := func() error {
			return there.PublishAll(ctx, store.Publication{Topic: "widgets", Publisher: shop, Events: []wire.PackedEvent{rubyEvent}, ReceivedAt: 1})[0].Err
		}
		require.Eventually(t, func() bool { return publish() == nil }, time.Minute, 10*time.Millisecond)
		cancel()
		assert.Contains(t, <-printed, "rtm: stopped before the end; run it again to go on: ")

		status, stdout, _ = runMove(ctx, on()...)
		assert.Equal(t, exitNotOver, status)
		assert.Equal(t, "shop: 1 event in 1 batch on the old Redis\n"+
			"No worker runs on the old Redis: start one, or nothing is delivered that waits there.\n"+
			"No web runs on the new Redis, and publishers get 503: start it.\n"+
			"Publishes go to the new Redis. Next: the same again until nothing waits, or with --wait.\n", stdout)
		status, stdout, _ = runMove(ctx, on("--json")...)
		assert.Equal(t, exitNotOver, status)
		assert.Contains(t, stdout, `"waiting":[{"subscriber":"shop","events":1,"batches":1,"replaying":false,"relaying":false,"paused":false}]`)
		status, _, stderr = runMove(ctx, on("--cancel")...)
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, stderr, "cannot be undone")

		require.NoError(t, from.Raw.Del(ctx, "batches:gauges:event", "batches:gauges:batch").Err()) // as if it were delivered
		status, stdout, stderr = runMove(ctx, on("--wait")...)
		assert.Equal(t, app.ExitOK, status, stderr)
		assert.Equal(t, "1 subscriber released: from now on the new Redis delivers.\n"+
			"All is moved. The old Redis is not needed any more: 0 webs and 0 workers still use it.\n", stdout)
	})
}

func TestAMoveIsCancelled(t *testing.T) {
	ctx, from, to := t.Context(), rdbtest.Embedded(t), rdbtest.Embedded(t)
	st := waitingBus(t, from)
	on := func(args ...string) []string {
		return append(args, "--from", from.URL, "--to", to.URL, "--to-namespace", "rm:")
	}
	_, stdout, _ := runMove(ctx, on()...)
	assert.True(t, strings.HasPrefix(stdout, "Copied 1 token"), stdout)
	assert.Equal(t, shop, to.Raw.SMembers(ctx, "rm:subscribers").Val()[0])
	status, stdout, stderr := runMove(ctx, on("--cancel")...)
	assert.Equal(t, app.ExitOK, status, stderr)
	assert.True(t, strings.HasPrefix(stdout, "The move is cancelled."), stdout)
	require.NoError(t, store.NewBus(st).RequireServing(ctx))
}

func TestHowMoveIsMisused(t *testing.T) {
	t.Parallel()
	const from, to = "redis://localhost:1/0", "redis://localhost:1/1"
	for _, wrong := range []struct {
		says string
		args []string
	}{
		{"--from must be the URL of a Redis", []string{"--to", to}},
		{"--to must be the URL of a Redis", []string{"--from", from}},
		{"--from and --to are the same bus", []string{"--from", from, "--to", from}},
		{"rtm: --to: ROUTEMASTER_REDIS_MIN_REPLICAS", []string{"--from", from, "--to", to, "--to-min-replicas", "-1"}},
		{"give --switch or --cancel, not both", []string{"--from", from, "--to", to, "--switch", "--cancel"}},
		{"rtm: --from: ROUTEMASTER_REDIS_URL=(not shown) is not allowed", []string{"--from", "nonsense", "--to", to}},
	} {
		status, _, stderr := runMove(t.Context(), wrong.args...)
		assert.Equal(t, app.ExitUsage, status)
		assert.Contains(t, stderr, wrong.says)
	}
	status, _, stderr := runMove(t.Context(), "--from", from, "--to", to)
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "refused")
}

// TestAMoveThatIsStopped says all the same what it leaves.
func TestAMoveThatIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	failed := errors.New("the old bus may be closed")
	require.NoError(t, stopped(ctx, nil))
	assert.Equal(t, failed, stopped(ctx, failed))
	stop()
	require.NoError(t, stopped(ctx, nil), "it is over")
	require.ErrorIs(t, stopped(ctx, failed), failed)
	assert.EqualError(t, stopped(ctx, failed), "stopped before the end; run it again to go on: the old bus may be closed")
}

// said is where a command prints, each line to be received.
type said chan string

func (s said) Write(line []byte) (int, error) {
	s <- string(line)
	return len(line), nil
}

// TestAMoveThatWaits goes on when a Redis that was away is there again.
func TestAMoveThatWaits(t *testing.T) {
	t.Parallel()
	from, to := rdbtest.Real(t, "--appendonly", "yes", "--appendfsync", "always"), rdbtest.Embedded(t)
	waitingBus(t, from)
	printed, stderr, status := make(said), make(said), make(chan int)
	go func() {
		args := []string{"move", "--from", from.URL, "--to", to.URL, "--switch", "--wait"}
		status <- run(t.Context(), args, printed, stderr)
	}()
	for line := range printed {
		if strings.HasPrefix(line, "Publishes go to the new Redis.") {
			break
		}
	}
	from.Kill(t)
	assert.Contains(t, <-stderr, "rtm: redis unavailable, retrying: ")
	from.Restart(t)
	require.NoError(t, from.Raw.Del(t.Context(), "batches:gauges:event", "batches:gauges:batch").Err()) // as if it were delivered
	for line := range printed {
		if strings.HasPrefix(line, "All is moved.") {
			break
		}
	}
	assert.Equal(t, app.ExitOK, <-status)
}
