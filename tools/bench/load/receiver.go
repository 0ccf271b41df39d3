package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/selfsigned"
)

// ServeReceiver serves a subscriber's endpoint on an address until the context is done: HTTPS with
// HTTP/1.1 and HTTP/2. It acknowledges every delivery and follows every event, but refuses
// deliveries with an event of [RefusedURL]. [Control] sends its requests to the control address.
func ServeReceiver(ctx context.Context, address, control string) error {
	certificate, err := selfsigned.Certificate(address)
	if err != nil {
		return err
	}
	f := &follower{}
	f.begin("")
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	return serve(ctx, &http.Server{Addr: address, Handler: receive(f), TLSConfig: config},
		&http.Server{Addr: control, Handler: controls(f)})
}

// ServeNoop serves on an address, until the context is done, a handler that reads a request and
// responds like a bus.
func ServeNoop(ctx context.Context, address string) error {
	return serve(ctx, &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
	})})
}

// serve runs servers until the context is done or one fails.
func serve(ctx context.Context, servers ...*http.Server) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range servers {
		server.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail, connections that end
		group.Go(func() (err error) {
			if server.TLSConfig != nil {
				err = server.ListenAndServeTLS("", "")
			} else {
				err = server.ListenAndServe()
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return err
		})
		group.Go(func() error {
			<-ctx.Done()
			return server.Close()
		})
	}
	return group.Wait()
}

// maxDelivery bounds the body of a delivery, in bytes.
const maxDelivery = 64 << 20

// receive acknowledges deliveries, or refuses them.
func receive(f *follower) http.Handler {
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 || r.ContentLength > maxDelivery {
			http.Error(w, "the delivery's Content-Length is missing or too large", http.StatusLengthRequired)
			return
		}
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		if int64(cap(*buffer)) < r.ContentLength {
			*buffer = make([]byte, r.ContentLength)
		}
		body := (*buffer)[:r.ContentLength]
		if _, err := io.ReadFull(r.Body, body); err != nil {
			http.Error(w, "the body is incomplete", http.StatusBadRequest)
			return
		}
		switch {
		case !bytes.Contains(body, []byte(refusedURL)):
			f.deliver(r.URL.Path, body)
		case f.refuse(r.URL.Path):
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// controls serves the requests of [Control]. Every response is the tally.
func controls(f *follower) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			do(r)
			_ = json.NewEncoder(w).Encode(f.read())
		})
	}
	handle("POST /begin", func(r *http.Request) { f.begin(r.FormValue("prefix")) })
	handle("POST /clear", func(*http.Request) { f.clearLatency() })
	handle("POST /relent", func(*http.Request) { f.relent() })
	handle("GET /tally", func(*http.Request) {})
	return mux
}
