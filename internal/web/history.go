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

// putHistory has a topic of the caller, or any if the caller is root, keep a history.
func (a *API) putHistory(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	var sent struct {
		Events *int64 `json:"events"`
		Age    *int64 `json:"age"` // ms
		Bytes  *int64 `json:"bytes"`
	}
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

// historyView is what a topic's history keeps. Durations are in ms, times in ms since the Unix
// epoch; a limit that it does not have is null.
type historyView struct {
	Events       *int64 `json:"events"`
	Age          *int64 `json:"age"`
	Bytes        *int64 `json:"bytes"`
	First        int64  `json:"first"`
	Last         int64  `json:"last"`
	OldestAt     *int64 `json:"oldest_at"`
	StoredEvents int64  `json:"stored_events"`
	StoredBytes  int64  `json:"stored_bytes"`
}

// getHistory shows what a topic's history keeps.
func (a *API) getHistory(w http.ResponseWriter, r *http.Request) {
	topic := rest.TopicParam(r)
	h, err := a.historyOf(topic).Get(r.Context(), topic)
	a.RespondJSON(w, r, historyView{
		Events: rest.OrNull(h.Limits.Events), Age: rest.OrNull(h.Limits.Age.Milliseconds()), Bytes: rest.OrNull(h.Limits.Bytes),
		First: h.First, Last: h.Last, OldestAt: rest.Millis(h.OldestAt), StoredEvents: h.Events, StoredBytes: h.Bytes,
	}, err)
}

// How many events one request for some of a history gets, if it does not say, and at most.
const (
	defaultHistoryEvents = 100
	maxHistoryEvents     = 1000
)

// maxPosition bounds positions, so that each is exact in every client's JSON.
const maxPosition = 1<<53 - 1

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
	from, since := q.Integer("from", 0, maxPosition, 0), q.Time("since")
	limit := int(q.Integer("limit", 1, maxHistoryEvents, defaultHistoryEvents))
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
