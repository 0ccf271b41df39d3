package web

import (
	"log/slog"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/web/rest"
)

// batchView is a queued batch. Times are in ms since the Unix epoch.
type batchView struct {
	ID        bus.BatchID `json:"id"`
	CreatedAt int64       `json:"created_at"`
	Attempts  int         `json:"attempts"`
	// Events is their number in a list, and an array of them in a batch.
	Events any           `json:"events"`
	State  inspect.State `json:"state"`
	NextAt *int64        `json:"next_at"`
}

func viewBatch(batch inspect.Batch) batchView {
	return batchView{
		ID: batch.ID, CreatedAt: batch.CreatedAt.UnixMilli(), Attempts: batch.Attempts, Events: batch.Events,
		State: batch.State, NextAt: millis(batch.NextAt),
	}
}

// getBatches lists queued batches.
func (a *API) getBatches(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	page := inspect.Page{After: q.Get("after"), Limit: q.Limit()}
	if err := q.Err(); err != nil {
		a.Fail(w, r, err)
		return
	}
	batches, next, err := a.inspector.Batches(r.Context(), of, page, a.Now())
	views := make([]batchView, len(batches))
	for i, batch := range batches {
		views[i] = viewBatch(batch)
	}
	a.RespondPage(w, r, views, next, err)
}

// getBatch shows a queued batch with its events.
func (a *API) getBatch(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	from := q.From()
	if err := q.Err(); err != nil {
		a.Fail(w, r, err)
		return
	}
	batch, events, err := a.inspector.Batch(r.Context(), of, batchParam(r), from, a.Now())
	view := viewBatch(batch)
	view.Events = events
	a.RespondJSON(w, r, view, err)
}

// deleteBatch removes a queued batch, which becomes a dead letter if the subscriber keeps those.
func (a *API) deleteBatch(w http.ResponseWriter, r *http.Request, of bus.Token) {
	removed, err := a.inspector.Remove(r.Context(), of, batchParam(r), a.Now())
	if err == nil {
		name := a.publicName(r, of)
		a.config.Recorder.Removed(name, removed.Events)
		if removed.Letter {
			a.config.Recorder.DeadLettered(name, bus.DiedRemoved, removed.Events)
		}
	}
	a.respondSubscriberChanged(w, r, of, err, "removed a batch",
		slog.String("batch", string(batchParam(r))), slog.Int("events", removed.Events), slog.Bool("dead_letter", removed.Letter))
}
