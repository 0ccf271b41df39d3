package web

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"

	"routemaster/internal/store"
	"routemaster/internal/web/rest"
	"routemaster/internal/wire"
)

// historyOperations are for every client and the operator; only the topic's publisher or the
// operator may change a history's limits.
func (a *API) historyOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/topics/{topic}/history", handle: a.getHistory,
			id: "getHistory", tag: "topics",
			summary: "Show what a topic's history keeps",
			params:  []parameter{topicInPath},
			returns: returns(http.StatusOK, "The history.", historyView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/topics/{topic}/events", handle: a.getEvents,
			id: "getEvents", tag: "topics",
			summary: "Read a topic's history",
			about: "Events from a position or from a time on, oldest first; without either from the oldest that is " +
				"kept. Fewer than asked for may come before the last, where they are large: go on at `next` until" +
				" `last` is passed.",
			params: []parameter{
				topicInPath, eventsFrom, eventsSince, eventsLimit,
			},
			returns: returns(http.StatusOK, "A part of the history.", schemaRef("HistoryEvents")),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/topics/{topic}/tail", handle: a.getTail,
			id: "getTail", tag: "topics",
			summary: "Watch a topic's events while they are published",
			about: "Server-sent events, from now on: a `message` for each event, as a delivery has it. It is a view " +
				"and no delivery: at most 100 events a second are shown, and 20 of one request; a `left_out` says" +
				" how many others there were in the last second. It ends after 30 minutes, and when the topic is " +
				"deleted.",
			params: []parameter{topicInPath},
			returns: []response{
				{status: http.StatusOK, words: "The events, until either side ends it.", types: []string{"text/event-stream"}},
			},
			fails: []problem{notFound},
		},
		{
			method: http.MethodPut, path: "/topics/{topic}/history", handle: a.putHistory,
			id: "putHistory", tag: "topics",
			summary: "Have a topic keep a history, or change its limits",
			about: "For the topic's publisher and the operator. The history begins with the next event. Every client" +
				" may read it, also one that comes later. Limits that are left out are none; what new limits do " +
				"not allow goes within seconds.",
			params:  []parameter{topicInPath},
			body:    &body{of: sentHistory{}, example: `{"events":100000,"age":604800000}`},
			returns: returns(http.StatusNoContent, "The topic keeps a history.", nil),
			fails:   []problem{forbidden, notFound},
		},
		{
			method: http.MethodDelete, path: "/topics/{topic}/history", handle: a.deleteHistory,
			id: "deleteHistory", tag: "topics",
			summary: "Remove a topic's history",
			about:   "For the topic's publisher and the operator.",
			params:  []parameter{topicInPath},
			returns: returns(http.StatusNoContent, "It is gone, and the topic keeps none.", nil),
			fails:   []problem{forbidden, notFound},
		},
	}
}

// sentHistory are the limits of a history.
type sentHistory struct {
	// How many events are kept.
	Events *int64 `json:"events" api:"minimum=1 maximum=10000000"`
	// How long an event is kept, in ms.
	Age *int64 `json:"age" api:"minimum=1000 maximum=2592000000"`
	// The size of all that is kept: of the events as stored, with 8 bytes more for each.
	Bytes *int64 `json:"bytes" api:"minimum=1000 maximum=1000000000"`
}

// putHistory has a topic of the caller, or any if the caller is root, keep a history.
func (a *API) putHistory(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	var sent sentHistory
	err := a.ReadJSON(w, r, rest.MaxValueBody, &sent)
	var limits store.HistoryLimits
	if err == nil {
		limits, err = store.NewHistoryLimits(sent.Events, sent.Age, sent.Bytes)
	}
	if err == nil {
		err = a.historyOf(topic).Put(r.Context(), topic, rest.Caller(r).Token, limits, a.Now())
	}
	a.RespondChanged(w, r, err, "history set", slog.String("topic", string(topic)),
		slog.Int64("events", limits.Events), slog.Duration("age", limits.Age), slog.Int64("bytes", limits.Bytes))
}

// deleteHistory removes the history of a topic of the caller, or of any if the caller is root.
func (a *API) deleteHistory(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	err := a.historyOf(topic).Delete(r.Context(), topic, rest.Caller(r).Token)
	a.RespondChanged(w, r, err, "history removed", slog.String("topic", string(topic)))
}

