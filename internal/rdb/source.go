package rdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout bounds how long a call can take to find that Redis is not there, unless the URL
// says otherwise.
const dialTimeout = time.Second

// readTimeout bounds how long Redis may take to answer, or to accept a write, unless the URL says
// otherwise.
const readTimeout = 3 * time.Second

// keepAlive notices within a few seconds that Redis' host has gone without a word, also on
// connections that only wait.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// Sizes of the buffers of a connection, in bytes. Larger messages take several reads or writes.
const (
	readBuffer  = 8 << 10
	writeBuffer = 16 << 10
)

// source is where Redis is: at one address, wherever sentinels say that the master is, or at the
// nodes of a cluster.
type source struct {
	options redis.Options
	// sentinels are addresses; there are none unless the URL names them.
	sentinels []string
	// master is the name by which the sentinels know it.
	master                             string
	sentinelUsername, sentinelPassword string
	// Nodes are addresses of some nodes of a cluster, which know the others; there are none unless
	// the URL names a cluster.
	Nodes []string
	// files are the files that the URL names.
	files pemFiles
}

// Passwords returns the passwords of Redis and of its sentinels; empty where there is none.
func (s source) Passwords() []string { return []string{s.options.Password, s.sentinelPassword} }

// openSource is [parseSource], and prepares to connect: it reads the files that the URL names, and
// sets options that do not depend on the URL, or must not. Connections is the maximum number of
// connections, to each node of a cluster.
func openSource(url string, connections int) (source, error) {
	s, err := parseSource(url)
	if err != nil {
		return source{}, err
	}
	o := &s.options
	if err := s.files.configure(o.TLSConfig); err != nil {
		return source{}, err
	}
	o.PoolSize = max(connections, 1)
	// Scripts are sent in pipelines, for which the library would keep a second pool, with 256 KiB
	// for each connection. A worker with hundreds of threads has as many connections, and little
	// to say on each.
	o.PipelinePoolSize = -1
	o.ReadBufferSize, o.WriteBufferSize = readBuffer, writeBuffer
	if o.DialTimeout <= 0 {
		o.DialTimeout = dialTimeout
	}
	o.DialerRetries = 1
	// A call that is sent again when its answer was lost might take effect twice:
	// only the callers know which ones bear that.
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	// Behind an address that stays when Redis fails over, a connection may go on to the old
	// master, which still answers.
	if o.ConnMaxLifetime == 0 {
		o.ConnMaxLifetime = time.Minute
	}
	o.Dialer = dialer(o.TLSConfig, o.DialTimeout)
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return s, nil
}

// Connect makes a client. It connects when it is first used. For a cluster it is a client of the
// first node in the URL.
func (s source) Connect(adjust ...func(*redis.Options)) *redis.Client {
	o := s.options
	for _, f := range adjust {
		f(&o)
	}
	o.ReadTimeout = cmp.Or(o.ReadTimeout, readTimeout) // the library's own default has changed before
	if s.sentinels == nil {
		return redis.NewClient(&o)
	}
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: s.master, SentinelAddrs: s.sentinels,
		SentinelUsername: s.sentinelUsername, SentinelPassword: s.sentinelPassword,
		ClientName: o.ClientName, Protocol: o.Protocol, Username: o.Username, Password: o.Password, DB: o.DB,
		Dialer: o.Dialer, DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolSize: o.PoolSize, PipelinePoolSize: o.PipelinePoolSize, ReadBufferSize: o.ReadBufferSize, WriteBufferSize: o.WriteBufferSize,
		PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, PoolFIFO: o.PoolFIFO, MaxRetries: o.MaxRetries,
	})
}

// ConnectTo is [source.Connect] to a node of a cluster.
func (s source) ConnectTo(address string) *redis.Client {
	return s.Connect(func(o *redis.Options) { o.Addr = address })
}

// ConnectNowhere makes a client that never connects, for hooks that send its calls to nodes of a
// cluster.
func (s source) ConnectNowhere() *redis.Client {
	return s.Connect(func(o *redis.Options) { o.MinIdleConns = 0 })
}

// waitMargin is how much longer than Redis a waiting connection waits, unless the URL grants every
// answer more.
const waitMargin = time.Second

// ConnectWaiter is [source.Connect] with one connection, on which Redis takes longest at most.
func (s source) ConnectWaiter(longest time.Duration) *redis.Client {
	return s.Connect(func(o *redis.Options) {
		o.PoolSize, o.MinIdleConns = 1, 0
		o.ReadTimeout = longest + max(waitMargin, o.ReadTimeout)
	})
}

// dialer connects to Redis and to sentinels, over TLS if there is a configuration for it.
func dialer(config *tls.Config, timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout, KeepAliveConfig: keepAlive}
	if config == nil {
		return plain.DialContext
	}
	// It takes the server's name from the address where the configuration has none.
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
}
