package server

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// closedWarningInterval is the shortest time between two warnings of closed connections.
const closedWarningInterval = 10 * time.Second

// Connections bounds the connections of all listeners of a process, so that idle ones cannot take
// all its file descriptors. When there are too many, in all or of one address, it closes the one
// that has been idle longest; if none is idle, the new one. It is safe for concurrent use.
type Connections struct {
	// max is how many may be open, maxPeer how many of one address.
	max, maxPeer int
	log          *slog.Logger

	mu    sync.Mutex
	open  map[net.Conn]*openConn
	peers map[netip.Prefix]*peer
	// order has the [openConn]s: of two that are idle, the one that has been so longer comes first.
	order list.List
	// closed is how many were closed since the last warning; the next is due at nextWarning.
	closed      int
	nextWarning time.Time
}

// peer is an address that has connections.
type peer struct {
	address netip.Prefix
	order   list.List // as that of Connections
}

// openConn is a connection. Each request makes it busy and idle again, which has to be cheap.
type openConn struct {
	conn net.Conn
	// idle is whether it has no request.
	idle bool
	peer *peer
	// inAll and inPeer are its places in the orders.
	inAll, inPeer *list.Element
}

// reservedFiles is how many descriptors are kept for other things than connections of peers, such
// as those to Redis; fewer if the limit is small.
const reservedFiles = 64

// NewConnections makes the bounds of a process that may have so many files open, 0 if there is no
// limit. One address may have perAddress connections; if that is 0, three quarters of all, since
// all clients may come from one proxy.
func NewConnections(files, perAddress int, log *slog.Logger) *Connections {
	most := max(1, files-min(max(files/8, reservedFiles), files/2))
	if files == 0 {
		most = 1 << 30
	}
	if perAddress == 0 {
		perAddress = max(1, most-most/4)
	}
	return &Connections{max: most, maxPeer: perAddress, log: log, open: map[net.Conn]*openConn{}, peers: map[netip.Prefix]*peer{}}
}

// Max returns how many connections may be open in all, and of one address.
func (c *Connections) Max() (all, perAddress int) { return c.max, c.maxPeer }

// Changed takes note of the state of a connection: it is for [http.Server].ConnState.
func (c *Connections) Changed(conn net.Conn, state http.ConnState) {
	if c == nil {
		return
	}
	if excess := c.change(conn, state); excess != nil {
		_ = rawConn(excess).Close() // not under the lock
	}
}

// rawConn returns what is below TLS. To close that writes nothing, so that a peer that does not
// read cannot hold up the connections that are to be accepted.
func rawConn(conn net.Conn) net.Conn {
	if secure, ok := conn.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return conn
}

// change returns the connection that is too many, nil if none is.
func (c *Connections) change(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[conn]
	switch {
	case state == http.StateNew:
		return c.excess(c.add(conn))
	case o == nil: // it was too many
	case state == http.StateIdle:
		o.idle = true
		c.moveBack(o)
	case state == http.StateActive:
		o.idle = false
	default:
		c.remove(o)
	}
	return nil
}

// add adds a connection. It is idle until it sends a request.
func (c *Connections) add(conn net.Conn) *openConn {
	from := peerOf(conn)
	p := c.peers[from]
	if p == nil {
		p = &peer{address: from}
		c.peers[from] = p
	}
	o := &openConn{conn: conn, idle: true, peer: p}
	o.inAll, o.inPeer = c.order.PushBack(o), p.order.PushBack(o)
	c.open[conn] = o
	return o
}

func (c *Connections) moveBack(o *openConn) {
	c.order.MoveToBack(o.inAll)
	o.peer.order.MoveToBack(o.inPeer)
}

func (c *Connections) remove(o *openConn) {
	c.order.Remove(o.inAll)
	o.peer.order.Remove(o.inPeer)
	delete(c.open, o.conn)
	if o.peer.order.Len() == 0 {
		delete(c.peers, o.peer.address)
	}
}

// excess removes the connection that is too many after another was added, and returns it; nil if
// none is. If no other is idle, it is the new one.
func (c *Connections) excess(added *openConn) net.Conn {
	order := &c.order
	switch {
	case added.peer.order.Len() > c.maxPeer:
		order = &added.peer.order
	case len(c.open) <= c.max:
		return nil
	}
	o := order.Front().Value.(*openConn)
	for !o.idle {
		c.moveBack(o) // so that the next call need not pass it
		o = order.Front().Value.(*openConn)
	}
	c.remove(o)
	c.warn()
	return o.conn
}

// warn logs that connections were closed, unless it did a moment ago.
func (c *Connections) warn() {
	c.closed++
	if now := time.Now(); !now.Before(c.nextWarning) {
		c.log.Warn("too many connections: closed those that were idle longest",
			"closed", c.closed, "open", len(c.open), "max", c.max, "max_per_address", c.maxPeer)
		c.nextWarning, c.closed = now.Add(closedWarningInterval), 0
	}
}

// peerOf is the address that a connection is from; of IPv6 its network of 64 bits, which one peer
// may have to itself. It is zero if there is none.
func peerOf(conn net.Conn) netip.Prefix {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address := tcp.AddrPort().Addr().Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits)
	return network
}
