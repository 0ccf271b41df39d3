package web

import (
	"log/slog"
	"net/http"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

var (
	testWaits = problem{
		http.StatusConflict,
		"A test event is already waiting.",
		"TestWaits",
	}
)

// maxPause is how far ahead a pause may end.
const maxPause = 365 * 24 * time.Hour

// pause stops a subscriber's deliveries until a time, or for good.
func (h *subscriberHandlers) pause(w http.ResponseWriter, r *http.Request, of bus.Token) {
	until, err := h.readPause(w, r)
	if err == nil {
		err = h.at(of).store.Pause(r.Context(), of, until)
	}
	h.respondSubscriberChanged(w, r, of, err, "paused a subscriber", slog.Time("until", until.UTC()))
}

// sentPause is how long nothing is to be delivered.
type sentPause struct {
	// Until when, in ms since the Unix epoch: in the future, and at most a year ahead. For good if left
	// out or null.
	Until *int64 `json:"until" api:"format=int64"`
}

// testView is a test event that was queued.
type testView struct {
	// The batch that the attempt log names.
	Batch bus.BatchID `json:"batch"`
}

// readPause reads until when to pause.
func (h *subscriberHandlers) readPause(w http.ResponseWriter, r *http.Request) (until time.Time, err error) {
	var sent sentPause
	if err := h.ReadOptionalJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return until, err
	}
	now := h.Now()
	switch {
	case sent.Until == nil:
		return bus.Forever, nil
	case *sent.Until <= now.UnixMilli() || *sent.Until > now.Add(maxPause).UnixMilli():
		return until, bus.Invalidf("/until", "must be a time in the next 365 days, in ms since the Unix epoch")
	}
	return time.UnixMilli(*sent.Until), nil
}

// resume ends a pause, if there is one.
func (h *subscriberHandlers) resume(w http.ResponseWriter, r *http.Request, of bus.Token) {
	h.respondSubscriberChanged(w, r, of, h.at(of).store.Resume(r.Context(), of), "resumed a subscriber")
}

// retry ends the throttling of a subscriber whose deliveries fail, so that it is tried at once.
func (h *subscriberHandlers) retry(w http.ResponseWriter, r *http.Request, of bus.Token) {
	h.respondSubscriberChanged(w, r, of, store.EndThrottle(r.Context(), h.at(of).store, of), "retried a subscriber")
}

// test queues a test event.
func (h *subscriberHandlers) test(w http.ResponseWriter, r *http.Request, of bus.Token) {
	batch, err := store.QueueTestEvent(r.Context(), h.at(of).store, of, h.Now())
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	h.logSubscriberChange(r, of, "queued a test event", slog.String("batch", string(batch)))
	rest.WriteJSON(w, http.StatusAccepted, testView{batch})
}