// historyView is a topic's history. Durations are in ms, times in ms since the Unix epoch; an
// absent limit is null.
type historyView struct {
	// How many events are kept. Null if that is not limited.
	Events *int64 `json:"events"`
	// How long an event is kept, in ms. Null if that is not limited.
	Age *int64 `json:"age"`
	// The size of all that is kept: of the events as stored, with 8 bytes more for each. Null if that
	// is not limited.
	Bytes *int64 `json:"bytes"`
	// The position of the oldest event; the position of the next event if the history is empty.
	First int64 `json:"first"`
	// The position of the newest event; of an empty history the one before `first`.
	Last int64 `json:"last"`
	// When the oldest event was received, in ms since the Unix epoch.
	OldestAt     *int64 `json:"oldest_at"`
	StoredEvents int64  `json:"stored_events" api:"minimum=0"`
	StoredBytes  int64  `json:"stored_bytes" api:"minimum=0"`
}

// getHistory shows a topic's history.
func (a *API) getHistory(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	h, err := a.historyOf(topic).Get(r.Context(), topic)
	a.RespondJSON(w, r, historyView{
		Events: rest.OrNull(h.Limits.Events), Age: rest.OrNull(h.Limits.Age.Milliseconds()), Bytes: rest.OrNull(h.Limits.Bytes),
		First: h.First, Last: h.Last, OldestAt: rest.Millis(h.OldestAt), StoredEvents: h.Events, StoredBytes: h.Bytes,
	}, err)
}

// maxPosition bounds positions, so that each is exact in every client's JSON.
const maxPosition = 1<<53 - 1

// Which events of a history a request gets.
var (
	eventsFrom = parameter{
		name: "from", kind: "integer", max: maxPosition,
		words: "The position to begin at. Where that event is not kept any more, the oldest that is comes first.",
	}
	eventsSince = parameter{
		name: "since", kind: "integer", max: rest.MaxTime,
		words: "A time, in ms since the Unix epoch: begins with the first event that was received then or later. " +
			"Not beside `from`.",
	}
	eventsLimit = parameter{name: "limit", kind: "integer", min: 1, max: 1000, fallback: 100, words: "How many events at most."}
)

// historyEventsView is a part of a topic's history. Next is the position to go on from.
type historyEventsView struct {
	First  int64             `json:"first"`
	Last   int64             `json:"last"`
	Next   int64             `json:"next"`
	Events []json.RawMessage `json:"events"`
}

// getEvents shows events of a topic's history, from a position or a time on.
func (a *API) getEvents(w http.ResponseWriter, r *http.Request) {
	q := rest.ReadQuery(r)
	from, since := eventsFrom.integer(q), q.Time(eventsSince.name)
	limit := int(eventsLimit.integer(q))
	if q.Has("from") && q.Has("since") {
		q.Refuse("the query may have from or since, not both")
	}
	err := q.Err()
	topic := rest.TopicParam(r)
	if err == nil && q.Has("since") {
		from, err = a.historyOf(topic).PositionAt(r.Context(), topic, since)
	}
	var part store.HistorySlice
	if err == nil {
		part, err = a.historyOf(topic).Read(r.Context(), topic, from, limit)
	}
	a.RespondJSON(w, r, viewHistoryEvents(part, from), err)
}

func viewHistoryEvents(part store.HistorySlice, from int64) historyEventsView {
	view := historyEventsView{
		First: part.First, Last: part.Last, Next: min(max(from, part.First), part.Last+1),
		Events: make([]json.RawMessage, len(part.Entries)),
	}
	packed := make([]string, len(part.Entries))
	for i, entry := range part.Entries {
		packed[i] = string(entry.Event)
	}
	for i, event := range wire.ShowEvents(packed) {
		entry := part.Entries[i]
		shown := strconv.AppendInt([]byte(`{"position":`), entry.Position, 10)
		shown = strconv.AppendInt(append(shown, `,"received_at":`...), entry.ReceivedAt, 10)
		view.Events[i] = append(append(shown, ','), event[1:]...)
		view.Next = entry.Position + 1
	}
	return view
}
