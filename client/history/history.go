// Package history reads a topic's past events again, each reader with its own cursor, and lets the
// topic's publisher set how much of them the bus keeps.
//
//	widgets := history.Of(bus, "widgets") // a *client.Client
//	for event, err := range widgets.Events(ctx, history.Start{Since: yesterday}) {
//		…
//	}
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// History is the history of a topic. It is safe for concurrent use.
type History struct {
	client *client.Client
	path   string
}

// Of returns the history of a topic.
func Of(c *client.Client, topic string) *History {
	return &History{c, "/topics/" + url.PathEscape(topic)}
}

// Limits say how much a history keeps: the newest events, as many as all of the limits allow. 0 is
// no limit.
type Limits struct {
	// Events is how many are kept, 10,000,000 at most.
	Events int64 `json:"events,omitzero"`
	// Age is for how long an event is kept, 1 s to 30 days.
	Age subscriber.Milliseconds `json:"age,omitzero"`
	// Bytes is the size of the kept events as the bus stores them, plus 8 bytes for each: 1,000 to
	// 1,000,000,000.
	Bytes int64 `json:"bytes,omitzero"`
}

// Info describes the contents of a history. It has the JSON of the bus's GET
// /topics/{name}/history, without nulls.
type Info struct {
	Limits
	// First is the position of the oldest event, Last the position of the newest. In an empty history
	// First is the next position, and Last the one before it.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// OldestAt is when the bus received the oldest event; zero if there is none.
	OldestAt subscriber.Time `json:"oldest_at,omitzero"`
	// StoredEvents and StoredBytes are the current size.
	StoredEvents int64 `json:"stored_events"`
	StoredBytes  int64 `json:"stored_bytes"`
}

// Put has the topic keep a history, which begins with the next event, or changes the limits of the
// one it keeps. Only the topic's publisher and root may; every client may read it.
func (h *History) Put(ctx context.Context, l Limits) error {
	return h.call(ctx, "keep a history", http.MethodPut, "/history", l, nil)
}

// Get describes the contents of the history: 404 if the topic keeps none.
func (h *History) Get(ctx context.Context) (info Info, err error) {
	err = h.call(ctx, "show a history", http.MethodGet, "/history", nil, &info)
	return info, err
}

// Delete removes the history. The topic keeps none from now on.
func (h *History) Delete(ctx context.Context) error {
	return h.call(ctx, "remove a history", http.MethodDelete, "/history", nil, nil)
}

// Event is an event in a history. It has the JSON of the bus's GET /topics/{name}/events.
type Event struct {
	// Position is 1 for the first event that the topic ever received. Positions have no gaps.
	Position int64
	// ReceivedAt is when the bus received the event.
	ReceivedAt time.Time
	// Unreadable is set if the bus cannot read the event, which is then empty.
	Unreadable bool
	client.Event
}

// head is the part of an event's JSON that [client.Event] does not have.
type head struct {
	Position   int64           `json:"position"`
	ReceivedAt subscriber.Time `json:"received_at"`
	Unreadable bool            `json:"unreadable,omitzero"`
}

// UnmarshalJSON reads an event of a history.
func (e *Event) UnmarshalJSON(text []byte) error {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	*e = Event{Position: h.Position, ReceivedAt: h.ReceivedAt.Time, Unreadable: h.Unreadable}
	if h.Unreadable {
		return nil
	}
	return json.Unmarshal(text, &e.Event)
}

// MarshalJSON writes the same JSON as the bus.
func (e Event) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(head{e.Position, subscriber.Time{Time: e.ReceivedAt}, e.Unreadable})
	if err != nil || e.Unreadable {
		return text, err
	}
	event, err := e.Event.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append(append(text[:len(text)-1], ','), event[1:]...), nil
}

// Start says where to begin to read. The zero value is the oldest kept event.
type Start struct {
	// Position is the position of the first event wanted. If the bus no longer keeps it, reading
	// starts with the oldest kept event.
	Position int64
	// Since, if Position is 0, is when the first event wanted was received at the earliest.
	Since time.Time
}

// Page is a part of a history.
type Page struct {
	// First and Last are the bounds of the history, see [Info]; Next is the position to go on from.
	First  int64   `json:"first"`
	Last   int64   `json:"last"`
	Next   int64   `json:"next"`
	Events []Event `json:"events"`
}

// MaxPage is how many events one request gets at most.
const MaxPage = 1000

// Read returns events from a place on, up to limit, which is 1 to [MaxPage]. It returns fewer if
// they are large, and none if there is none yet.
func (h *History) Read(ctx context.Context, from Start, limit int) (p Page, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	switch {
	case from.Position < 0:
		return p, fmt.Errorf("read a history: there is no position %d", from.Position)
	case from.Position > 0:
		query.Set("from", strconv.FormatInt(from.Position, 10))
	case !from.Since.IsZero():
		query.Set("since", strconv.FormatInt(from.Since.UnixMilli(), 10))
	}
	err = h.call(ctx, "read a history", http.MethodGet, "/events?"+query.Encode(), nil, &p)
	return p, err
}

// Events yields the events from a place on, up to the newest. An error is the last value that it
// yields.
func (h *History) Events(ctx context.Context, from Start) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			page, err := h.Read(ctx, from, MaxPage)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, event := range page.Events {
				if !yield(event, nil) {
					return
				}
			}
			if len(page.Events) == 0 || page.Next > page.Last {
				return
			}
			from = Start{Position: page.Next}
		}
	}
}

// call sends a request about the topic.
func (h *History) call(ctx context.Context, operation, method, of string, body, into any) error {
	_, err := h.client.Call(ctx, client.Request{Operation: operation, Method: method, Path: h.path + of, Body: body}, into)
	return err
}
