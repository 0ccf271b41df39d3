package web

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/outbound"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// MachinesConfig configures [machineHandlers].
type MachinesConfig struct {
	// Labels are the machines and labels of the bus.
	Labels *engine.Bus
	// Client asks the feeds of gates that are evaluated to see what would happen.
	Client *outbound.Client
	// Recorder counts what becomes of that. It may be nil.
	Recorder *telemetry.Recorder
}

// machineHandlers serve the requests that are about state machines and their labels.
type machineHandlers struct {
	*rest.Service
	stores    *engine.Bus
	topics    *engine.Client
	evaluator *engine.Evaluator
	// waiting are the requests that wait until a label rests.
	waiting *rest.Places
}

// maxWaiting is how many requests may wait for a label to rest at once in one process.
const maxWaiting = 1000

// newMachineHandlers makes the handlers of an API. They read requests and respond by its service.
func newMachineHandlers(config MachinesConfig, service *rest.Service, all *store.Bus) *machineHandlers {
	client := engine.NewClient(engine.ClientConfig{Stores: all, Labels: config.Labels, Log: service.Log, Now: service.Now})
	return &machineHandlers{
		Service: service, stores: config.Labels, topics: client, evaluator: engine.New(config.Client, config.Recorder, service.Now),
		waiting: rest.NewPlaces(maxWaiting, "labels"),
	}
}

// machinesPath begins the paths of all routes.
const machinesPath = "/state-machines"

// Routes adds all routes. Every client may see the machines and their labels, and change labels
// unless the machine names those that may; the operator defines them.
func (h *machineHandlers) Routes(r chi.Router) {
	route := func(method, path string, handle http.HandlerFunc, query ...string) {
		r.With(rest.AllowQuery(query...)).Method(method, machinesPath+path, handle)
	}
	known := func(method, path string, handle http.HandlerFunc, query ...string) {
		r.With(rest.IgnoreQuery(query...)).Method(method, machinesPath+path, handle)
	}
	const labels = "/{machine}/labels"
	const label = labels + "/{label}"
	// Requests of the original's clients.
	known(http.MethodGet, "", h.getMachines)
	known(http.MethodGet, labels, h.getLabels, "state", "errored", "cursor", "limit")
	known(http.MethodGet, label, h.getLabel)
	known(http.MethodPost, label, h.postLabel, "wait")
	known(http.MethodPatch, label, h.patchLabel, "wait", "null")
	known(http.MethodDelete, label, h.deleteLabel)
	// What it does not have.
	r.With(rest.AllowRoot, rest.AllowRepeated("move")).Put(machinesPath, h.putMachines)
	route(http.MethodGet, "/{machine}", h.getMachine, "format")
	route(http.MethodGet, label+"/history", h.getHistory, "cursor", "limit")
	route(http.MethodPost, label+"/retry", h.postRetry, "wait")
	route(http.MethodPost, label+"/evaluate", h.postEvaluate, "dry_run", "wait")
}

// RefuseSlashes refuses names with a slash, which the router would take for two.
func RefuseSlashes(next http.Handler) http.Handler { return rest.RefuseSlashes(machinesPath+"/", next) }

// labels has the label in a request's path, if there is one, for what the caller asks for.
func (h *machineHandlers) labels(r *http.Request) *engine.Store {
	return h.stores.Of(machineParam(r), labelParam(r)).For(clientOf(r))
}

// machineParam and labelParam return the names in a request's path.
func machineParam(r *http.Request) machines.Name { return machines.Name(chi.URLParam(r, "machine")) }

func labelParam(r *http.Request) machines.LabelName {
	return machines.LabelName(chi.URLParam(r, "label"))
}

// labelsPath is the path of a machine's labels.
func labelsPath(machine machines.Name) string {
	return machinesPath + "/" + url.PathEscape(string(machine)) + "/labels"
}
