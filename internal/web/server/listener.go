package server

import (
	"net"

	"routemaster/internal/telemetry/logs"
)

// listener accepts connections, and logs when there is no file descriptor for one.
type listener struct {
	net.Listener
	files *logs.FileWarner
	// watch is whether the framing of requests is parsed: not under TLS, where it is encrypted.
	watch bool
}

// Accept implements [net.Listener]. After a temporary error [http.Server] waits and tries again.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.files.Check(err, "accepting a connection")
	if err == nil && l.watch {
		conn = &watchedConn{Conn: conn}
	}
	return conn, err
}
