package rest

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

	mu sync.Mutex
	// open has the connections, by their rawConn.
	open  map[net.Conn]*openConn
	peers map[netip.Prefix]*peer
	// idle has the [openConn]s without a request, the one that has been so longest first.
	idle list.List
	// closed is how many were closed since the last warning; the next is due at nextWarning.
	closed      int
	nextWarning time.Time
}

// peer is an address that has connections.
type peer struct {
	address netip.Prefix
	open    int
	idle    list.List // as in Connections
}

type openConn struct {
	conn net.Conn
	peer *peer
	// inAll and inPeer are its places in the lists of idle ones; nil while it has a request.
	inAll, inPeer *list.Element
}

// reservedFiles is how many descriptors are kept for files other than peers' connections, such as
// the connections to Redis; fewer if the limit is small.
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
	if excess := c.change(rawConn(conn), state); excess != nil {
		_ = excess.Close() // not under the lock
	}
}

// rawConn returns the connection below TLS. Closing it writes nothing, so that a peer that does not
// read cannot delay the accepting of connections.
func rawConn(conn net.Conn) net.Conn {
	switch conn := conn.(type) {
	case *tls.Conn:
		return conn.NetConn()
	case *watchedTLSConn:
		return conn.secure.NetConn()
	}
	return conn
}

// change returns the connection that is too many, nil if none is.
func (c *Connections) change(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[conn]
	switch {
	case state == http.StateNew && o == nil:
		return c.excess(c.add(conn))
	case state == http.StateNew: // it is known since before its handshake
	case o == nil: // it was too many
	case state == http.StateIdle:
		c.rest(o)
	case state == http.StateActive:
		c.busy(o)
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
	p.open++
	o := &openConn{conn: conn, peer: p}
	c.open[conn] = o
	c.rest(o)
	return o
}

// rest notes that a connection is idle from now on.
func (c *Connections) rest(o *openConn) {
	c.busy(o)
	o.inAll, o.inPeer = c.idle.PushBack(o), o.peer.idle.PushBack(o)
}

// busy notes that a connection is not idle any more.
func (c *Connections) busy(o *openConn) {
	if o.inAll != nil {
		c.idle.Remove(o.inAll)
		o.peer.idle.Remove(o.inPeer)
		o.inAll, o.inPeer = nil, nil
	}
}

func (c *Connections) remove(o *openConn) {
	c.busy(o)
	delete(c.open, o.conn)
	if o.peer.open--; o.peer.open == 0 {
		delete(c.peers, o.peer.address)
	}
}

// excess removes the connection that is too many after another was added, and returns it; nil if
// none is. Only the new one is left if no other is idle: it is the last in both lists.
func (c *Connections) excess(added *openConn) net.Conn {
	idle := &c.idle
	switch {
	case added.peer.open > c.maxPeer:
		idle = &added.peer.idle
	case len(c.open) <= c.max:
		return nil
	}
	o := idle.Front().Value.(*openConn)
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
