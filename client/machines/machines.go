// Package machines moves labels through the states of a state machine. A label stands for a user,
// an order or any other thing; its metadata is all that a program pushes.
//
//	users := machines.Of(bus, "onboarding") // a *client.Client
//	label, err := users.Create(ctx, "user-7", map[string]any{"plan": "free"})
//	…
//	label, err = users.Merge(ctx, "user-7", map[string]any{"plan": "pro"})
package machines

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"routemaster/client"
	"routemaster/client/subscriber"
)

const root = "/state-machines"

// Machine is a state machine of a bus. It is safe for concurrent use.
type Machine struct {
	client *client.Client
	name   string
	wait   *subscriber.Milliseconds
}

// Of returns a machine.
func Of(c *client.Client, name string) *Machine { return &Machine{client: c, name: name} }

// Waiting returns the machine with another wait, 0 to 10 s. Requests that change a label wait so
// long for it to come to rest; the default is 1 s.
func (m *Machine) Waiting(wait subscriber.Milliseconds) *Machine {
	return &Machine{client: m.client, name: m.name, wait: &wait}
}

// Applied is the result of applying definitions.
type Applied struct {
	// Version counts the changes of the definitions.
	Version  int64          `json:"version"`
	Warnings []client.Fault `json:"warnings"`
}

// StateMove moves the labels in a removed state to another.
type StateMove struct{ Machine, From, To string }

// Apply replaces all definitions by a YAML document. Only root may. It fails with a [client.Error]:
// with all Faults of wrong definitions, and with 409 while labels are in a removed state without a
// move.
func Apply(ctx context.Context, c *client.Client, yaml []byte, moves ...StateMove) (applied Applied, err error) {
	query := url.Values{}
	for _, move := range moves {
		query.Add("move", move.Machine+"."+move.From+":"+move.To)
	}
	_, err = c.Call(ctx, client.Request{
		Operation: "apply state machines", Method: http.MethodPut, Path: withQuery(root, query),
		Text: append([]byte{}, yaml...), Kind: "application/yaml",
	}, &applied)
	return applied, err
}

// Names returns the names of all machines, in order, and the version of the definitions.
func Names(ctx context.Context, c *client.Client) (names []string, version int64, err error) {
	var list struct {
		Machines []struct{ Name string } `json:"state-machines"`
		Version  int64
	}
	_, err = c.Call(ctx, client.Request{Operation: "list state machines", Method: http.MethodGet, Path: root}, &list)
	for _, m := range list.Machines {
		names = append(names, m.Name)
	}
	return names, list.Version, err
}

// Info is a machine as the bus has it.
type Info struct {
	Name string `json:"name"`
	// Version is the version of the definitions. AppliedAt is when they were applied.
	Version   int64           `json:"version"`
	AppliedAt subscriber.Time `json:"applied_at"`
	// Definition is as in the YAML. Only root sees the headers of webhooks.
	Definition json.RawMessage `json:"definition"`
	// Labels is how many labels are in each state, Errored how many are errored.
	Labels  map[string]int64 `json:"labels"`
	Errored int64            `json:"errored"`
}

// Show returns the machine: 404 if there is none.
func (m *Machine) Show(ctx context.Context) (info Info, err error) {
	err = m.call(ctx, client.Request{Operation: "show state machine " + m.name, Method: http.MethodGet, Path: m.path()}, &info)
	return info, err
}

// Graph returns a picture of the machine: "dot", "mermaid" or "svg".
func (m *Machine) Graph(ctx context.Context, format string) (picture []byte, err error) {
	path := withQuery(m.path(), url.Values{"format": {format}})
	err = m.call(ctx, client.Request{Operation: "draw state machine " + m.name, Method: http.MethodGet, Path: path}, &picture)
	return picture, err
}

func (m *Machine) call(ctx context.Context, r client.Request, into any) error {
	_, err := m.client.Call(ctx, r, into)
	return err
}

func (m *Machine) path() string { return root + "/" + url.PathEscape(m.name) }

func (m *Machine) labelPath(label string) string {
	return m.path() + "/labels/" + url.PathEscape(label)
}

// named names a label in errors.
func (m *Machine) named(label string) string { return label + " of " + m.name }

// withQuery adds a query to a path, if there is one.
func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
