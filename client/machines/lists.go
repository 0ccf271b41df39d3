package machines

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/client/internal/header"
	"routemaster/client/subscriber"
)

// MaxPage is how many elements a page of a list has at most.
const MaxPage = 1000

// Filter selects labels. A zero field selects all.
type Filter struct {
	State   string
	Errored bool
}

// Listed is a label in a list.
type Listed struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Labels yields labels in the byte order of their names, from the first after a name if after is
// not empty. An error is the last value that it yields.
func (m *Machine) Labels(ctx context.Context, f Filter, after string) iter.Seq2[Listed, error] {
	query := url.Values{"limit": {strconv.Itoa(MaxPage)}}
	if f.State != "" {
		query.Set("state", f.State)
	}
	if f.Errored {
		query.Set("errored", "true")
	}
	return func(yield func(Listed, error) bool) {
		for next := after; ; {
			if next != "" {
				query.Set("cursor", next)
			}
			var page struct{ Labels []Listed }
			got, err := m.client.Call(ctx, client.Request{
				Operation: "list labels of " + m.name, Method: http.MethodGet, Path: withQuery(m.path()+"/labels", query),
			}, &page)
			if err != nil {
				yield(Listed{}, err)
				return
			}
			for _, label := range page.Labels {
				if !yield(label, nil) {
					return
				}
			}
			following := header.Next(got.Header, "cursor")
			if following == "" || following == next {
				return
			}
			next = following
		}
	}
}

// Move is a move of a label.
type Move struct {
	At subscriber.Time `json:"at"`
	// From is nil for the creation, To for the deletion.
	From *string `json:"from"`
	To   *string `json:"to"`
	Why  Why     `json:"why"`
}

// Why is why a label has moved.
type Why struct {
	// Hops is how many moves have set off one another through topics, up to this one.
	Hops int `json:"hops,omitempty"`
	// Trigger is the trigger that evaluated the gate. Values are the values of its condition's parts.
	Trigger string `json:"trigger,omitempty"`
	Values  Object `json:"values,omitempty"`
	// Status is the HTTP status of the response to the action's webhook.
	Status int `json:"status,omitempty"`
}

// History is the moves of a label.
type History struct {
	// Moves are the moves still kept, the latest first.
	Moves []Move `json:"history"`
	// Count is how many there were, the creation included.
	Count int64 `json:"count"`
}

// History returns the moves of a label. The history of a deleted label is kept for 24 h.
func (m *Machine) History(ctx context.Context, label string) (history History, err error) {
	path := withQuery(m.labelPath(label)+"/history", url.Values{"limit": {strconv.Itoa(MaxPage)}}) // more than are kept
	err = m.call(ctx, client.Request{Operation: "show history of label " + m.named(label), Method: http.MethodGet, Path: path}, &history)
	return history, err
}
