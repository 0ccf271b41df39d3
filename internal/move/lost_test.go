package move_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/move"
	"routemaster/internal/move/queued"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestALostAnswer of the step that decides leaves the old bus closed, in all partitions, and the
// run goes on to the end.
func TestALostAnswer(t *testing.T) {
	server := rdbtest.Real(t)
	from, to := newSide(t, server.Open(t), 3), newSide(t, rdbtest.Real(t).Open(t), 0)
	from.fill()
	requireRun(from, to, move.Copied)
	proxy := newProxy(t, server, "closed/switched")
	client, err := rdb.Open(rdb.Options{URL: "redis://" + proxy.address, Connections: 4})
	require.NoError(t, err)
	defer client.Close()
	refused := 0
	requireRun(from, to, move.Draining, doSwitch, func(o *move.Options) {
		o.From = client.Partitions("", 3)
		o.AtSteps(func(string) {
			if !proxy.hasLost.Load() {
				return
			}
			for topic := bus.TopicName("a"); len(topic) < 10; topic += "a" { // in all partitions
				require.ErrorIs(t, from.publish(topic, 1, 1), bus.ErrMoving)
				refused++
			}
		})
	})
	require.Positive(t, refused)
	require.NoError(t, to.publish("widgets", 6, 6))
	assert.Equal(t, storetest.UpTo(1, 5), from.deliver(alice, "widgets"))
	requireRun(from, to, move.Over)
	assert.Equal(t, []int{6}, to.deliver(alice, "widgets"))
	requireSound(from, to)
}

// proxy is between a client and a Redis.
type proxy struct {
	address, to, text string
	hasLost           atomic.Bool
}

// newProxy makes a proxy that loses the answer to the first request that has a text: it closes the
// connection when Redis has answered.
func newProxy(t *testing.T, server *rdbtest.Server, text string) *proxy {
	options, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{address: listener.Addr().String(), to: options.Addr, text: text}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.connect(client)
		}
	}()
	return p
}

func (p *proxy) connect(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	var losesNext atomic.Bool
	go func() {
		defer client.Close()
		answer := make([]byte, 1<<16)
		for {
			n, err := server.Read(answer)
			if err != nil || losesNext.Load() {
				return
			}
			if _, err := client.Write(answer[:n]); err != nil {
				return
			}
		}
	}()
	defer server.Close()
	_, _ = io.Copy(writer(func(request []byte) (int, error) {
		if bytes.Contains(request, []byte(p.text)) && p.hasLost.CompareAndSwap(false, true) {
			losesNext.Store(true)
		}
		return server.Write(request)
	}), client)
}

// writer is a function as an [io.Writer].
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestTheOldRedisRestartsWhileItIsClosed has the switch fail, and the old bus be open as soon as
// its Redis is back.
func TestTheOldRedisRestartsWhileItIsClosed(t *testing.T) {
	server := rdbtest.Real(t, "--appendonly", "yes", "--appendfsync", "always")
	from, to := newSide(t, server.Open(t), 0), newSide(t, rdbtest.Real(t).Open(t), 0)
	from.fill()
	requireRun(from, to, move.Copied)
	isBack := make(chan struct{})
	_, err := run(from, to, doSwitch, func(o *move.Options) {
		o.AtSteps(func(step string) {
			if step != "closed" {
				return
			}
			server.Kill(t)
			time.AfterFunc(300*time.Millisecond, func() {
				defer close(isBack)
				server.Restart(t)
			})
		})
	})
	<-isBack
	require.ErrorContains(t, err, "not switched, the old bus is open")
	require.NoError(t, from.publish("widgets", 6, 6))
}

// TestAStoppedSwitch opens the old bus, wherever it is stopped before the step that decides.
func TestAStoppedSwitch(t *testing.T) {
	from, to := embedded(t, 3), embedded(t, 0)
	from.fill()
	requireRun(from, to, move.Copied)
	from.subscribe("carol--1", "gadgets")
	l := &load{t: t, buses: [2]*side{from, to}}
	stopped := 0
	for steps := 1; ; steps++ {
		err := l.runUntil(steps, true)
		if to.RequireServing(t.Context()) == nil || from.publish("widgets", 6, 6) != nil {
			require.ErrorIs(t, from.publish("widgets", 6, 6), bus.ErrMoving, "decided")
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		stopped++
	}
	assert.Greater(t, stopped, 8) // three marks of the old bus, closed, and what has changed
	requireRun(from, to, move.Draining)
}

// TestADeletionAcrossTheSwitch is refused: the topic was copied.
func TestADeletionAcrossTheSwitch(t *testing.T) {
	from, to := embedded(t, 3), embedded(t, 0)
	from.fill()
	require.NoError(t, from.publish("lonely", 1, 1)) // nobody has subscribed
	requireRun(from, to, move.Copied)
	relays := from.Relays()[from.Home("lonely").Partition().Number()]
	deletion, err := relays.BeginDeletion(t.Context(), "lonely", "")
	require.NoError(t, err)
	requireRun(from, to, move.Draining, doSwitch)
	_, err = relays.EndDeletion(t.Context(), deletion, true)
	require.ErrorIs(t, err, bus.ErrMoving)
}

// TestAMoveOffAFullRedis needs no memory there.
func TestAMoveOffAFullRedis(t *testing.T) {
	server := rdbtest.Real(t)
	from, to := newSide(t, server.Open(t), 0), embedded(t, 3)
	from.fill()
	require.NoError(t, server.Raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.ErrorIs(t, from.publish("widgets", 6, 6), bus.ErrUnavailable)
	requireRun(from, to, move.Copied)
	requireRun(from, to, move.Draining, doSwitch)
	require.NoError(t, to.PatchSubscriber(t.Context(), alice, subscription(alice), to.now))
	assert.Equal(t, storetest.UpTo(1, 5), from.deliver(alice, "widgets"))
	requireRun(from, to, move.Over)
}

// TestAReplay that runs holds its subscriber, of whom nothing else is queued.
func TestAReplay(t *testing.T) {
	from, to := embedded(t, 0), embedded(t, 3)
	from.fill()
	from.deliverAll(t.Context())
	old := from.partitions[0]
	require.NoError(t, old.SAdd(t.Context(), "replays:running", "one").Err())
	require.NoError(t, old.HSet(t.Context(), "replay:one", "token", string(alice)).Err())
	report := requireRun(from, to, move.Draining, doSwitch)
	require.Equal(t, []move.Waiting{{Name: "alice", Left: queued.Left{Replaying: true}}}, report.Waiting)
	require.NoError(t, old.SRem(t.Context(), "replays:running", "one").Err())
	requireRun(from, to, move.Over)
}
