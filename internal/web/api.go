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

	"routemaster/internal/bus"
	"routemaster/internal/deadletter"
	"routemaster/internal/ingest"
	"routemaster/internal/inspect"
	"routemaster/internal/queue"
	"routemaster/internal/seal"
	"routemaster/internal/store"
	"routemaster/internal/store/stats"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/tracing"
	"routemaster/internal/web/auth"
	"routemaster/internal/web/rest"
	"routemaster/internal/web/server"
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
	// Deny lists the addresses that a callback must not have.
	Deny bus.DenyList
	// MaxSubscriptionTopics is the maximum number of topics of a subscription; 0 is no limit.
	MaxSubscriptionTopics int
	// Secrets has the keys that signing secrets are sealed with.
	Secrets seal.Keyring
	// ScalingThreshold is the number of jobs due within ScalingDeadline from which on
	// /pulse/scaling responds slowly.
	ScalingThreshold int64
	ScalingDeadline  time.Duration
	// MaxEventData is the maximum size of an event's data in bytes, as MessagePack.
	MaxEventData int
	// BodyBudget is how many bytes all request bodies may take together; if 0,
	// [server.DefaultBodyBudget].
	BodyBudget int
	// Recorder, if given, counts what clients redeliver and remove.
	Recorder *telemetry.Recorder
	// Reporter, if given, reports panics and unexpected errors.
	Reporter *exceptions.Reporter
	// Tracer, if given, traces the requests.
	Tracer *tracing.Tracer
}

// API serves the HTTP API.
type API struct {
	*rest.Service
	config    Config
	store     *store.Store
	stats     *stats.Stats
	queue     *queue.Queue
	ingest    *ingest.Ingest
	inspector *inspect.Inspector
	letters   *deadletter.Letters
	metrics   http.Handler
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
		Service: service, config: config, store: st, stats: stats.Of(st), queue: q, ingest: in,
		inspector: inspect.New(st), letters: deadletter.New(st), metrics: metrics,
	}
}

// Handler returns the API: all routes, with who calls them.
func (a *API) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(a.Observe, a.RecoverPanics, rest.RefuseAmbiguous)
	if a.config.ForceTLS {
		r.Use(rest.ForceTLS)
	}
	r.Use(rest.DecodePath)
	r.Use(middleware.GetHead) // some load balancers send HEAD
	r.NotFound(rest.NotFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) { rest.MethodNotAllowed(r, w, req) })

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
		// A topic's publisher, or the operator.
		r.Delete("/topics/{topic}", a.deleteTopic)
		r.Delete("/topic/{topic}", a.deleteTopic)

		r.Group(func(r chi.Router) {
			r.Use(rest.AllowClients)
			// Publishers.
			r.Post("/topics/{topic}", a.postTopic)
			// Subscribers.
			a.subscriptionRoutes(r, "/subscription")
			a.subscriptionRoutes(r, "/subscriber")
			a.subscriberRoutes(r, "/subscriber")
		})

		r.Group(func(r chi.Router) {
			r.Use(rest.AllowRoot)
			// The operator.
			a.subscriptionRoutes(r, "/subscribers/{token}")
			a.subscriberRoutes(r, "/subscribers/{token}")
			r.Get("/api_tokens", a.getTokens)
			r.Post("/api_tokens", a.postTokens)
			r.Delete("/api_tokens/{token}", a.deleteToken)
			r.Post("/api_tokens/{token}/rotate", a.rotateToken)
		})
	})
	return r
}

// subscriptionRoutes are those that existing clients know, at a path that stands for a client: the
// caller, or the one whose token is in the path, which only root may send.
func (a *API) subscriptionRoutes(r chi.Router, path string) {
	r.Post(path, a.postSubscription)
	r.Delete(path, a.deleteSubscription)
	r.Delete(path+"/topics/{topic}", a.deleteSubscriptionTopic)
}

// subscriberRoutes are those at a path that stands for a subscriber, likewise.
func (a *API) subscriberRoutes(r chi.Router, path string) {
	route := func(method, below string, handle subscriberHandler, query ...string) {
		r.With(rest.AllowQuery(query...)).Method(method, path+below, a.ofSubscriber(handle))
	}
	// What it has set, and how it is.
	route(http.MethodGet, "", a.getSubscriber)
	route(http.MethodPatch, "", a.patchSubscriber)
	route(http.MethodPost, "/pause", a.pauseSubscriber)
	route(http.MethodPost, "/resume", a.resumeSubscriber)
	route(http.MethodPost, "/test", a.testSubscriber)
	// What is queued, and how its deliveries go.
	route(http.MethodGet, "/attempts", a.getAttempts, "batch", "outcome", "limit", "after")
	route(http.MethodGet, "/batches", a.getBatches, "limit", "after")
	route(http.MethodGet, "/batches/{id}", a.getBatch, "from")
	route(http.MethodDelete, "/batches/{id}", a.deleteBatch)
	// What the bus has given up on.
	route(http.MethodGet, "/dead_letters", a.getDeadLetters, "reason", "since", "before", "limit", "after")
	route(http.MethodGet, "/dead_letters/{id}", a.getDeadLetter, "from")
	route(http.MethodDelete, "/dead_letters/{id}", a.deleteDeadLetter)
	route(http.MethodPost, "/dead_letters/{id}/redeliver", a.redeliverDeadLetter)
	route(http.MethodPost, "/dead_letters/redeliver", a.redeliverDeadLetters)
	route(http.MethodPost, "/dead_letters/discard", a.discardDeadLetters)
	// What deliveries are signed with.
	route(http.MethodGet, "/secrets", a.getSecrets)
	route(http.MethodPost, "/secrets", a.postSecret)
	route(http.MethodDelete, "/secrets/{id}", a.deleteSecret)
}

// Run serves the API on a listener until the context is done. It then accepts no more connections,
// waits for the requests it has read, and returns nil.
func (a *API) Run(ctx context.Context, on net.Listener) error {
	// The authenticator runs until the last request is done.
	authCtx, stopAuth := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { a.Auth.Run(authCtx) })
	defer running.Wait()
	defer stopAuth()
	return server.Run(ctx, on, a.Handler(), a.config.Certificate, a.Log)
}
