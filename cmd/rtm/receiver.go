package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver is a subscriber's HTTPS endpoint on loopback, with a certificate that it signed itself.
type receiver struct {
	url, uuid string
	// batches has the body of every delivery, in order.
	batches  chan []byte
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
}

// maxDelivery bounds a delivery's body, in bytes.
const maxDelivery = 64 << 20

func newSecret() string { return rand.Text() }

func newReceiver() (*receiver, error) {
	certificate, err := selfSigned(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	return &receiver{
		url:      "https://" + listener.Addr().String() + "/",
		uuid:     newSecret(),
		batches:  make(chan []byte),
		listener: listener,
	}, nil
}

// start begins to receive. Once the context is done, deliveries are refused.
func (r *receiver) start(ctx context.Context) {
	r.server = &http.Server{
		Handler:           http.HandlerFunc(r.receive),
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // strangers' handshakes
	}
	r.serving.Go(func() { _ = r.server.Serve(r.listener) }) // it ends when it is closed
}

func (r *receiver) close() {
	_ = r.server.Close()
	r.serving.Wait()
}

// receive acknowledges a delivery once it has been passed on.
func (r *receiver) receive(w http.ResponseWriter, req *http.Request) {
	uuid, _, _ := req.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(uuid), []byte(r.uuid)) != 1 {
		http.Error(w, "wrong uuid", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxDelivery))
	if err != nil {
		http.Error(w, "body not read", http.StatusBadRequest)
		return
	}
	select {
	case r.batches <- body:
		w.WriteHeader(http.StatusNoContent)
	case <-req.Context().Done():
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	}
}

func selfSigned(ip net.IP) (tls.Certificate, error) {
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
