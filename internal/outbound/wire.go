package outbound

import (
	"net"
	"sync/atomic"
	"syscall"
)

// wire is a connection that counts its bytes, below TLS: the counts show whether a request has
// left, and whether a response has begun. The errors of [net/http] say why a request failed, and
// not how far it got.
type wire struct {
	net.Conn
	// raw is nil if there is no socket. Its look notes in hungUp whether the other side has closed it.
	raw    syscall.RawConn
	look   func(fd uintptr)
	hungUp bool

	// begun counts the bytes that were to be written, written the bytes written before the connection
	// was known to have been closed by the other side, and read the bytes that came.
	begun, written, read atomic.Int64
	closed               atomic.Bool
	// final are the bytes that had come when an alert was about to be written first, if ended is set.
	final atomic.Int64
	ended atomic.Bool
}

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn}
	if c, ok := conn.(syscall.Conn); ok {
		w.raw, _ = c.SyscallConn()
	}
	w.look = func(fd uintptr) { w.hungUp = hungUp(fd) } // made once, not for each request
	return w
}

// Read implements [net.Conn].
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.read.Add(int64(n))
	if err != nil {
		w.closed.Store(true)
	}
	return n, err
}

// Write implements [net.Conn].
func (w *wire) Write(b []byte) (int, error) {
	w.begun.Add(int64(len(b)))
	isEnd := isAlert(b)
	if isEnd && !w.ended.Load() { // one goroutine writes at a time
		w.final.Store(w.read.Load())
		w.ended.Store(true)
	}
	arrives := !w.closed.Load() && !isEnd
	n, err := w.Conn.Write(b)
	if arrives {
		w.written.Add(int64(n))
	}
	return n, err
}

// isAlert reports whether a record of TLS is an alert, such as the one that ends a connection which
// the other side has ended. In TLS 1.3 all records have one type (RFC 8446, section 5.2), but no
// request is as short. Without TLS no request begins with either byte.
func isAlert(record []byte) bool {
	const alert, encrypted, shortest = 21, 23, 40
	return len(record) > 0 && (record[0] == alert || record[0] == encrypted && len(record) < shortest)
}

// isClosed reports whether the other side has closed the connection, while no request uses it. The
// goroutine that reads may not have noticed that yet, and then a request would be lost: it may have
// arrived, so that it could not be sent again. So this asks the system.
func (w *wire) isClosed() bool {
	if w.closed.Load() {
		return true
	}
	return w.raw != nil && (w.raw.Control(w.look) != nil || w.hungUp)
}

// mark is the counts of a connection when a request began.
type mark struct{ begun, written, read int64 }

func (w *wire) mark() mark { return mark{w.begun.Load(), w.written.Load(), w.read.Load()} }

// hasSent reports whether a byte was written since a mark that may have arrived.
func (w *wire) hasSent(since mark) bool { return w.written.Load() > since.written }

// hasRead reports whether a byte has come since a mark. The answer of the other side to the end of
// the connection, which ends when the time for a request is up, does not count. Over HTTP/2 the
// connection does not end then, and frames are as short as alerts.
func (w *wire) hasRead(since mark, http2 bool) bool {
	if !http2 && w.ended.Load() {
		return w.final.Load() > since.read
	}
	return w.read.Load() > since.read
}

// isSending reports whether some of a request's bytes have not arrived yet although its response
// has begun, as far as the system knows.
func (w *wire) isSending(length int64, since mark) (sending bool) {
	if w.begun.Load()-since.begun < length {
		return true
	}
	if w.raw != nil {
		_ = w.raw.Control(func(fd uintptr) { sending = unacknowledged(fd) })
	}
	return sending
}
