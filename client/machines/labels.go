package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// Label is a label after a change.
type Label struct {
	Metadata Object `json:"metadata"`
	State    string `json:"state"`
}

// Object is a JSON object of the bus. Its numbers are [json.Number], so that none loses digits.
type Object map[string]any

// UnmarshalJSON reads an object, or null.
func (o *Object) UnmarshalJSON(text []byte) error { return exactly(text, (*map[string]any)(o)) }

// exactly decodes JSON, its numbers as [json.Number].
func exactly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// Status is a label, with the reason why it is in its state.
type Status struct {
	Label
	EnteredAt subscriber.Time `json:"entered_at"`
	// Waiting is nil unless the label is in a gate that leads somewhere.
	Waiting *Waiting `json:"waiting_for,omitempty"`
	// Action is nil unless the label is in an action.
	Action *Action `json:"action,omitempty"`
	// Errored is nil unless the action has failed for good: see [Machine.Retry].
	Errored *Errored `json:"errored,omitempty"`
	// Route is the states ahead, as far as they are determined.
	Route []string `json:"route,omitempty"`
}

// Explanation is a condition, and its value now.
type Explanation struct {
	Condition string `json:"condition"`
	// Value is nil if the evaluation fails, with the Error, or is Unknown: it depends on a feed that
	// was not asked.
	Value   *bool  `json:"value"`
	Unknown bool   `json:"unknown,omitempty"`
	Error   string `json:"error,omitempty"`
	// Parts are the tests of the condition, and the paths in it.
	Parts []Part `json:"parts"`
}

// Part is a part of a condition.
type Part struct {
	Text string `json:"text"`
	// Value is a bool, a [json.Number], a string or nil.
	Value   any    `json:"value"`
	Unknown bool   `json:"unknown,omitempty"`
	Error   string `json:"error,omitempty"`
}

// UnmarshalJSON reads a part.
func (p *Part) UnmarshalJSON(text []byte) error {
	type part Part // without this method
	return exactly(text, (*part)(p))
}

// Waiting says why a label is in its gate, and which triggers evaluate the condition next.
type Waiting struct {
	Explanation
	Triggers []Trigger `json:"triggers"`
}

// Trigger is an event or a time that evaluates a condition.
type Trigger struct {
	// Type is "metadata", "time", "interval", "topic" or "retry".
	Type string `json:"type"`
	// Path is one of the metadata; Topic the name of a topic.
	Path  string `json:"path,omitempty"`
	Topic string `json:"topic,omitempty"`
	// At is zero if the time is not known.
	At subscriber.Time `json:"at,omitzero"`
}

// Action is the state of a webhook's attempts so far.
type Action struct {
	// Attempts is how many have failed. LastStatus and LastError describe the last one.
	Attempts   int             `json:"attempts"`
	LastStatus int             `json:"last_status,omitempty"`
	LastError  string          `json:"last_error,omitempty"`
	NextTryAt  subscriber.Time `json:"next_try_at,omitzero"`
}

// Errored is since when a label is errored, and why.
type Errored struct {
	At     subscriber.Time `json:"at"`
	Reason string          `json:"reason"`
}

// metadata is the body of requests that change a label.
type metadata struct {
	Metadata map[string]any `json:"metadata"`
}

// Create makes a label: 409 if there is one of the name, 410 if there was in the last 24 h. The
// request is not sent again when its response was lost.
func (m *Machine) Create(ctx context.Context, label string, data map[string]any) (made Label, err error) {
	err = m.call(ctx, client.Request{
		Operation: "create label " + m.named(label), Method: http.MethodPost, Path: m.waitPath(m.labelPath(label)), Body: object(data), NoRetry: true,
	}, &made)
	return made, err
}

// Merge merges data into the metadata of a label, which may move it: objects merge, nil removes a
// key, any other value replaces the old one. The same data may be merged again.
func (m *Machine) Merge(ctx context.Context, label string, data map[string]any) (merged Label, err error) {
	err = m.call(ctx, client.Request{
		Operation: "merge metadata of label " + m.named(label), Method: http.MethodPatch, Path: m.waitPath(m.labelPath(label)), Body: object(data),
	}, &merged)
	return merged, err
}

// object is metadata as it is sent: none is an empty object.
func object(data map[string]any) metadata {
	if data == nil {
		data = map[string]any{}
	}
	return metadata{data}
}

// Label looks a label up: 404 if there is none, 410 if it was deleted.
func (m *Machine) Label(ctx context.Context, label string) (status Status, err error) {
	err = m.call(ctx, client.Request{Operation: "show label " + m.named(label), Method: http.MethodGet, Path: m.labelPath(label)}, &status)
	return status, err
}

// Delete deletes a label. It is no error if there is none.
func (m *Machine) Delete(ctx context.Context, label string) error {
	return m.call(ctx, client.Request{Operation: "delete label " + m.named(label), Method: http.MethodDelete, Path: m.labelPath(label)}, nil)
}

// Retry makes an errored label try its action again: 409 if it is not errored.
func (m *Machine) Retry(ctx context.Context, label string) (status Status, err error) {
	err = m.call(ctx, client.Request{
		Operation: "retry label " + m.named(label), Method: http.MethodPost, Path: m.waitPath(m.labelPath(label) + "/retry"), NoRetry: true,
	}, &status)
	return status, err
}

// Evaluate evaluates the gate of a label now: 409 if it is not in one.
func (m *Machine) Evaluate(ctx context.Context, label string) (status Status, err error) {
	err = m.call(ctx, client.Request{
		Operation: "evaluate label " + m.named(label), Method: http.MethodPost, Path: m.waitPath(m.labelPath(label) + "/evaluate"),
	}, &status)
	return status, err
}

// DryRun is the outcome that evaluating a label's gate now would have.
type DryRun struct {
	State string `json:"state"`
	Explanation
	// To is where the label would go; empty if it would stay.
	To string `json:"to,omitempty"`
}

// DryRun evaluates the gate of a label, and changes nothing. Feeds are asked.
func (m *Machine) DryRun(ctx context.Context, label string) (would DryRun, err error) {
	path := m.labelPath(label) + "/evaluate?dry_run=true"
	err = m.call(ctx, client.Request{Operation: "evaluate label " + m.named(label), Method: http.MethodPost, Path: path}, &would)
	return would, err
}

// waitPath adds to a path how long the request waits.
func (m *Machine) waitPath(path string) string {
	if m.wait == nil {
		return path
	}
	return withQuery(path, url.Values{"wait": {strconv.FormatInt(int64(*m.wait), 10)}})
}
