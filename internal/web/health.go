package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// statusView says whether the service works, as that does which state machines are from.
type statusView struct {
	Status   string `json:"status"`
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

// callerView says who calls.
type callerView struct {
	Client bus.ClientName `json:"client"`
	Root   bool           `json:"root"`
}

// getCaller says whose the credentials of the request are.
func (a *API) getCaller(w http.ResponseWriter, r *http.Request) {
	who := rest.Caller(r)
	rest.WriteJSON(w, http.StatusOK, callerView{who.PublicName(), who.Root})
}

// healthRoutes adds the routes that need neither Redis nor credentials.
func (a *API) healthRoutes(r chi.Router) {
	r.Get("/health", a.getHealth)
	r.Get("/health/ping", a.getPing)
	r.Get("/health/ping.json", a.getPing)
}

// RunWaiting serves a bus of which Redis has said nothing yet until the context is done: /health is
// answered as ever, all else with 503. It leaves the listener open, and the connections that come
// later wait for what serves next.
func RunWaiting(ctx context.Context, on net.Listener, certificate *rest.Certificate, log *slog.Logger) error {
	a := &API{Service: &rest.Service{Log: log, Now: time.Now}}
	r := a.newRouter(a.outer()...)
	a.healthRoutes(r)
	unavailable := func(w http.ResponseWriter, r *http.Request) { a.Fail(w, r, bus.ErrUnavailable) }
	r.NotFound(unavailable)
	r.MethodNotAllowed(unavailable)
	return rest.RunOnLoan(ctx, on, r, certificate, log)
}

// getHealth reports whether this process serves, whatever the state of Redis.
func (a *API) getHealth(w http.ResponseWriter, _ *http.Request) {
	rest.WriteJSON(w, http.StatusOK, struct{}{})
}

// getPing is getHealth with the time.
func (a *API) getPing(w http.ResponseWriter, _ *http.Request) {
	rest.WriteJSON(w, http.StatusOK, map[string]string{"pong": a.Now().UTC().Format(time.RFC3339Nano)})
}

// getReady reports whether Redis can be reached and runs scripts.
func (a *API) getReady(w http.ResponseWriter, r *http.Request) {
	a.RespondJSON(w, r, struct{}{}, a.stores.RequireServing(r.Context()))
}

// getPulse reports to authenticated callers whether all partitions can be reached.
func (a *API) getPulse(w http.ResponseWriter, r *http.Request) {
	a.Respond(w, r, a.stores.Ping(r.Context()))
}
