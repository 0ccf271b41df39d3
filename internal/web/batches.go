package web

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

var (
	inDelivery = problem{
		http.StatusConflict,
		"The batch is being delivered.",
		"InDelivery",
	}
)

// eventsSkipped is where the events of a batch or a dead letter begin: see [rest.Query.From].
var eventsSkipped = parameter{
	name: "from", kind: "integer", fallback: 0,
	words: "How many of the events are skipped; at most 1,000 are returned, and some 4 MiB.",
}

// batchOperations are the operations on queued batches.
func (h *subscriberHandlers) batchOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/subscriber/batches", handle: h.ofSubscriber(h.getBatches), who: clientsOnly,
			id: "listBatches", tag: "subscribers",
			summary: "List the queued batches",
			params:  []parameter{pageLimit, pageAfter},
			returns: pages("The batches, oldest first: at least those among the 20,000 oldest of the bus.", []batchView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/subscriber/batches/{id}", handle: h.ofSubscriber(h.getBatch), who: clientsOnly,
			id: "getBatch", tag: "subscribers",
			summary: "Show a queued batch with its events",
			params: []parameter{
				{name: "id", in: "path", words: "The batch."},
				eventsSkipped,
			},
			returns: returns(http.StatusOK, "The batch.", batchWithEventsView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodDelete, path: "/subscriber/batches/{id}", handle: h.ofSubscriber(h.deleteBatch), who: clientsOnly,
			id: "deleteBatch", tag: "subscribers",
			summary: "Remove a queued batch",
			params:  []parameter{{name: "id", in: "path", words: "The batch."}},
			returns: returns(http.StatusNoContent, "It became a dead letter if there are to be any; otherwise it was dropped.", nil),
			fails:   []problem{notFound, inDelivery},
		},
	}
}

// batchView is a queued batch. Times are in ms since the Unix epoch.
type batchView struct {
	ID bus.BatchID `json:"id"`
	// When its first event came, in ms since the Unix epoch.
	CreatedAt int64 `json:"created_at"`
	Attempts  int   `json:"attempts" api:"minimum=0"`
	Events    int   `json:"events" api:"minimum=0"`
	// `current` takes in events; `waiting` is ready; `delivering` is being delivered; `retrying` was
	// tried and failed.
	State inspect.State `json:"state" api:"enum=current|waiting|delivering|retrying"`
	// When it is due, in ms since the Unix epoch.
	NextAt *int64 `json:"next_at"`
	// The lane that it is in; 0 if the subscriber has one. A lane from before a change of them is
	// another, though it may have the same number.
	Lane int `json:"lane" api:"minimum=0 maximum=63"`
	// The replay that it is of.
	Replay *bus.ReplayID `json:"replay"`
}

// batchWithEventsView has the events in place of their number.
type batchWithEventsView struct {
	batchView
	// Up to 1,000 of the events, as delivered. One that cannot be read is `{"unreadable":true}`.
	Events []json.RawMessage `json:"events" api:"items.type=object items.additionalProperties=true"`
}

func viewBatch(batch inspect.Batch) batchView {
	return batchView{
		ID: batch.ID, CreatedAt: batch.CreatedAt.UnixMilli(), Attempts: batch.Attempts, Events: batch.Events,
		State: batch.State, NextAt: rest.Millis(batch.NextAt), Lane: batch.Lane, Replay: rest.OrNull(batch.Replay),
	}
}

// getBatches lists queued batches.
func (h *subscriberHandlers) getBatches(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	page := inspect.Page{After: q.Get("after"), Limit: q.Limit()}
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	batches, next, err := h.at(of).inspector.Batches(r.Context(), of, page, h.Now())
	views := make([]batchView, len(batches))
	for i, batch := range batches {
		views[i] = viewBatch(batch)
	}
	h.RespondPage(w, r, views, next, err)
}

// getBatch shows a queued batch with its events.
func (h *subscriberHandlers) getBatch(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	from := q.From()
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	batch, events, err := h.at(of).inspector.Batch(r.Context(), of, batchParam(r), from, h.Now())
	h.RespondJSON(w, r, batchWithEventsView{viewBatch(batch), events}, err)
}

// deleteBatch removes a queued batch, which becomes a dead letter if the subscriber keeps dead
// letters.
func (h *subscriberHandlers) deleteBatch(w http.ResponseWriter, r *http.Request, of bus.Token) {
	removed, err := h.at(of).inspector.Remove(r.Context(), of, batchParam(r), h.Now())
	if err == nil {
		name := string(h.publicName(r, of))
		h.config.Recorder.Count(telemetry.RemovedEvents, removed.Events, name)
		if removed.Letter {
			h.config.Recorder.Count(telemetry.DeadLetterEvents, removed.Events, name, string(bus.DiedRemoved))
		}
		h.config.Recorder.Count(telemetry.LostEvents, removed.Lost, name, string(bus.LostRemoved))
	}
	h.respondSubscriberChanged(w, r, of, err, "removed a batch",
		slog.String("batch", string(batchParam(r))), slog.Int("events", removed.Events), slog.Bool("dead_letter", removed.Letter))
}
