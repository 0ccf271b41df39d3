package rest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// How long a peer may take. Requests are small: a peer that needs longer only holds a connection.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = time.Minute
	// maxHeaderBytes bounds the header that the server holds for a peer before it is authenticated.
	maxHeaderBytes = 16 << 10
	// stopTimeout bounds how long requests may take after the server was stopped.
	stopTimeout = 15 * time.Second
)

// http2 bounds the memory of a connection of HTTP/2 without credentials. The library's defaults are
// 250 streams, and a frame and unread data of 1 MiB each.
var http2 = http.HTTP2Config{
	MaxConcurrentStreams:          100,
	MaxReadFrameSize:              16 << 10,
	MaxReceiveBufferPerConnection: 256 << 10,
	MaxReceiveBufferPerStream:     256 << 10,
}

// Run serves a handler on a listener, over TLS if a certificate is given, until the context is
// done. It then accepts no more connections, waits for the requests it has read, at most for 15 s,
// and returns nil. The listener is closed. Connections, unless they are nil, bound its own.
func Run(
	ctx context.Context, on net.Listener, handler http.Handler, certificate *Certificate, connections *Connections,
	log *slog.Logger,
) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http2,
		ConnContext:       watched,
		ConnState:         connections.Changed,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	serve := server.Serve
	if certificate != nil {
		serve = func(l net.Listener) error { return serveTLS(server, l, certificate, connections, log) }
	}
	failed := make(chan error, 1)
	go func() { failed <- serve(&listener{on, log, certificate == nil}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := server.Shutdown(stopping)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-failed // Serve has returned
	return err
}

// AllowLonger lets the response to a request take so much longer than others.
func AllowLonger(w http.ResponseWriter, by time.Duration) {
	// An error means that it may not: the connection is closed then.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(by + writeTimeout))
}
