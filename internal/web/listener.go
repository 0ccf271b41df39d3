package web

import (
	"net"

	"routemaster/internal/telemetry"
)

// listener accepts connections, and says when there is no file descriptor for one.
type listener struct {
	net.Listener
	files *telemetry.FileWarner
	// watch is whether requests are followed as they are read: not under TLS.
	watch bool
}

// Accept returns the next connection. Its error may pass: [http.Server] waits a moment, and tries again.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.files.Check(err, "accepting a connection")
	if err == nil && l.watch {
		conn = &watchedConn{Conn: conn}
	}
	return conn, err
}
