package store_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func hostOf(t *testing.T, server *rdbtest.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return u.Host
}

// serveTLS makes a Redis reachable over TLS, and returns the address.
func serveTLS(t *testing.T, to string) string {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	certificates := certified.TLS.Certificates
	certified.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates})
	require.NoError(t, err)
	forward(t, listener, func() string { return to })
	return listener.Addr().String()
}

// serveTCP makes an address lead to a Redis, and new connections to another from when it is told
// to.
func serveTCP(t *testing.T, to string) (address string, redirect func(to string)) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var target atomic.Value
	target.Store(to)
	forward(t, listener, func() string { return target.Load().(string) })
	return listener.Addr().String(), func(to string) { target.Store(to) }
}

// forward passes on what comes in, until the test ends.
func forward(t *testing.T, listener net.Listener, to func() string) {
	var running sync.WaitGroup
	running.Go(func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			inside, err := net.Dial("tcp", to())
			if !assert.NoError(t, err) {
				return
			}
			running.Go(func() { _, _ = io.Copy(inside, outside); _ = inside.Close() })
			running.Go(func() { _, _ = io.Copy(outside, inside); _ = outside.Close() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
}

func TestRedisOverTLS(t *testing.T) {
	server := rdbtest.Real(t)
	address := serveTLS(t, hostOf(t, server))
	t.Run("trusted", func(t *testing.T) {
		st := server.Open(t, func(o *rdb.Options) { o.URL = "rediss://" + address + "?skip_verify=true&dial_timeout=30s" })
		assert.NoError(t, st.Ping(t.Context()))
		assert.NoError(t, st.Close())
	})
	t.Run("not trusted", func(t *testing.T) {
		st := server.Open(t, func(o *rdb.Options) { o.URL = "rediss://" + address + "?dial_timeout=30s" })
		err := st.Ping(t.Context())
		assert.ErrorIs(t, err, bus.ErrUnavailable)
		assert.ErrorContains(t, err, "certificate")
		assert.NoError(t, st.Close())
	})
}

func TestAChangeThatNoReplicaConfirmsFails(t *testing.T) {
	server := rdbtest.Real(t)
	var log rdbtest.Buffer
	st := store.New(server.Open(t, log.LogTo, func(o *rdb.Options) { o.MinReplicas = 1 }).Partition(""), store.Options{})
	ctx := t.Context()
	alone := storetest.Open(t, server)
	require.NoError(t, alone.PutToken(ctx, publisher, "publisher"))
	require.NoError(t, alone.PutToken(ctx, bob, "bob"))
	require.NoError(t, alone.Subscribe(ctx, bob, bus.Subscription{Topics: []bus.TopicName{"gadgets"}, Callback: "https://s.example/"}, time.Now()))
	receipt := st.PublishAll(ctx, store.Publication{Topic: "gadgets", Publisher: publisher, Events: []wire.PackedEvent{packed(t, "gadgets", 1)}})[0]
	assert.ErrorIs(t, receipt.Err, bus.ErrUnavailable, "though it was told who got the event")
	assert.False(t, receipt.Stored)
	for range 2 { // the first finds the script missing, the second finds the request stored
		err := storetest.Publish(ctx, st, store.Publication{
			Topic: "widgets", Publisher: publisher, Events: []wire.PackedEvent{packed(t, "widgets", 1)},
			IdempotencyKey: &bus.IdempotencyKey{Key: "key", Digest: "digest"},
		})
		assert.ErrorIs(t, err, bus.ErrUnavailable)
		assert.ErrorContains(t, err, "too few replicas")
	}
	assert.ErrorIs(t, st.PutToken(ctx, alice, "alice"), bus.ErrUnavailable)
	assert.Equal(t, "1", server.Raw.HGet(ctx, "topic:widgets", "counter").Val(), "once, though nobody can be sure of it")
	assert.Regexp(t, `^.*redis refuses calls.*too few replicas.*\n$`, log.String(), "it is logged once")
}

func TestAMasterThatTheSentinelsDoNotKnow(t *testing.T) {
	server := rdbtest.WithSentinels(t)
	url := strings.Replace(server.URL, "/bus", "/wrong", 1)
	var log rdbtest.Buffer
	st := store.New(server.Open(t, log.LogTo, func(o *rdb.Options) { o.URL = url }).Partition(""), store.Options{})
	ctx := t.Context()
	assert.ErrorIs(t, st.Ping(ctx), bus.ErrUnavailable)
	assert.ErrorIs(t, st.PutToken(ctx, alice, "alice"), bus.ErrUnavailable)
	_, _, err := storetest.Topics(ctx, st)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
	assert.Regexp(t, `^.*redis unavailable, retrying.*know no master of that name.*\n$`, log.String())
	_, err = storetest.Check(ctx, st)
	assert.ErrorIs(t, err, bus.ErrUnavailable)
}

// TestAFailoverBehindAFixedAddress has an address lead to another server, while the old one lives
// on as its replica.
func TestAFailoverBehindAFixedAddress(t *testing.T) {
	first, second := rdbtest.Real(t), rdbtest.Real(t)
	ctx := t.Context()
	address, redirect := serveTCP(t, hostOf(t, first))
	p := first.Open(t, func(o *rdb.Options) { o.URL = "redis://" + address }).Partition("")
	st := store.New(p, store.Options{})
	q := queue.New(p)
	for i := range 5 { // several connections, which know the scripts
		_, err := q.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "x", Args: []string{strconv.Itoa(i)}})
		require.NoError(t, err)
	}
	_, _, err := storetest.Topics(ctx, st)
	require.NoError(t, err)
	host, port, _ := net.SplitHostPort(hostOf(t, second))
	require.NoError(t, first.Raw.Do(ctx, "replicaof", host, port).Err())
	redirect(hostOf(t, second))
	require.Eventually(t, func() bool {
		added, err := q.Enqueue(ctx, bus.QueueMain, bus.Job{Name: "after"})
		if err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
		}
		return added
	}, 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, int64(1), second.Raw.LLen(ctx, "jobs:instant:main").Val())
}

func TestAUserWhoMayNotAskForMemory(t *testing.T) {
	server := rdbtest.Real(t)
	ctx := t.Context()
	require.NoError(t, server.Raw.Do(ctx, "acl", "setuser", "limited", "on", ">pw", "~*", "&*", "+@all", "-info").Err())
	var log rdbtest.Buffer
	st := server.Open(t, log.LogTo, func(o *rdb.Options) { o.URL = strings.Replace(o.URL, "redis://", "redis://limited:pw@", 1) })
	_, err := st.Memory(ctx)
	assert.ErrorIs(t, err, rdb.ErrMemoryUnknown)
	assert.ErrorContains(t, err, "NOPERM")
	assert.NoError(t, st.Ping(ctx))
	assert.NotContains(t, log.String(), "redis unavailable")
}
