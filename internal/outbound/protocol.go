package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Protocols offered by ALPN (RFC 7301). A server chooses by its own preference, mostly HTTP/2.
var (
	onlyHTTP1 = []string{"http/1.1"}
	both      = []string{"h2", "http/1.1"}
)

// dialTLS makes a TLS connection. It offers HTTP/1.1, which costs less for one request at a time,
// and HTTP/2 too if the server does not confirm the first: it may speak only HTTP/2, or no ALPN.
// Both attempts together take no longer than one may: the timeout to dial, and the timeout to shake
// hands.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*d.Timeout)
		defer cancel()
	}
	if !d.wantsHTTP2.has(address) {
		conn, err := d.handshake(ctx, network, address, onlyHTTP1)
		switch {
		case err != nil && !mayWantHTTP2(err):
			return nil, err
		case err == nil && protocolOf(conn) != "":
			return conn, nil
		case err == nil:
			_ = conn.Close()
		}
	}
	conn, err := d.handshake(ctx, network, address, both)
	if err != nil {
		return nil, err
	}
	if protocolOf(conn) != onlyHTTP1[0] {
		d.wantsHTTP2.add(address)
	}
	if t := trailOf(ctx); t != nil {
		t.http2.Store(protocolOf(conn) == both[0])
	}
	return conn, nil
}

func protocolOf(conn *tls.Conn) string { return conn.ConnectionState().NegotiatedProtocol }

// handshake makes a connection that offers protocols.
func (d *dialer) handshake(ctx context.Context, network, address string, protocols []string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	config.ServerName, config.NextProtos = host, protocols
	conn := tls.Client(plain, config)
	if d.Timeout > 0 {
		_ = plain.SetDeadline(time.Now().Add(d.Timeout))
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, err
	}
	return conn, plain.SetDeadline(time.Time{})
}

// mayWantHTTP2 reports whether a handshake that offered HTTP/1.1 may have failed because of that.
// Servers answer no_application_protocol (RFC 7301, section 3.2), another alert, or hang up.
func mayWantHTTP2(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" || isReset(err)
}

// refusesHTTP1 reports whether a server answered that it wants another version of HTTP than 1.1,
// which it confirmed: then it has not acted on the request.
func refusesHTTP1(resp *http.Response) bool {
	const incompatibleProtocol = 464 // of AWS' load balancers, before targets that speak HTTP/2
	if resp.ProtoMajor != 1 || resp.TLS == nil {
		return false
	}
	switch resp.StatusCode {
	case http.StatusUpgradeRequired, http.StatusHTTPVersionNotSupported, incompatibleProtocol:
		return true
	}
	return false
}

// Bounds on the facts remembered about hosts: beyond them all are forgotten, and found out again.
const (
	maxHosts = 10_000
	hostsTTL = time.Hour
)

// hostSet is a set of hosts, with their ports. It is safe for concurrent use.
type hostSet struct {
	mu    sync.Mutex
	hosts map[string]struct{}
	since time.Time
}

func (s *hostSet) has(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.since) > hostsTTL {
		s.hosts = nil
	}
	_, ok := s.hosts[host]
	return ok
}

// add adds a host, and reports whether it was not in the set.
func (s *hostSet) add(host string) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil || len(s.hosts) >= maxHosts {
		s.hosts, s.since = map[string]struct{}{}, time.Now()
	}
	before := len(s.hosts)
	s.hosts[host] = struct{}{}
	return len(s.hosts) > before
}
