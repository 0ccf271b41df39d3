package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// Config says how to serve.
type Config struct {
	// RootKey is the operator's key.
	RootKey string
	// NonceTTL is the life of a Digest nonce.
	NonceTTL time.Duration
	// IdempotencyTTL is how long an idempotency key is remembered unless its request says, [bus.DefaultIdempotencyTTL] if 0.
	IdempotencyTTL time.Duration
	// ForceTLS refuses requests that came neither over TLS nor through a proxy that says they did.
	ForceTLS bool
	// Certificate, if given, makes the server speak TLS itself.
	Certificate *Certificate
	// Deny is the addresses that a callback must not have.
	Deny bus.DenyList
	// MaxSubscriptionTopics is the most topics of a subscription; 0 is no limit.
	MaxSubscriptionTopics int
	// ScalingThreshold is the number of due jobs from which on /pulse/scaling answers slowly; due
	// within ScalingDeadline.
	ScalingThreshold int64
	ScalingDeadline  time.Duration
	// BodyBudget is how many bytes the bodies under way may take together; if 0, 64 MiB.
	BodyBudget int
	// Reporter, if given, reports what must not happen.
	Reporter *telemetry.Reporter
	// Tracer, if given, makes spans of the requests.
	Tracer *telemetry.Tracer
}

// Server serves the HTTP API.
type Server struct {
	config    Config
	store     *store.Store
	ingest    *ingest.Ingest
	metrics   http.Handler
	directory *directory
	buffers   buffers
	// refusedLog tells of refused credentials.
	refusedLog refusalLog
	digester   *digester
	log        *slog.Logger
	now        func() time.Time
}

// New makes a server. Metrics is what /metrics serves.
func New(config Config, st *store.Store, in *ingest.Ingest, metrics http.Handler, log *slog.Logger, now func() time.Time) *Server {
	return &Server{
		config: config, store: st, ingest: in, metrics: metrics,
		directory: newDirectory(st, config.RootKey, now), digester: newDigester(config.RootKey, config.NonceTTL, now),
		buffers:    buffers{budget: cmp.Or(config.BodyBudget, bodyBudget)},
		refusedLog: refusalLog{log: log},
		log:        log, now: now,
	}
}

// Handler returns the API. All routes stand here, each with who calls it.
func (s *Server) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(s.observe, s.recoverPanics, refuseAmbiguous, s.forceTLS, decodePath, middleware.GetHead) // some load balancers ask with HEAD
	r.NotFound(s.notFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) { s.methodNotAllowed(r, w, req) })

	// Load balancers. Neither credentials nor TLS.
	r.Get("/health", s.getHealth)
	r.Get("/health/ping", s.getPing)
	r.Get("/health/ping.json", s.getPing)
	r.Get("/health/ready", s.getReady)

	// Machines that want to know what there is. No credentials.
	r.Get("/openapi.json", getDescription)

	r.Group(func(r chi.Router) {
		r.Use(s.authenticate)

		// Monitoring and autoscalers.
		r.Get("/pulse", s.getPulse)
		r.Get("/pulse/scaling", s.getPulseScaling)
		r.Method(http.MethodGet, "/metrics", s.metrics)
		// Everybody who wants to look around.
		r.Get("/topics", s.getTopics)
		r.Get("/subscriptions", s.getSubscribers)
		r.Get("/subscribers", s.getSubscribers)
		// A topic's publisher, or the operator.
		r.Delete("/topics/{topic}", s.deleteTopic)
		r.Delete("/topic/{topic}", s.deleteTopic)

		r.Group(func(r chi.Router) {
			r.Use(s.allowClients)
			// Publishers.
			r.Post("/topics/{topic}", s.postTopic)
			// Subscribers.
			for _, path := range []string{"/subscription", "/subscriber"} {
				r.Post(path, s.postSubscriber)
				r.Delete(path, s.deleteSubscriber)
				r.Delete(path+"/topics/{topic}", s.deleteSubscription)
			}
		})

		r.Group(func(r chi.Router) {
			r.Use(s.allowRoot)
			// The operator.
			r.Get("/api_tokens", s.getTokens)
			r.Post("/api_tokens", s.postTokens)
			r.Delete("/api_tokens/{token}", s.deleteToken)
			r.Post("/api_tokens/{token}/rotate", s.rotateToken)
		})
	})
	return r
}

// How long a peer may take. The requests are small; who needs longer holds a connection for nothing.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = time.Minute
	// maxHeader bounds what a peer can make us hold before it is known, in bytes.
	maxHeader = 16 << 10
	// stopWithin bounds how long requests under way may take after a stop was asked for.
	stopWithin = 15 * time.Second
)

// Run serves on a listener until the context is done, then accepts no more, answers what it has
// accepted, and returns nil.
func (s *Server) Run(ctx context.Context, on net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       watched,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	serve := server.Serve
	if s.config.Certificate != nil {
		server.TLSConfig = s.config.Certificate.config()
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	telling, stopTelling := context.WithCancel(context.WithoutCancel(ctx))
	var refusals sync.WaitGroup
	refusals.Go(func() { s.refusedLog.run(telling) })
	defer refusals.Wait()
	defer stopTelling()
	failed := make(chan error, 1)
	go func() { failed <- serve(&listener{on, telemetry.NewFileWarner(s.log), s.config.Certificate == nil}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err := server.Shutdown(stopping)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-failed // Serve has returned
	return err
}
