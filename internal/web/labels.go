package web

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/web/rest"
)

const (
	// maxBody is the maximum size of a body with metadata, in bytes: a character of one byte may be
	// sent as an escape of six.
	maxBody = 6*machines.MaxMetadata + 4<<10
	// maxLabelsPage is how many elements a page of a list or a history has at most.
	maxLabelsPage = 1000
	// A request waits for its label to rest for at most maxLabelWait, and for defaultWait unless it
	// says.
	maxLabelWait = 10 * time.Second
	defaultWait  = time.Second
)

type listedView struct {
	Name  machines.LabelName `json:"name"`
	State machines.StateName `json:"state"`
}

// getLabels lists labels of a machine, by name: a page if the request has a limit, else all, as
// existing clients expect it. The response also has the path of a label, a link template.
func (h *machineHandlers) getLabels(w http.ResponseWriter, r *http.Request) {
	create := labelsPath(machineParam(r)) + "/:name"
	h.RespondListWithin(w, r, "labels", "create", create, func(l *rest.List) error { return h.listLabels(w, r, l) })
}

func (h *machineHandlers) listLabels(w http.ResponseWriter, r *http.Request, l *rest.List) error {
	q := rest.ReadQuery(r)
	filter := engine.Filter{
		State: machines.StateName(q.Get("state")), Errored: isTrue(q, "errored"),
		After: machines.LabelName(q.Get("cursor")), Limit: int(labelsLimit.integerOr(q, maxLabelsPage)),
	}
	if err := q.Err(); err != nil {
		return err
	}
	m, _, err := machine(r, h.stores)
	if err != nil {
		return err
	}
	for {
		list, next, err := h.stores.List(r.Context(), m.Name, filter)
		if err != nil {
			return err
		}
		if q.Has("limit") {
			rest.SetNext(w, r, "cursor", string(next))
			next = ""
		}
		views := make([]listedView, len(list))
		for i, label := range list {
			views[i] = listedView{label.Name, label.State}
		}
		if err := l.Add(views); err != nil || next == "" {
			return err
		}
		filter.After = next
	}
}

// machine returns the machine of a request and the definitions that contain it: the bus's, or a
// partition's for a label.
func machine(r *http.Request, from interface {
	Definitions(context.Context) (*machines.Definitions, error)
}) (*machines.Machine, *machines.Definitions, error) {
	definitions, err := from.Definitions(r.Context())
	if err != nil {
		return nil, nil, err
	}
	m := definitions.Machine(machineParam(r))
	if m == nil {
		return nil, nil, machines.ErrUnknownMachine
	}
	return m, definitions, nil
}

// label returns the label of a request, and the definitions that hold for it. For a deleted label
// it returns its remains.
func (h *machineHandlers) label(r *http.Request) (machines.Label, *machines.Definitions, error) {
	label, definitions, err := h.labels(r).Label(r.Context(), machineParam(r), labelParam(r))
	if definitions != nil && definitions.Machine(machineParam(r)) == nil {
		err = machines.ErrUnknownMachine
	}
	return label, definitions, err
}

// getLabel shows a label.
func (h *machineHandlers) getLabel(w http.ResponseWriter, r *http.Request) {
	label, definitions, err := h.label(r)
	h.respondLabel(w, r, &label, definitions, err)
}

// respondLabel responds with 200 and a label, or with an error.
func (h *machineHandlers) respondLabel(
	w http.ResponseWriter, r *http.Request, label *machines.Label, d *machines.Definitions, err error,
) {
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	rest.WriteJSON(w, http.StatusOK, h.viewLabel(r.Context(), d.Machine(label.Machine), label))
}

// changedView is a label after a change, as the service that this one takes the place of has it.
type changedView struct {
	Metadata jsontext.Value     `json:"metadata" api:"type=object additionalProperties=true"`
	State    machines.StateName `json:"state"`
}

// postLabel makes a label.
func (h *machineHandlers) postLabel(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	wait, leave := h.readWait(r, q)
	defer leave()
	label, err := h.change(w, r, q.Err(), func(metadata machines.Object) (label machines.Label, err error) {
		if err := labelParam(r).Validate(); err != nil {
			return label, err
		}
		return h.labels(r).Add(r.Context(), machineParam(r), labelParam(r), metadata, h.Now())
	})
	h.respondChanged(w, r, http.StatusCreated, label, wait, err)
}

