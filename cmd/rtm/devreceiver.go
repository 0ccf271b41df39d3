package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"routemaster/client"
	"routemaster/internal/selfsigned"
)

// devReceiver is the endpoint of rtm dev's subscriber: HTTPS on loopback, with a certificate that
// it signs itself.
type devReceiver struct {
	listener net.Listener
	// uuid is the secret that deliveries must have.
	uuid    string
	server  http.Server
	serving sync.WaitGroup
}

// newDevReceiver listens, and serves until it is closed. Deliveries for which the function fails
// are refused.
func newDevReceiver(receive func(ctx context.Context, events []client.Event) error) (*devReceiver, error) {
	const address = "127.0.0.1:0"
	certificate, err := selfsigned.Certificate(address)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	r := &devReceiver{listener: listener, uuid: rand.Text()}
	r.server = http.Server{
		Handler:           client.NewHandler(r.uuid, receive),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // TLS handshakes of strangers
	}
	r.serving.Go(func() { _ = r.server.Serve(listener) }) // it ends with close
	return r, nil
}

func (r *devReceiver) url() string { return "https://" + r.listener.Addr().String() + "/" }

func (r *devReceiver) close() {
	_ = r.server.Close()
	r.serving.Wait()
}
