package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/outbound"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

var (
	machineInPath = parameter{name: "machine", in: "path", component: "MachineName", words: "The state machine."}
	labelInPath   = parameter{
		name: "label", in: "path", component: "LabelName",
		words: "The label: 1 to 512 bytes of UTF-8, percent-encoded, without `/` and control characters; not `.`" +
			" or `..`.",
	}
	labelWait = parameter{
		name: "wait", kind: "integer", component: "LabelWait",
		max: int64(maxLabelWait / time.Millisecond), fallback: int(defaultWait / time.Millisecond),
		words: "How long the request waits for the label to come to rest, in ms.",
	}
	labelsLimit = parameter{
		name: "limit", kind: "integer", min: 1, max: maxLabelsPage,
		words: "The maximum number of elements of a page; without it, all labels are listed.",
	}
	movesBefore = parameter{
		name: "cursor", kind: "integer", max: maxCursor,
		words: "Where the page begins: as the `Link` of the page before has it.",
	}
	movesLimit = parameter{
		name: "limit", kind: "integer", min: 1, max: maxLabelsPage, fallback: 100, component: "LabelLimit",
		words: "The maximum number of elements of a page.",
	}
	tooManyWaits = problem{
		http.StatusTooManyRequests,
		"Too many requests wait for labels to rest, of the client or in all; only a request that asks to " +
			"wait is refused, before anything is changed; or as for other bodies, the client's take too much " +
			"memory",
		"TooManyWaits",
	}
	labelDeleted = problem{
		http.StatusGone,
		"The label was deleted in the last 24 hours.",
		"LabelDeleted",
	}
	metadataTooLarge = problem{
		http.StatusRequestEntityTooLarge,
		"The body is too large: metadata may have 64 KiB.",
		"MetadataTooLarge",
	}
)

