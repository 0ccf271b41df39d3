package tail

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

// Receiver is the endpoint of a subscriber: HTTPS, or HTTP behind a proxy that has the certificate.
type Receiver struct {
	// uuid is the secret that deliveries must have.
	uuid     string
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
}

// newReceiver listens on an address, with TLS unless the configuration is nil.
func newReceiver(address, uuid string, config *tls.Config) (*Receiver, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return &Receiver{uuid: uuid, listener: listener}, nil
}

// NewLocalReceiver listens on loopback, with a self-signed certificate. It must be closed.
func NewLocalReceiver() (*Receiver, error) {
	const address = "127.0.0.1:0"
	certificate, err := selfsigned.Certificate(address)
	if err != nil {
		return nil, err
	}
	return newReceiver(address, rand.Text(), &tls.Config{Certificates: []tls.Certificate{certificate}})
}

// URL is the callback at which the receiver is reached directly.
func (r *Receiver) URL() string { return "https://" + r.listener.Addr().String() + "/" }

// UUID is the secret that the subscription must have.
func (r *Receiver) UUID() string { return r.uuid }

// Start begins to receive. Deliveries for which the function fails are refused.
func (r *Receiver) Start(receive func(ctx context.Context, events []client.Event) error) {
	r.server = &http.Server{
		Handler:           client.NewHandler(r.uuid, receive),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // TLS handshakes of strangers
	}
	r.serving.Go(func() { _ = r.server.Serve(r.listener) }) // it ends with Close
}

// finish waits for the deliveries in flight, until the context is done. No others are accepted.
func (r *Receiver) finish(ctx context.Context) { _ = r.server.Shutdown(ctx) }

// Close stops receiving.
func (r *Receiver) Close() {
	if r.server == nil {
		_ = r.listener.Close()
		return
	}
	_ = r.server.Close()
	r.serving.Wait()
}
