package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// healthOperations need neither Redis nor credentials: they are for load balancers, without TLS.
func (a *API) healthOperations() []operation {
	ping := operation{
		method: http.MethodGet, path: "/health/ping", handle: a.getPing, who: public,
		id: "ping", tag: "health",
		summary: "Say what time it is, without asking Redis",
		returns: returns(http.StatusOK, "It answers.", pongView{}),
	}
	return []operation{
		{
			method: http.MethodGet, path: "/health", handle: a.getHealth, who: public,
			id: "health", tag: "health",
			summary: "Say that the process runs, without asking Redis",
			returns: returns(http.StatusOK, "It is.", struct{}{}),
		},
		ping, ping.at("/health/ping.json", "pingJSON"),
	}
}

// statusOperations are for load balancers, clients of the service that state machines are from,
// and browsers; and, with credentials, for monitoring and autoscalers.
func (a *API) statusOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/", handle: a.getStatus, who: public,
			id: "status", tag: "health",
			summary: "Say whether Redis answers, to clients of state machines",
			returns: []response{
				{status: http.StatusOK, words: "It does.", of: statusView{}},
				{status: http.StatusServiceUnavailable, words: "It does not.", of: statusView{}},
			},
		},
		{
			method: http.MethodGet, path: "/health/ready", handle: a.getReady, who: public,
			id: "ready", tag: "health",
			summary: "Say whether Redis answers",
			returns: returns(http.StatusOK, "It does.", struct{}{}),
			fails:   []problem{unavailable},
		},
		{
			method: http.MethodGet, path: "/openapi.json", handle: getOpenAPI, who: public,
			id: "describe", tag: "health",
			summary: "This description",
			returns: returns(http.StatusOK, "An OpenAPI document.", map[string]any{}),
		},
		{
			method: http.MethodGet, path: "/pulse", handle: a.getPulse, query: unchecked,
			id: "pulse", tag: "health",
			summary: "Say whether Redis answers",
			returns: returns(http.StatusNoContent, "It does.", nil),
		},
		{
			method: http.MethodGet, path: "/pulse/scaling", handle: a.queues.getScaling, query: unchecked,
			id: "scaling", tag: "health",
			summary: "Take a second when many jobs are due",
			about:   "For autoscalers that go by latency.",
			returns: returns(http.StatusNoContent, "There is much to do if it took a second.", nil),
		},
		{
			method: http.MethodGet, path: "/metrics", handle: a.getMetrics, query: unchecked,
			id: "metrics", tag: "health",
			summary: "Prometheus metrics",
			returns: []response{
				{status: http.StatusOK, words: "Prometheus text.", types: []string{"text/plain"}},
			},
		},
		{
			method: http.MethodGet, path: "/whoami", handle: a.getCaller, query: unchecked,
			id: "whoAmI", tag: "tokens",
			summary: "Say whose the credentials are",
			returns: returns(http.StatusOK, "Who calls.", callerView{}),
		},
	}
}

// statusView says whether the service works, as that does which state machines are from.
type statusView struct {
	Status string `json:"status" api:"enum=ok|error"`
	// The path of the state machines.
	Machines string `json:"state-machines,omitempty"`
	Message  string `json:"message,omitempty"`
	Version  string `json:"version"`
}

// getStatus reports whether Redis can be reached. Browsers are sent to the console.
func (a *API) getStatus(w http.ResponseWriter, r *http.Request) {
	if a.servesConsole() && strings.Contains(r.Header.Get("Accept"), "text/html") {
		redirectToConsole(w, r)
		return
	}
	if err := a.stores.PingAny(r.Context()); err != nil {
		rest.WriteJSON(w, http.StatusServiceUnavailable, statusView{
			Status: "error", Message: "the bus cannot reach its storage", Version: a.config.Version,
		})
		return
	}
	rest.WriteJSON(w, http.StatusOK, statusView{Status: "ok", Machines: "/state-machines", Version: a.config.Version})
}

// redirectToConsole leads to the console by a relative address, which holds behind any proxy.
func redirectToConsole(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "console/")
	w.WriteHeader(http.StatusSeeOther)
}

// callerView is the response of GET /whoami.
type callerView struct {
	// The client's name, as others see it.
	Client bus.ClientName `json:"client"`
	// Whether it is the operator.
	Root bool `json:"root"`
}

// getCaller says whose the credentials of the request are.
func (a *API) getCaller(w http.ResponseWriter, r *http.Request) {
	who := rest.Caller(r)
	rest.WriteJSON(w, http.StatusOK, callerView{who.PublicName(), who.Root})
}

// RunWaiting serves a bus whose Redis has not answered yet, until the context is done: it answers
// /health as usual, and everything else with 503. It leaves the listener open, and later
// connections wait for the next server.
func RunWaiting(ctx context.Context, on net.Listener, certificate *rest.Certificate, log *slog.Logger) error {
	a := &API{Service: &rest.Service{Log: log, Now: time.Now}}
	r := a.newRouter(a.outer()...)
	a.addRoutes(r, a.healthOperations())
	unavailable := func(w http.ResponseWriter, r *http.Request) { a.Fail(w, r, bus.ErrUnavailable) }
	r.NotFound(unavailable)
	r.MethodNotAllowed(unavailable)
	return rest.RunOnLoan(ctx, on, r, certificate, log)
}

// getHealth reports whether this process serves, whatever the state of Redis.
func (a *API) getHealth(w http.ResponseWriter, _ *http.Request) {
	rest.WriteJSON(w, http.StatusOK, struct{}{})
}

// pongView is the current time.
type pongView struct {
	Pong string `json:"pong" api:"format=date-time"`
}

// getPing is getHealth with the time.
func (a *API) getPing(w http.ResponseWriter, _ *http.Request) {
	rest.WriteJSON(w, http.StatusOK, pongView{a.Now().UTC().Format(time.RFC3339Nano)})
}

// getReady reports whether Redis can be reached and runs scripts.
func (a *API) getReady(w http.ResponseWriter, r *http.Request) {
	a.RespondJSON(w, r, struct{}{}, a.stores.RequireServing(r.Context()))
}

// getPulse reports to authenticated callers whether all partitions can be reached.
func (a *API) getPulse(w http.ResponseWriter, r *http.Request) {
	a.Respond(w, r, a.stores.Ping(r.Context()))
}

// getMetrics returns the metrics of this process, as Prometheus reads them.
func (a *API) getMetrics(w http.ResponseWriter, r *http.Request) { a.metrics.ServeHTTP(w, r) }
