package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// addresses is what a helper process says when it is ready: the URLs where it listens.
type addresses struct {
	// Service is for the bus or the publishers, Control for the benchmark; the no-op server has no Control.
	Service, Control string
}

// Help is a process of the benchmark's own: [Receiver], or [Noop], and the address where it listens if not anywhere
// on loopback. It prints where it listens, and serves until the context is done.
func Help(ctx context.Context, args []string, out io.Writer) error {
	listen := "127.0.0.1:0"
	if len(args) > 1 {
		listen = args[1]
	}
	switch args[0] {
	case Receiver:
		return serveReceiver(ctx, listen, out)
	case Noop:
		return serveNoop(ctx, listen, out)
	}
	return fmt.Errorf("there is no helper %q", args[0])
}

// serveReceiver is an HTTPS endpoint, over HTTP/1.1 and HTTP/2, that acknowledges every
// delivery and follows every event.
func serveReceiver(ctx context.Context, listen string, out io.Writer) error {
	certificate, err := SelfSigned(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	service, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, service.Close())
	}
	f := &follower{}
	f.begin("")
	secure := &http.Server{
		Handler:   receive(f),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	plain := &http.Server{Handler: controls(f)}
	if err := announce(out, addresses{"https://" + service.Addr().String(), "http://" + control.Addr().String()}); err != nil {
		return errors.Join(err, service.Close(), control.Close())
	}
	return serve(ctx, map[*http.Server]func() error{
		secure: func() error { return secure.ServeTLS(service, "", "") },
		plain:  func() error { return plain.Serve(control) },
	})
}

// serveNoop is a server that reads a request and answers like a bus.
func serveNoop(ctx context.Context, listen string, out io.Writer) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
	})}
	if err := announce(out, addresses{Service: "http://" + listener.Addr().String()}); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serve(ctx, map[*http.Server]func() error{server: func() error { return server.Serve(listener) }})
}

func announce(out io.Writer, a addresses) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// serve runs servers until the context is done.
func serve(ctx context.Context, servers map[*http.Server]func() error) error {
	var serving sync.WaitGroup
	for server, listen := range servers {
		server.ErrorLog = log.New(io.Discard, "", 0) // connections that end
		serving.Go(func() { _ = listen() })
	}
	<-ctx.Done()
	for server := range servers {
		_ = server.Close()
	}
	serving.Wait()
	return nil
}

// maxDelivery bounds a delivery's body, in bytes.
const maxDelivery = 64 << 20

// receive acknowledges deliveries.
func receive(f *follower) http.Handler {
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 || r.ContentLength > maxDelivery {
			http.Error(w, "a delivery has a length", http.StatusLengthRequired)
			return
		}
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		if int64(cap(*buffer)) < r.ContentLength {
			*buffer = make([]byte, r.ContentLength)
		}
		body := (*buffer)[:r.ContentLength]
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, "the body did not arrive", http.StatusBadRequest)
			return
		}
		f.deliver(r.URL.Path, body, r.ProtoMajor == 2)
		w.WriteHeader(http.StatusNoContent)
	})
}

// controls is how the benchmark asks its receiver.
func controls(f *follower) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /begin", func(_ http.ResponseWriter, r *http.Request) { f.begin(r.FormValue("prefix")) })
	mux.HandleFunc("POST /clear", func(http.ResponseWriter, *http.Request) { f.clearLatency() })
	mux.HandleFunc("GET /tally", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(f.read()) })
	return mux
}

// SelfSigned makes a certificate for an address of this machine.
func SelfSigned(ip net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		IPAddresses:  []net.IP{ip},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
