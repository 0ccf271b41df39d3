package web

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
	"routemaster/internal/web/rest"
)

type machineListView struct {
	Machines []machineLink `json:"state-machines"`
	// Counts the changes of the definitions.
	Version int64 `json:"version"`
}

type machineLink struct {
	Name machines.Name `json:"name"`
	// The path of its labels.
	Labels string `json:"labels"`
}

// getMachines lists the machines, by name.
func (h *machineHandlers) getMachines(w http.ResponseWriter, r *http.Request) {
	view := machineListView{Machines: []machineLink{}}
	definitions, err := h.stores.Definitions(r.Context())
	if err == nil {
		view.Version = definitions.Version
		for _, m := range definitions.Machines {
			view.Machines = append(view.Machines, machineLink{m.Name, labelsPath(m.Name)})
		}
	}
	h.RespondJSON(w, r, view, err)
}

// machineView is a machine: its definition, and how many labels it has.
type machineView struct {
	Name       machines.Name                `json:"name"`
	Version    int64                        `json:"version"`
	AppliedAt  int64                        `json:"applied_at"` // ms
	Definition definitionView               `json:"definition"`
	Labels     map[machines.StateName]int64 `json:"labels"`
	Errored    int64                        `json:"errored"`
}

// graphTypes are the media types of the formats of a graph.
var graphTypes = map[string]string{
	"dot": "text/vnd.graphviz; charset=utf-8", "mermaid": "text/plain; charset=utf-8", "svg": "image/svg+xml",
}

// machineFormats are the formats in which a machine can be shown.
var machineFormats = append([]string{"json"}, definition.Formats...)

// getMachine shows a machine, as JSON or as a graph.
func (h *machineHandlers) getMachine(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	format := rest.Word(q, "format", machineFormats)
	switch {
	case q.Err() != nil:
		h.Fail(w, r, q.Err())
	case format == "" || format == "json":
		view, err := h.viewMachine(r)
		h.RespondJSON(w, r, view, err)
	default:
		h.drawMachine(w, r, format)
	}
}

// drawMachine responds with the graph of a machine.
func (h *machineHandlers) drawMachine(w http.ResponseWriter, r *http.Request, format string) {
	m, _, err := machine(r, h.stores)
	picture := ""
	if err == nil {
		picture, err = definition.Draw(m, format)
	}
	if errors.Is(err, definition.ErrTooLarge) {
		err = invalidQuery("%v", err)
	}
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", graphTypes[format])
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// A browser that opens the picture must not run scripts that it might contain.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = io.WriteString(w, picture) // an error means that the client is gone
}

func (h *machineHandlers) viewMachine(r *http.Request) (view machineView, err error) {
	m, definitions, err := machine(r, h.stores)
	if err != nil {
		return view, err
	}
	counts, errored, err := h.stores.Counts(r.Context(), definitions, m.Name)
	if err != nil {
		return view, err
	}
	view = machineView{
		Name: m.Name, Version: definitions.Version, AppliedAt: definitions.AppliedAt.UnixMilli(),
		Definition: viewDefinition(m, rest.Caller(r).Root), Labels: map[machines.StateName]int64{}, Errored: errored,
	}
	for _, count := range counts {
		view.Labels[count.State] = count.Labels
	}
	return view, nil
}

// appliedView is the response of PUT.
type appliedView struct {
	Version  int64        `json:"version"`
	Warnings []rest.Fault `json:"warnings"`
}

// putMachines replaces all definitions.
func (h *machineHandlers) putMachines(w http.ResponseWriter, r *http.Request) {
	view, err := h.apply(w, r)
	if err == nil {
		h.LogChange(r, "replaced the state machines", slog.Int64("version", view.Version))
	}
	h.RespondJSON(w, r, view, refusal(err))
}

func (h *machineHandlers) apply(w http.ResponseWriter, r *http.Request) (view appliedView, err error) {
	text, err := h.ReadText(w, r, definition.MaxBytes)
	if err != nil {
		return view, err
	}
	source := bytes.Clone(text)
	h.Release(r, text)
	next, warnings, err := definition.Load(definition.File{Content: source})
	if err != nil {
		return view, err
	}
	next.Source = source
	moves, err := readMoves(r.URL.Query()["move"], next)
	if err != nil {
		return view, err
	}
	view.Version, err = h.topics.Apply(r.Context(), next, moves)
	view.Warnings = faults(warnings)
	return view, err
}

// readMoves reads where the labels of states go that vanish: machine.old:new, where the names of
// states have neither a dot nor a colon.
func readMoves(texts []string, next *machines.Definitions) (moves []machines.StateMove, err error) {
	for _, text := range texts {
		before, to, _ := cutLast(text, ":")
		machine, from, _ := cutLast(before, ".")
		move := machines.StateMove{Machine: machines.Name(machine), From: machines.StateName(from), To: machines.StateName(to)}
		switch {
		case machine == "" || from == "" || to == "":
			return nil, invalidQuery("the query's move %q must be machine.old:new", text)
		case next.State(move.Machine, move.From) != nil:
			return nil, invalidQuery("the query's move %q is from a state that does not vanish", text)
		case next.State(move.Machine, move.To) == nil:
			return nil, invalidQuery("the query's move %q is to a state that there is not", text)
		case slices.ContainsFunc(moves, func(m machines.StateMove) bool { return m.Machine == move.Machine && m.From == move.From }):
			return nil, invalidQuery("the query's move %q is from a state of another move", text)
		}
		moves = append(moves, move)
	}
	return moves, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return "", "", false
}