// operations are for every client: it may see the machines and their labels, and change labels
// unless the machine lists the clients that may. The operator defines the machines. The requests of
// the original's clients ignore names in queries.
func (h *machineHandlers) operations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/state-machines", handle: h.getMachines, query: ignoreOthers,
			id: "listStateMachines", tag: "state machines",
			summary: "List the state machines",
			returns: returns(http.StatusOK, "All of them, by name.", machineListView{}),
		},
		{
			method: http.MethodPut, path: "/state-machines", handle: h.putMachines, who: rootOnly, query: repeated,
			id: "putStateMachines", tag: "state machines",
			summary: "Replace all definitions",
			about: "For the operator. The body is the whole set, as YAML: a machine that is left out goes, and one " +
				"with labels is refused. If the definitions are wrong, `errors` has all places.",
			params: []parameter{
				{
					name: "move", kind: "array",
					words: "Where the labels in a state that vanishes go: `machine.old:new`. It may be repeated.",
				},
			},
			body: &body{
				of:       map[string]any{},
				example:  `{"state_machines":{"order":{"states":[{"gate":"placed","triggers":[{"metadata":"paid"}],"exit_condition":"metadata.paid","next":"paid"},{"gate":"paid","exit_condition":false}]}}}`,
				yaml:     true,
				tooLarge: &problem{status: http.StatusRequestEntityTooLarge, words: "The body has more than 1 MiB."},
			},
			returns: returns(http.StatusOK, "They hold, for all processes within a second.", appliedView{}),
			fails: []problem{
				{status: http.StatusConflict, words: "Labels are in states that would vanish, which `states` names; or others are replacing the " +
					"definitions."},
			},
		},
		{
			method: http.MethodGet, path: "/state-machines/{machine}", handle: h.getMachine,
			id: "getStateMachine", tag: "state machines",
			summary: "Show a state machine",
			about:   "The headers of webhooks are credentials: only the operator sees them.",
			params: []parameter{
				machineInPath,
				{name: "format", fallback: "json", enum: machineFormats, words: "A graph instead."},
			},
			returns: []response{
				{status: http.StatusOK, words: "Its definition, and how many labels it has; or its graph.", of: schemaRef("StateMachine"), types: []string{"text/vnd.graphviz", "text/plain", "image/svg+xml"}},
			},
			fails: []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/state-machines/{machine}/labels", handle: h.getLabels, query: ignoreOthers,
			id: "listLabels", tag: "labels",
			summary: "List labels of a machine",
			params: []parameter{
				machineInPath,
				{name: "state", words: "Only labels in this state."},
				{name: "errored", kind: "boolean", fallback: false, words: "Only labels that are errored."},
				{name: "cursor", words: "Where the page begins: as the `Link` of the page before has it."},
				labelsLimit,
			},
			returns: pages("All labels, or a page, in the order of the bytes of the names.", schemaRef("LabelList")),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/state-machines/{machine}/labels/{label}", handle: h.getLabel, query: ignoreOthers,
			id: "getLabel", tag: "labels",
			summary: "Show a label",
			params:  []parameter{machineInPath, labelInPath},
			returns: returns(http.StatusOK, "The label, and what it waits for. No feed is asked.", labelView{}),
			fails:   []problem{notFound, labelDeleted},
		},
		{
			method: http.MethodPost, path: "/state-machines/{machine}/labels/{label}", handle: h.postLabel, query: ignoreOthers,
			id: "createLabel", tag: "labels",
			summary: "Create a label",
			about: "It begins in the first state. The response shows it after its run, if that takes no longer than " +
				"`wait`.",
			params: []parameter{machineInPath, labelInPath, labelWait},
			body: &body{
				of:       sentLabel{},
				example:  `{"metadata":{"paid":false}}`,
				tooLarge: &metadataTooLarge,
				tooMany:  &tooManyWaits,
			},
			returns: returns(http.StatusCreated, "Created.", changedView{}),
			fails: []problem{
				forbidden,
				notFound,
				{status: http.StatusConflict, words: "There is a label of that name."},
				labelDeleted,
				accountFull,
			},
		},
		{
			method: http.MethodPatch, path: "/state-machines/{machine}/labels/{label}", handle: h.patchLabel, query: ignoreOthers,
			id: "changeLabel", tag: "labels",
			summary: "Merge metadata into a label",
			about: "Objects merge, anything else replaces what is there, and null removes it (RFC 7396). A gate with" +
				" a trigger for what was sent is evaluated.",
			params: []parameter{
				machineInPath,
				labelInPath,
				labelWait,
				{
					name: "null", enum: []string{"keep"},
					words: "With `keep`, a null is stored; without it, a null removes the key.",
				},
			},
			body: &body{
				of:       sentLabel{},
				example:  `{"metadata":{"paid":true}}`,
				tooLarge: &metadataTooLarge,
				tooMany:  &tooManyWaits,
			},
			returns: returns(http.StatusOK, "The label, after its run if that takes no longer than `wait`.", changedView{}),
			fails:   []problem{forbidden, notFound, labelDeleted, accountFull},
		},
		{
			method: http.MethodDelete, path: "/state-machines/{machine}/labels/{label}", handle: h.deleteLabel, query: ignoreOthers,
			id: "deleteLabel", tag: "labels",
			summary: "Delete a label",
			params:  []parameter{machineInPath, labelInPath},
			returns: returns(http.StatusNoContent, "Deleted, or there was none. The name can be used again 24 hours later.", nil),
			fails:   []problem{forbidden, notFound},
		},
		{
			method: http.MethodGet, path: "/state-machines/{machine}/labels/{label}/history", handle: h.getHistory,
			id: "getLabelHistory", tag: "labels",
			summary: "List the moves of a label",
			params: []parameter{
				machineInPath,
				labelInPath,
				movesBefore,
				movesLimit,
			},
			returns: pages("The last moves, of the 100 that are kept, the latest first. A deleted label's moves are kept "+
				"for 24 hours.", labelHistoryView{}),
			fails: []problem{notFound, labelDeleted},
		},
		{
			method: http.MethodPost, path: "/state-machines/{machine}/labels/{label}/retry", handle: h.postRetry,
			id: "retryLabel", tag: "labels",
			summary: "Have an errored label try its action again",
			params:  []parameter{machineInPath, labelInPath, labelWait},
			returns: returns(http.StatusOK, "The label.", labelView{}),
			fails: []problem{
				forbidden,
				notFound,
				{status: http.StatusConflict, words: "The label is not errored."},
				labelDeleted,
				tooManyWaits,
			},
		},
		{
			method: http.MethodPost, path: "/state-machines/{machine}/labels/{label}/evaluate", handle: h.postEvaluate,
			id: "evaluateLabel", tag: "labels",
			summary: "Evaluate the gate of a label now",
			params: []parameter{
				machineInPath,
				labelInPath,
				{name: "dry_run", kind: "boolean", fallback: false, words: "Only say what would happen. Feeds are asked."},
				labelWait,
			},
			returns: returns(http.StatusOK, "The label; or, of a dry run, what would happen.", oneOf{labelView{}, dryRunView{}}),
			fails: []problem{
				forbidden,
				notFound,
				{status: http.StatusConflict, words: "The label is not in a gate."},
				labelDeleted,
				tooManyWaits,
			},
		},
	}
}

// MachinesConfig configures [machineHandlers].
type MachinesConfig struct {
	// Labels are the machines and labels of the bus.
	Labels *engine.Bus
	// Client asks the feeds of gates in dry runs.
	Client *outbound.Client
	// Recorder counts its requests. It may be nil.
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

// RefuseSlashes refuses names with a slash, which the router would take for two.
func RefuseSlashes(next http.Handler) http.Handler { return rest.RefuseSlashes(machinesPath+"/", next) }

// labels returns the store of the label in a request's path, if there is one, acting for the
// caller.
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
