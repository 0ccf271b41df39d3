package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Timeouts of the metrics listener's peers. A profile takes 30 s unless the request says otherwise.
const (
	listenerReadTimeout  = 5 * time.Second
	listenerWriteTimeout = 2 * time.Minute
)

// ServeOptions are what [Registry.Serve] does besides.
type ServeOptions struct {
	// Profiles serves those of net/http/pprof too, on a loopback or private address. They show the
	// memory of the process, and take its time.
	Profiles bool
	// ConnState, if given, is that of [http.Server].
	ConnState func(net.Conn, http.ConnState)
}

// Serve serves the metrics without authentication on a listener until the context is done, and
// closes the listener.
func (r *Registry) Serve(ctx context.Context, listener net.Listener, options ServeOptions, log *slog.Logger) error {
	server := &http.Server{
		Handler:           r.pages(options.Profiles && isPrivate(listener.Addr())),
		ConnState:         options.ConnState,
		ReadHeaderTimeout: listenerReadTimeout,
		ReadTimeout:       listenerReadTimeout,
		WriteTimeout:      listenerWriteTimeout,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (r *Registry) pages(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.Handler())
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// isPrivate reports whether an address is loopback or private. The unspecified address is neither.
func isPrivate(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && (tcp.IP.IsLoopback() || tcp.IP.IsPrivate())
}
