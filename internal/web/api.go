package web

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"routemaster/internal/activity"
	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/inspect"
	"routemaster/internal/jobs"
	"routemaster/internal/overview"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
	"routemaster/internal/web/rest"
)

// Config configures an [API].
type Config struct {
	// RootKey is the operator's key.
	RootKey string
	// Guesses, if given, slow down wrong credentials, here and in the console.
	Guesses *rest.Guesses
	// NonceTTL is how long a Digest nonce is valid.
	NonceTTL time.Duration
	// IdempotencyTTL is how long an idempotency key is remembered, unless the request says how
	// long; [bus.DefaultIdempotencyTTL] if 0.
	IdempotencyTTL time.Duration
	// ForceTLS redirects requests to https that came neither over TLS nor through a proxy that says
	// they did.
	ForceTLS bool
	// Certificate, if given, makes the server speak TLS itself.
	Certificate *rest.Certificate
	// Subscriber configures the routes that are about one client's subscription.
	Subscriber SubscriberConfig
	// Jobs configures the routes that are about jobs and their types.
	Jobs JobsConfig
	// Machines configures the routes that are about state machines.
	Machines MachinesConfig
	// Version is the program's version.
	Version string
	// Queues configures the routes that are about queues.
	Queues QueuesConfig
	// MaxEventData is the maximum size of an event's data in bytes, as MessagePack.
	MaxEventData int
	// BodyBudget is how many bytes all request bodies may take together; if 0,
	// [rest.DefaultBodyBudget].
	BodyBudget int
	// Connections, if given, bounds the connections to the API and to the console.
	Connections *rest.Connections
	// Live knows how the bus is.
	Live Live
	// Reporter, if given, reports panics and unexpected errors.
	Reporter *vendors.Reporter
	// Tracer, if given, traces the requests.
	Tracer *telemetry.Tracer
	// Recorder, if given, counts them.
	Recorder *telemetry.Recorder
	// Refusals, if given, counts refused requests.
	Refusals *rest.Refusals
	// Console, if given, makes the console, which is served at /console/. It calls the API in this
	// process by a handler, and reads forms into the buffers of the API.
	Console func(api http.Handler, bodies *rest.Buffers) http.Handler
	// ConsoleListener, if given, is where the console is served, and nothing else. [API.Run] closes
	// it.
	ConsoleListener net.Listener
	// Logins, if there is a console, make the codes that log in to it.
	Logins Logins
}

// Live knows how the bus is, and has been.
type Live interface {
	Figures(ctx context.Context) overview.Figures
	Tracks(ctx context.Context) overview.Tracks
}

// API serves the HTTP API.
type API struct {
	*rest.Service
	config     Config
	stores     *store.Bus
	inspector  *inspect.Bus
	ingest     *ingest.Ingest
	tails      *store.TailHub
	queues     *queueHandlers
	subscriber *subscriberHandlers
	jobs       *jobHandlers
	machines   *machineHandlers
	metrics    http.Handler
}

// New makes an API. Metrics serves /metrics.
func New(
	config Config, all *store.Bus, in *ingest.Ingest, metrics http.Handler, log *slog.Logger, now func() time.Time,
) *API {
	first := all.First()
	noteUses := func(ctx context.Context, used map[bus.Token]time.Time) error {
		return store.NoteTokensUsed(ctx, first, used)
	}
	service := &rest.Service{
		Auth:     rest.New(rest.Config{RootKey: config.RootKey, NonceTTL: config.NonceTTL, NoteUses: noteUses, Guesses: config.Guesses}, all, log, now),
		Buffers:  rest.NewBuffers(cmp.Or(config.BodyBudget, rest.DefaultBodyBudget)),
		Reporter: config.Reporter, Tracer: config.Tracer, Recorder: config.Recorder, Refusals: config.Refusals, Log: log, Now: now,
		Activity: activity.New(first.Partition(), log),
	}
	return &API{
		Service: service, config: config, stores: all, inspector: inspect.OfBus(all), ingest: in, tails: store.NewTailHub(all, log), metrics: metrics,
		queues:     newQueueHandlers(config.Queues, service, all),
		subscriber: newSubscriberHandlers(config.Subscriber, service, all),
		jobs:       newJobHandlers(config.Jobs, service, jobs.NewBus(all.Partitions())),
		machines:   newMachineHandlers(config.Machines, service, all),
	}
}

