package telemetry

import (
	"context"
	"errors"
	"io"
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

// ServeOptions are options of [Registry.Serve].
type ServeOptions struct {
	// Program is web or worker. The health says so in the header Routemaster-Program.
	Program string
	// Ready returns an error while the program cannot do its work.
	Ready func(context.Context) error
	// Profiles serves the profiles of net/http/pprof too, on a loopback or private address. They
	// show the memory of the process, and take its time.
	Profiles bool
	// ConnState, if given, is used as [http.Server]'s.
	ConnState func(net.Conn, http.ConnState)
}

// Serve serves the metrics and the health of the program without authentication on a listener until
// the context is done, and closes the listener.
func (r *Registry) Serve(ctx context.Context, listener net.Listener, options ServeOptions, log *slog.Logger) error {
	server := &http.Server{
		Handler:           r.pages(options, isPrivate(listener.Addr())),
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

func (r *Registry) pages(options ServeOptions, private bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.Handler())
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { respondHealth(w, options.Program, nil) })
	mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, r *http.Request) {
		respondHealth(w, options.Program, options.Ready(r.Context()))
	})
	if options.Profiles && private {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// respondHealth responds as web does on its own port: without saying where Redis is. It says which
// program is there.
func respondHealth(w http.ResponseWriter, program string, err error) {
	w.Header().Set("Routemaster-Program", program)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	body := `{}`
	if err != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		body = `{"status":503,"title":"Service Unavailable","detail":"the bus cannot reach its storage"}`
	}
	_, _ = io.WriteString(w, body)
}

// isPrivate reports whether an address is loopback or private. The unspecified address is neither.
func isPrivate(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && (tcp.IP.IsLoopback() || tcp.IP.IsPrivate())
}
