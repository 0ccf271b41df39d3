package web

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"routemaster/internal/history"
	"routemaster/internal/ingest"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/store/stats"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/tracing"
	"routemaster/internal/web/auth"
	"routemaster/internal/web/jobs"
	"routemaster/internal/web/machines"
	"routemaster/internal/web/rest"
	"routemaster/internal/web/server"
	"routemaster/internal/web/subscriber"
)

// Config configures an [API].
type Config struct {
	// RootKey is the operator's key.
	RootKey string
	// NonceTTL is how long a Digest nonce is valid.
	NonceTTL time.Duration
	// IdempotencyTTL is how long an idempotency key is remembered, unless the request says how
	// long; [bus.DefaultIdempotencyTTL] if 0.
	IdempotencyTTL time.Duration
	// ForceTLS redirects requests to https that came neither over TLS nor through a proxy that says
	// they did.
	ForceTLS bool
	// Certificate, if given, makes the server speak TLS itself.
	Certificate *server.Certificate
	// Subscriber configures the routes that are about one client's subscription.
	Subscriber subscriber.Config
	// Jobs configures the routes that are about jobs and their types.
	Jobs jobs.Config
	// Machines configures the routes that are about state machines.
	Machines machines.Config
	// Version is that of the program.
	Version string
	// ScalingThreshold is the number of jobs due within ScalingDeadline from which on
	// /pulse/scaling responds slowly.
	ScalingThreshold int64
	ScalingDeadline  time.Duration
	// MaxEventData is the maximum size of an event's data in bytes, as MessagePack.
	MaxEventData int
	// BodyBudget is how many bytes all request bodies may take together; if 0,
	// [server.DefaultBodyBudget].
	BodyBudget int
	// Reporter, if given, reports panics and unexpected errors.
	Reporter *exceptions.Reporter
	// Tracer, if given, traces the requests.
	Tracer *tracing.Tracer
}

// API serves the HTTP API.
type API struct {
	*rest.Service
	config     Config
	store      *store.Store
	stats      *stats.Stats
	queue      *queue.Queue
	ingest     *ingest.Ingest
	history    *history.History
	subscriber *subscriber.Handlers
	jobs       *jobs.Handlers
	machines   *machines.Handlers
	metrics    http.Handler
}

// New makes an API. Metrics serves /metrics.
func New(
	config Config, st *store.Store, q *queue.Queue, in *ingest.Ingest, metrics http.Handler, log *slog.Logger, now func() time.Time,
) *API {
	service := &rest.Service{
		Auth:     auth.New(auth.Config{RootKey: config.RootKey, NonceTTL: config.NonceTTL}, st, log, now),
		Buffers:  server.NewBuffers(cmp.Or(config.BodyBudget, server.DefaultBodyBudget)),
		Reporter: config.Reporter, Tracer: config.Tracer, Log: log, Now: now,
	}
	return &API{
		Service: service, config: config, store: st, stats: stats.Of(st), queue: q, ingest: in, history: history.New(st),
		subscriber: subscriber.New(config.Subscriber, service, st), jobs: jobs.New(config.Jobs, service, jobstore.New(st.Partition())),
		machines: machines.New(config.Machines, service, st), metrics: metrics,
	}
}

// Handler returns the API: all routes, with who calls them. [subscriber.Handlers.Routes] has those
// of one client, [jobs.Handlers.Routes] those of jobs, [machines.Handlers.Routes] those of state
// machines.
func (a *API) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(a.Observe, a.RecoverPanics, rest.RefuseAmbiguous)
	if a.config.ForceTLS {
		r.Use(rest.ForceTLS)
	}
	r.Use(machines.RefuseSlashes, rest.DecodePath)
	r.Use(middleware.GetHead) // some load balancers send HEAD
	r.NotFound(rest.NotFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) { rest.MethodNotAllowed(r, w, req) })

	// Clients of the service that state machines are from: without credentials.
	r.Get("/", a.getStatus)
	// Load balancers: without credentials, and without TLS.
	r.Get("/health", a.getHealth)
	r.Get("/health/ping", a.getPing)
	r.Get("/health/ping.json", a.getPing)
	r.Get("/health/ready", a.getReady)

	// Developers, and generators of clients: without credentials.
	r.Get("/openapi.json", getOpenAPI)

	r.Group(func(r chi.Router) {
		r.Use(a.Authenticate)

		// Monitoring and autoscalers.
		r.Get("/pulse", a.getPulse)
		r.Get("/pulse/scaling", a.getPulseScaling)
		r.Method(http.MethodGet, "/metrics", a.metrics)
		// Every client, and the operator.
		r.Get("/topics", a.getTopics)
		r.Get("/subscriptions", a.getSubscribers)
		r.Get("/subscribers", a.getSubscribers)
		history := func(method, path string, handle http.HandlerFunc, query ...string) {
			r.With(rest.AllowQuery(query...)).Method(method, "/topics/{topic}"+path, handle)
		}
		history(http.MethodGet, "/history", a.getHistory)
		history(http.MethodGet, "/events", a.getEvents, "from", "since", "limit")
		// A topic's publisher, or the operator.
		history(http.MethodPut, "/history", a.putHistory)
		history(http.MethodDelete, "/history", a.deleteHistory)
		r.Delete("/topics/{topic}", a.deleteTopic)
		r.Delete("/topic/{topic}", a.deleteTopic)
		a.jobs.Routes(r)
		a.machines.Routes(r)

		r.Group(func(r chi.Router) {
			r.Use(rest.AllowClients)
			// Publishers.
			r.Post("/topics/{topic}", a.postTopic)
			// Subscribers.
			a.subscriber.SubscriptionRoutes(r, "/subscription")
			a.subscriber.Routes(r, "/subscriber")
		})

		r.Group(func(r chi.Router) {
			r.Use(rest.AllowRoot)
			// The operator.
			a.subscriber.Routes(r, "/subscribers/{token}")
			r.Get("/api_tokens", a.getTokens)
			r.Post("/api_tokens", a.postTokens)
			r.Delete("/api_tokens/{token}", a.deleteToken)
			r.Post("/api_tokens/{token}/rotate", a.rotateToken)
		})
	})
	return r
}

// Run serves the API on a listener until the context is done. It then accepts no more connections,
// waits for the requests it has read, and returns nil.
func (a *API) Run(ctx context.Context, on net.Listener) error {
	// The authenticator runs until the last request is done.
	authCtx, stopAuth := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { a.Auth.Run(authCtx) })
	jobsCtx, stopJobs := context.WithCancel(ctx)
	running.Go(func() { a.jobs.Run(jobsCtx) })
	defer running.Wait()
	defer stopAuth()
	defer stopJobs()
	return server.Run(ctx, on, a.Handler(), a.config.Certificate, a.Log)
}