// historyOf are the histories that have a topic's.
func (a *API) historyOf(topic bus.TopicName) *store.History {
	return store.NewHistory(a.stores.Home(topic))
}

// Handler returns the API and, if there is one, the console.
func (a *API) Handler() http.Handler {
	r := a.newRouter(a.outer()...)
	r.Group(func(r chi.Router) {
		r.Use(rest.RefuseCrossOrigin)
		a.addRoutes(r, a.operations())
	})
	if a.servesConsole() {
		a.mountConsole(r)
	}
	return rest.NewShortcut(r, http.MethodPost, topicsPath, "{topic}")
}

// servesConsole is whether the console is beside the API.
func (a *API) servesConsole() bool { return a.config.Console != nil && a.config.ConsoleListener == nil }

// consoleHandler returns the console alone.
func (a *API) consoleHandler() http.Handler {
	r := a.newRouter(a.outer()...)
	r.Get("/", redirectToConsole)
	r.Get("/openapi.json", getOpenAPI) // a page leads to it
	a.mountConsole(r)
	return r
}

func (a *API) mountConsole(r chi.Router) {
	r.Get("/console", redirectToConsole)
	plain := a.config.Console(a.inProcess(), a.Buffers)
	packed := rest.Compress(plain)
	r.Mount("/console/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // it may echo text beside a secret: BREACH
			plain.ServeHTTP(w, r)
			return
		}
		packed.ServeHTTP(w, withHolders(r))
	}))
}

// outer returns the outermost middleware, for every request over the network.
func (a *API) outer() (all []func(http.Handler) http.Handler) {
	all = append(all, rest.CleanPath("/console/"), a.Observe, a.RecoverPanics, rest.RefuseAmbiguous)
	if a.config.ForceTLS {
		all = append(all, rest.ForceTLS)
	}
	return all
}

// inProcess returns the API for callers in this process: nothing of it is logged or traced but the
// changes.
func (a *API) inProcess() http.Handler {
	routes := a.newRouter(rest.Identify, a.RecoverPanics)
	a.addRoutes(routes, a.operations())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The router would go on with the route of the request that is served.
		routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, nil)))
	})
}

// newRouter makes a router without routes. It is chi's: [http.ServeMux] redirects a path with empty
// or .. segments, and writes its own bodies for 404 and 405.
func (a *API) newRouter(outer ...func(http.Handler) http.Handler) chi.Router {
	r := chi.NewRouter()
	r.Use(outer...)
	r.Use(RefuseSlashes, rest.DecodePath)
	r.Use(middleware.GetHead) // some load balancers send HEAD
	r.NotFound(rest.NotFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) { rest.MethodNotAllowed(r, w, req) })
	return r
}

// operations is the table of the API: all that it can be asked for.
func (a *API) operations() []operation {
	return slices.Concat(
		a.healthOperations(), a.statusOperations(),
		a.overviewOperations(), a.queues.operations(), a.activityOperations(),
		a.tokenOperations(), a.loginOperations(),
		a.topicOperations(), a.publishOperations(), a.historyOperations(),
		a.subscriberOperations(), a.subscriber.operations(),
		a.jobs.typeOperations(), a.jobs.operations(), a.machines.operations(),
	)
}

// Run serves the API on a listener until the context is done. It then accepts no more connections,
// waits for the requests it has read, and returns nil.
func (a *API) Run(ctx context.Context, on net.Listener) error {
	// The authenticator and the activity run until the last request is done.
	authCtx, stopAuth := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { a.Auth.Run(authCtx) })
	running.Go(func() { a.Activity.Run(authCtx) })
	jobsCtx, stopJobs := context.WithCancel(ctx)
	running.Go(func() { a.jobs.Run(jobsCtx) })
	defer running.Wait()
	defer stopAuth()
	defer stopJobs()
	defer context.AfterFunc(ctx, a.tails.Close)()
	if console := a.config.ConsoleListener; console != nil && a.config.Console != nil {
		running.Go(func() {
			if err := rest.Run(ctx, console, a.consoleHandler(), a.config.Certificate, a.config.Connections, a.Log); err != nil {
				a.Log.Error("the console's listener failed", "error", err)
			}
		})
	}
	return rest.Run(ctx, on, a.Handler(), a.config.Certificate, a.config.Connections, a.Log)
}
