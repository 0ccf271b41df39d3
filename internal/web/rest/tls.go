package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// tlsListener is a listener whose connections have done their TLS handshake. Only then it is known
// whether one has HTTP/2, which net/http serves on nothing but a [tls.Conn]. Any other is a
// [watchedTLSConn], whose requests can be parsed as without TLS.
type tlsListener struct {
	net.Listener
	config      *tls.Config
	connections *Connections
	log         *slog.Logger
	begin       sync.Once
	// ready has the next results of Accept, one at a time.
	ready chan accepted
	// open is done once the listener is closed, which ends the goroutines counted in running.
	open    context.Context
	close   context.CancelFunc
	running sync.WaitGroup
}

// accepted is a result of [net.Listener.Accept].
type accepted struct {
	conn net.Conn
	err  error
}

// serveTLS has a server serve over TLS until it is shut down.
func serveTLS(server *http.Server, on net.Listener, certificate *Certificate, connections *Connections, log *slog.Logger) error {
	l := &tlsListener{Listener: on, config: certificate.config(), connections: connections, log: log, ready: make(chan accepted)}
	l.open, l.close = context.WithCancel(context.Background())
	server.TLSConfig = certificate.config() // by which it knows that it is to serve HTTP/2
	defer l.running.Wait()
	return server.Serve(l) // which closes the listener
}

// Accept implements [net.Listener].
func (l *tlsListener) Accept() (net.Conn, error) {
	l.begin.Do(func() { l.running.Go(l.acceptAll) })
	select {
	case next := <-l.ready:
		return next.conn, next.err
	case <-l.open.Done():
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. Handshakes that are under way end.
func (l *tlsListener) Close() error {
	l.close()
	return l.Listener.Close()
}

// acceptAll accepts connections until the listener is closed. After an error it goes on when the
// server accepts the next.
func (l *tlsListener) acceptAll() {
	for l.open.Err() == nil {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.hand(accepted{err: err})
			continue
		}
		secure := tls.Server(conn, l.config)
		// It counts from before its handshake: peers that do none are bounded, too.
		l.connections.Changed(secure, http.StateNew)
		l.running.Go(func() { l.secure(secure) })
	}
}

// hand passes a result to Accept. It is false if the listener is closed.
func (l *tlsListener) hand(next accepted) bool {
	select {
	case l.ready <- next:
		return true
	case <-l.open.Done():
		return false
	}
}

// secure does the handshake of a connection, and hands that to the server.
func (l *tlsListener) secure(conn *tls.Conn) {
	err := conn.SetDeadline(time.Now().Add(readHeaderTimeout))
	if err == nil {
		err = conn.HandshakeContext(l.open)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	// The server repeats the error of a peer that does not speak TLS, and answers that in the clear.
	_, isOther := errors.AsType[tls.RecordHeaderError](err)
	if (err == nil || isOther) && l.hand(accepted{conn: watchedTLS(conn, err)}) {
		return
	}
	if err != nil {
		l.log.Debug("TLS handshake failed", "address", conn.RemoteAddr().String(), "error", err)
	}
	_ = conn.NetConn().Close()
	l.connections.Changed(conn, http.StateClosed)
}

// watchedTLSConn is a [watchedConn] above TLS.
type watchedTLSConn struct {
	watchedConn
	secure *tls.Conn
}

// watchedTLS returns a connection as the server is to have it after its handshake.
func watchedTLS(conn *tls.Conn, err error) net.Conn {
	if err != nil || conn.ConnectionState().NegotiatedProtocol == "h2" {
		return conn
	}
	return &watchedTLSConn{watchedConn{Conn: conn}, conn}
}

// ConnectionState has net/http set the [http.Request].TLS.
func (c *watchedTLSConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }
