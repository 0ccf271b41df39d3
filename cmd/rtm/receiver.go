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

// receiver is a subscriber's endpoint: HTTPS, or HTTP behind a proxy that has the certificate.
type receiver struct {
	// uuid is what deliveries must bring.
	uuid     string
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
}

func newSecret() string { return rand.Text() }

// newReceiver listens on an address, with TLS unless the configuration is nil.
func newReceiver(address, uuid string, config *tls.Config) (*receiver, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return &receiver{uuid: uuid, listener: listener}, nil
}

// newLocalReceiver listens on loopback, with a certificate that it signed itself.
func newLocalReceiver() (*receiver, error) {
	const address = "127.0.0.1:0"
	certificate, err := selfsigned.Certificate(address)
	if err != nil {
		return nil, err
	}
	return newReceiver(address, newSecret(), &tls.Config{Certificates: []tls.Certificate{certificate}})
}

// url is the callback where the receiver is reached directly.
func (r *receiver) url() string { return "https://" + r.listener.Addr().String() + "/" }

// start begins to receive. Deliveries for which receive fails are refused.
func (r *receiver) start(receive func(ctx context.Context, events []client.Event) error) {
	r.server = &http.Server{
		Handler:           client.NewHandler(r.uuid, receive),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // strangers' handshakes
	}
	r.serving.Go(func() { _ = r.server.Serve(r.listener) }) // it ends when it is closed
}

// finish waits for the deliveries under way, until the context is done. No others come in.
func (r *receiver) finish(ctx context.Context) { _ = r.server.Shutdown(ctx) }

func (r *receiver) close() {
	if r.server == nil {
		_ = r.listener.Close()
		return
	}
	_ = r.server.Close()
	r.serving.Wait()
}