// patchLabel merges metadata into a label's, which may move it.
func (h *machineHandlers) patchLabel(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	keepNull := rest.Word(q, "null", []string{"keep"}) == "keep"
	wait, leave := h.readWait(r, q)
	defer leave()
	label, err := h.change(w, r, q.Err(), func(metadata machines.Object) (machines.Label, error) {
		return h.labels(r).Merge(r.Context(), machineParam(r), labelParam(r), metadata, keepNull)
	})
	h.respondChanged(w, r, http.StatusOK, label, wait, err)
}

// respondChanged responds with a status and a label that was changed, after its run or when the
// time is over; or with an error.
func (h *machineHandlers) respondChanged(
	w http.ResponseWriter, r *http.Request, status int, label machines.Label, wait time.Duration, err error,
) {
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	r, release := h.Hold(r)
	defer release()
	label = h.rest(r.Context(), label, wait)
	rest.WriteJSON(w, status, changedView{jsontext.Value(label.Metadata), label.State})
}

// rest returns a label when it has come to rest, or the time is over. The change that it comes from
// is stored: if the label cannot be read again, or the client's token is removed meanwhile, it is
// as it was then.
func (h *machineHandlers) rest(ctx context.Context, label machines.Label, wait time.Duration) machines.Label {
	if label.Resting || wait == 0 {
		return label
	}
	if rested, _, err := h.stores.Of(label.Machine, label.Name).Rest(ctx, label.Machine, label.Name, wait); err == nil {
		return rested
	}
	return label
}

// deleteLabel deletes a label. It is no error if there is none.
func (h *machineHandlers) deleteLabel(w http.ResponseWriter, r *http.Request) {
	labels := h.labels(r)
	m, _, err := machine(r, labels)
	if err == nil {
		err = labels.Delete(r.Context(), m, labelParam(r), h.Now())
	}
	h.Respond(w, r, err)
}

// sentLabel is a label in a request.
type sentLabel struct {
	// At most 64 KiB, nested at most 100 deep.
	Metadata rest.Nullable[jsontext.Value] `json:"metadata" api:"required type=object additionalProperties=true"`
}

// change reads the metadata of a request, unless it has failed before, and makes a change with it.
// Its body counts as taken until then, since the change may wait for others.
func (h *machineHandlers) change(
	w http.ResponseWriter, r *http.Request, err error, do func(machines.Object) (machines.Label, error),
) (label machines.Label, _ error) {
	if err == nil {
		err = expectJSON(r)
	}
	if err != nil {
		return label, err
	}
	var sent sentLabel
	release, err := h.ReadHeldJSON(w, r, maxBody, &sent)
	defer release()
	if err != nil {
		return label, err
	}
	metadata, err := sent.metadata()
	if err != nil {
		return label, err
	}
	return do(metadata)
}

// metadata returns the metadata that was sent.
func (sent *sentLabel) metadata() (machines.Object, error) {
	switch {
	case !sent.Metadata.Sent:
		return nil, &bus.Invalid{Pointer: "/metadata", ID: "missing_parameter", Detail: "is missing; send an object"}
	case sent.Metadata.Value == nil:
		return nil, bus.Invalidf("/metadata", "must be an object")
	case bus.IsTooDeep(*sent.Metadata.Value):
		return nil, bus.Invalidf("/metadata", "%s", bus.TooDeep)
	}
	metadata, err := machines.ParseObject(*sent.Metadata.Value)
	return metadata, rest.At("/metadata", err)
}

// expectJSON refuses a request that says its body is something else.
func expectJSON(r *http.Request) error {
	sent := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(sent)
	if sent == "" || err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	return bus.Invalidf("", "the Content-Type must be application/json")
}

// readWait reads how long a request waits for its label to rest, and takes a place for it, which
// must be left. If there is none, a request that has asked to wait is refused, by the error of its
// query; any other does not wait.
func (h *machineHandlers) readWait(r *http.Request, q *rest.Query) (wait time.Duration, leave func()) {
	leave = func() {}
	wait = time.Duration(labelWait.integer(q)) * time.Millisecond
	if wait == 0 || q.Err() != nil {
		return wait, leave
	}
	taken, err := h.waiting.Take(rest.Caller(r).PublicName())
	switch {
	case err == nil:
		return wait, taken
	case q.Has("wait"):
		q.Fail(err)
	}
	return 0, leave
}

// isTrue reads a value of the query that is true or false, false if it is not there.
func isTrue(q *rest.Query, name string) bool {
	return rest.Word(q, name, []string{"true", "false"}) == "true"
}
