package rest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"routemaster/internal/telemetry"
)

// listener accepts connections, and logs when there is no file descriptor for one.
type listener struct {
	net.Listener
	log *slog.Logger
	// watch is whether the framing of requests is parsed: under TLS [watchedTLSConn] does that.
	watch bool
}

// Accept implements [net.Listener]. After a temporary error [http.Server] waits and tries again.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	telemetry.OutOfFiles(l.log, err, "accepting a connection")
	if err == nil && l.watch {
		conn = &watchedConn{Conn: conn}
	}
	return conn, err
}

// deadliner is a listener whose Accept can be ended without closing it, as of TCP.
type deadliner interface {
	net.Listener
	SetDeadline(time.Time) error
}

// loan is a listener whose Close only ends Accept.
type loan struct{ deadliner }

// Close implements [net.Listener].
func (l loan) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

// RunOnLoan is [Run], but leaves the listener open, so that something else can serve on it next. It
// bounds no connections. The listener must be one of TCP, or of a Unix socket.
func RunOnLoan(ctx context.Context, on net.Listener, handler http.Handler, certificate *Certificate, log *slog.Logger) error {
	lender, ok := on.(deadliner)
	if !ok {
		return errors.New("the listener cannot be lent")
	}
	return errors.Join(Run(ctx, loan{lender}, handler, certificate, nil, log), lender.SetDeadline(time.Time{}))
}
