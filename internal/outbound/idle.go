package outbound

import (
	"container/list"
	"context"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"
)

// connection is a connection to a host. It carries one request at a time.
type connection struct {
	*http.ClientConn
	scheme, host string
	// public is whether its address is.
	public bool
	// http2 is whether it speaks HTTP/2.
	http2 bool
	// wire is the connection below TLS, start its counts when the last request began.
	wire  *wire
	start mark
	// early is whether the response began before all of the last request had arrived. The other side
	// may never read the rest of it, nor any later request.
	early bool
	// silent is whether no byte of a response to the last request had come when the request failed.
	silent bool
	// Set while it is idle: its place in the pool, and the timer that ends its grace or closes it.
	place  *list.Element
	expiry *time.Timer
}

// send sends a request. If that fails the connection is closed, and none is returned.
func (c *connection) send(req *http.Request) (*connection, *http.Response, error) {
	c.start, c.early = c.wire.mark(), false
	if req.ContentLength > oneWrite {
		req = req.WithContext(c.watch(req))
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		c.silent = !c.wire.hasRead(c.start, c.http2)
		_ = c.Close() // which the other side may answer
		return nil, nil, err
	}
	return c, resp, nil
}

// oneWrite is how long a body may be, in bytes, that is written at once with its header: as much as
// net/http holds. No answer begins before it has left.
const oneWrite = 4 << 10

// watch returns a context that records whether the response to a request comes early. When
// RoundTrip returns it is too late for that: it waits a little for the rest of the body.
func (c *connection) watch(req *http.Request) context.Context {
	return httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotFirstResponseByte: func() { c.early = c.wire.isSending(req.ContentLength, c.start) },
	})
}

// isFree reports whether the connection can take the next request.
func (c *connection) isFree() bool { return !c.early && c.Available() > 0 }

// origin is the scheme and host of a connection (RFC 6454).
type origin struct{ scheme, host string }

// idlePool keeps the connections that no request uses. It bounds their number, the time they are
// kept, and how many of one host are kept after the grace. The one that has been idle longest goes
// first. It is safe for concurrent use.
type idlePool struct {
	max, maxPerHost int
	// A connection counts as one of its host's only after the grace. Between two requests it is
	// idle for a moment: threads that share a host would close and open connections all the time.
	grace, ttl time.Duration

	mu     sync.Mutex
	byHost map[origin][]*connection // the longest idle first
	all    list.List                // of *connection, the longest idle first
	closed bool
	// doubted has the time until which no connections to a host are kept: see doubt.
	doubted map[origin]time.Time
}

// doubtTTL is for how long no connections are kept to a host that was silent on a reused one: long
// enough for the failed requests to come up again, and to get new connections.
const doubtTTL = time.Minute

func newIdlePool(maxIdle, maxPerHost int, grace, ttl time.Duration) *idlePool {
	return &idlePool{
		max: maxIdle, maxPerHost: maxPerHost, grace: grace, ttl: ttl, byHost: map[origin][]*connection{}, doubted: map[origin]time.Time{},
	}
}

// take returns the most recently used connection to a host, nil if there is none. It closes
// connections that the other side has closed meanwhile.
func (p *idlePool) take(scheme, host string) *connection {
	for {
		p.mu.Lock()
		conns := p.byHost[origin{scheme, host}]
		if len(conns) == 0 {
			p.mu.Unlock()
			return nil
		}
		conn := conns[len(conns)-1]
		p.remove(conn)
		p.mu.Unlock()
		if conn.Available() > 0 && !conn.wire.isClosed() {
			return conn
		}
		_ = conn.Close()
	}
}

// doubt closes the connections to a host, and keeps none to it for a while.
func (p *idlePool) doubt(scheme, host string) {
	to := origin{scheme, host}
	p.mu.Lock()
	if len(p.doubted) >= maxHosts { // a host that is not asked again stays
		clear(p.doubted)
	}
	p.doubted[to] = time.Now().Add(doubtTTL)
	conns := slices.Clone(p.byHost[to])
	for _, conn := range conns {
		p.remove(conn)
	}
	p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// doubts reports whether no connections to a host are kept. The caller holds the lock.
func (p *idlePool) doubts(to origin) bool {
	until, ok := p.doubted[to]
	if ok && time.Now().After(until) {
		delete(p.doubted, to)
		return false
	}
	return ok
}

// put keeps a connection that is free for the next request.
func (p *idlePool) put(conn *connection) {
	if surplus := p.add(conn); surplus != nil {
		_ = surplus.Close()
	}
}

// add keeps a connection. If there are now too many, it removes and returns another one, else nil.
func (p *idlePool) add(conn *connection) (surplus *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := origin{conn.scheme, conn.host}
	if p.closed || p.doubts(to) {
		return conn
	}
	p.byHost[to] = append(p.byHost[to], conn)
	place := p.all.PushBack(conn)
	conn.place, conn.expiry = place, time.AfterFunc(p.grace, func() { p.endGrace(conn, place) })
	if p.all.Len() > p.max {
		return p.remove(p.all.Front().Value.(*connection))
	}
	return nil
}

// remove removes a connection. The caller holds the lock.
func (p *idlePool) remove(conn *connection) *connection {
	conn.expiry.Stop()
	p.all.Remove(conn.place)
	conn.place = nil
	to := origin{conn.scheme, conn.host}
	p.byHost[to] = slices.DeleteFunc(p.byHost[to], func(other *connection) bool { return other == conn })
	if len(p.byHost[to]) == 0 {
		delete(p.byHost, to)
	}
	return conn
}

// endGrace closes a connection if it has not been used since its grace began and its host has too
// many.
func (p *idlePool) endGrace(conn *connection, place *list.Element) {
	p.mu.Lock()
	if conn.place != place { // it has been used since
		p.mu.Unlock()
		return
	}
	surplus := len(p.byHost[origin{conn.scheme, conn.host}]) > p.maxPerHost
	if surplus {
		p.remove(conn)
	} else {
		conn.expiry = time.AfterFunc(p.ttl-p.grace, func() { p.expire(conn, place) })
	}
	p.mu.Unlock()
	if surplus {
		_ = conn.Close()
	}
}

// expire closes a connection that has not been used since.
func (p *idlePool) expire(conn *connection, place *list.Element) {
	p.mu.Lock()
	expired := conn.place == place // else it has been used since
	if expired {
		p.remove(conn)
	}
	p.mu.Unlock()
	if expired {
		_ = conn.Close()
	}
}

// clear closes all connections.
func (p *idlePool) clear() {
	p.mu.Lock()
	var conns []*connection
	for p.all.Len() > 0 {
		conns = append(conns, p.remove(p.all.Front().Value.(*connection)))
	}
	p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// close closes all connections, and every connection put later.
func (p *idlePool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.clear()
}
