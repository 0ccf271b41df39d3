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

// Filter says which labels are meant. What is zero means all.
type Filter struct {
	State   string
	Errored bool
}

// Listed is a label in a list.
type Listed struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Labels yields labels in the order of the bytes of their names, those behind a name if after is
// not empty. An error is the last that it yields.
func (m *Machine) Labels(ctx context.Context, f Filter, after string) iter.Seq2[Listed, error] {
	query := url.Values{"limit": {strconv.Itoa(MaxPage)}}
	if f.State != "" {
		query.Set("state", f.State)
	}
	if f.Errored {
		query.Set("errored", "true")
	}
	return pages(ctx, m, "list labels of "+m.name, m.path()+"/labels", query, after, func(page struct{ Labels []Listed }) []Listed {
		return page.Labels
	})
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
	// Trigger is what had the gate evaluated, Values are those of the parts of its condition.
	Trigger string `json:"trigger,omitempty"`
	Values  Object `json:"values,omitempty"`
	// Status is that of the answer to the action's webhook.
	Status int `json:"status,omitempty"`
}

// History yields the moves of a label that are kept, the latest first; of one that was deleted, for
// 24 h. An error is the last that it yields.
func (m *Machine) History(ctx context.Context, label string) iter.Seq2[Move, error] {
	query := url.Values{"limit": {strconv.Itoa(MaxPage)}}
	return pages(ctx, m, "show history of label "+label, m.labelPath(label)+"/history", query, "", func(page struct{ History []Move }) []Move {
		return page.History
	})
}

// pages yields the elements of the pages of a list, from a cursor.
func pages[P, E any](
	ctx context.Context, m *Machine, operation, path string, query url.Values, cursor string, elements func(P) []E,
) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for next := cursor; ; {
			if next != "" {
				query.Set("cursor", next)
			}
			var page P
			got, err := m.client.Call(ctx, client.Request{Operation: operation, Method: http.MethodGet, Path: withQuery(path, query)}, &page)
			if err != nil {
				var none E
				yield(none, err)
				return
			}
			for _, element := range elements(page) {
				if !yield(element, nil) {
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
