package rdb_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
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

// serveTCP makes an address lead to a Redis. Connections made after a redirect lead to another.
func serveTCP(t *testing.T, to string) (address string, redirect func(to string)) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var target atomic.Value
	target.Store(to)
	forward(t, listener, func() string { return target.Load().(string) })
	return listener.Addr().String(), func(to string) { target.Store(to) }
}

// forward forwards connections until the test ends.
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
		client := server.Open(t, func(o *rdb.Options) { o.URL = "rediss://" + address + "?skip_verify=true&dial_timeout=30s" })
		assert.NoError(t, client.Ping(t.Context()))
		assert.NoError(t, client.Close())
	})
	t.Run("not trusted", func(t *testing.T) {
		client := server.Open(t, func(o *rdb.Options) { o.URL = "rediss://" + address + "?dial_timeout=30s" })
		err := client.Ping(t.Context())
		assert.ErrorIs(t, err, bus.ErrUnavailable)
		assert.ErrorContains(t, err, "certificate")
		assert.NoError(t, client.Close())
	})
}

func TestAMasterThatTheSentinelsDoNotKnow(t *testing.T) {
	server := rdbtest.WithSentinels(t)
	url := strings.Replace(server.URL, "/bus", "/wrong", 1)
	var log rdbtest.Buffer
	client := server.Open(t, log.LogTo, func(o *rdb.Options) { o.URL = url })
	p, ctx := client.Partition(""), t.Context()
	assert.ErrorIs(t, client.Ping(ctx), bus.ErrUnavailable)
	assert.ErrorIs(t, write(ctx, p), bus.ErrUnavailable)
	assert.ErrorIs(t, p.EachKey(ctx, "*", func([]string) error { return nil }), bus.ErrUnavailable)
	assert.ErrorIs(t, p.Pipelined(ctx, "get", func(pipe rdb.Commands) { pipe.Get(ctx, "x") }), bus.ErrUnavailable)
	assert.Regexp(t, `^.*redis unavailable, retrying.*know no master of that name.*\n$`, log.String())
}

// TestAFailoverBehindAFixedAddress has an address lead to another server, while the old one lives
// on as its replica.
func TestAFailoverBehindAFixedAddress(t *testing.T) {
	first, second := rdbtest.Real(t), rdbtest.Real(t)
	ctx := t.Context()
	address, redirect := serveTCP(t, hostOf(t, first))
	p := first.Open(t, func(o *rdb.Options) { o.URL = "redis://" + address }).Partition("")
	var writers sync.WaitGroup
	for range 5 { // several connections, to a server that knows the script
		writers.Go(func() { assert.NoError(t, write(ctx, p)) })
	}
	writers.Wait()
	host, port, _ := net.SplitHostPort(hostOf(t, second))
	require.NoError(t, first.Raw.Do(ctx, "replicaof", host, port).Err())
	redirect(hostOf(t, second))
	require.Eventually(t, func() bool {
		err := write(ctx, p)
		if err != nil {
			require.ErrorIs(t, err, bus.ErrUnavailable)
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, "1", second.Raw.Get(ctx, "count").Val(), "the script ran once")
}
