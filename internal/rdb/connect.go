package rdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout bounds how long a call can take to find that Redis is not there, unless the URL
// says otherwise.
const dialTimeout = time.Second

// keepAlive notices within a few seconds that Redis' host has gone without a word, also on
// connections that only wait.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// What is read and written at once on a connection, in bytes. More takes more than one go.
const (
	readBuffer  = 8 << 10
	writeBuffer = 16 << 10
)

// source is where Redis is: at one address, or wherever sentinels say that the master is.
type source struct {
	options redis.Options
	// sentinels are addresses; there are none if options have Redis' own.
	sentinels []string
	// master is the name by which the sentinels know it.
	master                             string
	sentinelUsername, sentinelPassword string
}

// CheckURL returns an error unless url is one that [Open] takes. The error may show the URL.
func CheckURL(url string) error {
	_, err := parseURL(url)
	return err
}

// Passwords are those of Redis and of its sentinels in a URL that [Open] takes; empty where there
// is none.
func Passwords(url string) []string {
	s, err := parseURL(url)
	if err != nil {
		return nil
	}
	return []string{s.options.Password, s.sentinelPassword}
}

func parseURL(text string) (source, error) {
	scheme, rest, ok := strings.Cut(text, "+sentinel://")
	if ok && (scheme == "redis" || scheme == "rediss") {
		return parseSentinelURL(scheme, rest)
	}
	options, err := redis.ParseURL(text)
	if err != nil {
		return source{}, err
	}
	return source{options: *options}, nil
}

// parseSentinelURL reads what follows "+sentinel://":
// user:password@host:port,host:port/master/database?sentinel_username=&sentinel_password=, all of
// it but a host and the master optional. Other parameters are those of a plain URL.
func parseSentinelURL(scheme, rest string) (source, error) {
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user := authority[:strings.LastIndex(authority, "@")+1]
	hosts := strings.Split(authority[len(user):], ",")
	u, err := url.Parse(scheme + "://" + user + hosts[0] + path)
	if err != nil {
		return source{}, err
	}
	var s source
	for _, host := range hosts {
		address, err := sentinelAddress(host)
		if err != nil {
			return source{}, err
		}
		s.sentinels = append(s.sentinels, address)
	}
	s.master, u.Path, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if s.master == "" {
		return source{}, errors.New("the path must begin with the master's name")
	}
	query := u.Query()
	s.sentinelUsername, s.sentinelPassword = query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.RawQuery = query.Encode()
	options, err := redis.ParseURL(u.String())
	if err != nil {
		return source{}, err
	}
	if options.DB < 0 {
		return source{}, errors.New("the database must be 0 or more")
	}
	s.options = *options
	if s.options.TLSConfig != nil {
		s.options.TLSConfig.ServerName = "" // each server has its own
	}
	return s, nil
}

const sentinelPort = "26379"

func sentinelAddress(host string) (string, error) {
	u, err := url.Parse("redis://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") != strings.HasPrefix(host, "[") {
		return "", fmt.Errorf("%q is not the address of a sentinel", host)
	}
	port := cmp.Or(u.Port(), sentinelPort)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%q has a port beyond 1 to 65535", host)
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// configure sets what does not depend on the URL, or must not.
func (s *source) configure(connections int) {
	o := &s.options
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
}

// connect makes a client. It connects when it is first used.
func (s source) connect(adjust ...func(*redis.Options)) library {
	o := s.options
	for _, f := range adjust {
		f(&o)
	}
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

// dialer connects to Redis and to sentinels, over TLS if there is a configuration for it.
func dialer(config *tls.Config, timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout, KeepAliveConfig: keepAlive}
	if config == nil {
		return plain.DialContext
	}
	// It takes the server's name from the address where the configuration has none.
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext
}
