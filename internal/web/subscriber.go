package web

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/store/stats"
	"routemaster/internal/web/rest"
)

// subscriberHandler handles a request that is about a subscriber, by the token that holds the
// subscription.
type subscriberHandler func(w http.ResponseWriter, r *http.Request, of bus.Token)

// subscriberParam returns the client that a request is about: the one that root names in the path,
// or else the caller.
func subscriberParam(r *http.Request) bus.Token {
	return cmp.Or(bus.Token(chi.URLParam(r, "token")), rest.Caller(r).Token)
}

// ofSubscriber finds the subscriber for a handler, or responds with 404 if there is none.
func (a *API) ofSubscriber(handle subscriberHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		holder, err := a.store.Subscriber(r.Context(), subscriberParam(r))
		if err != nil {
			a.Fail(w, r, err)
			return
		}
		handle(w, r, holder)
	})
}

// getSubscriber shows what a client has set of its subscription, by the names that it sets it by,
// and how its deliveries go.
func (a *API) getSubscriber(w http.ResponseWriter, r *http.Request, of bus.Token) {
	sub, err := a.stats.Detail(r.Context(), of, a.Now())
	view := map[string]any{
		"topics": append([]bus.TopicName{}, sub.Topics...), "callback": sub.Callback, "uuid": orNull(sub.UUID),
		"timeout": sub.Timeout.Milliseconds(), "max": sub.MaxEvents, "status": viewStatus(sub),
	}
	for _, name := range bus.OptionNames() {
		view[name] = json.RawMessage(sub.Options.Options.JSON(name))
	}
	a.RespondJSON(w, r, view, err)
}

// statusView is how a subscriber's deliveries go. Times are in ms since the Unix epoch.
type statusView struct {
	Queued        int64           `json:"queued"` // events
	DeadLetters   deadLettersView `json:"dead_letters"`
	Health        int             `json:"health_points"`
	LastAttempted *int64          `json:"last_attempted_at"`
	PausedUntil   *int64          `json:"paused_until"`
	NextDelivery  *int64          `json:"next_delivery_at"`
}

type deadLettersView struct {
	Letters int64  `json:"letters"`
	Events  int64  `json:"events"`
	Bytes   int64  `json:"bytes"`
	Oldest  *int64 `json:"oldest_at"`
}

func viewStatus(sub stats.Detail) statusView {
	letters := sub.DeadLetters
	return statusView{
		Queued:        sub.Queued,
		DeadLetters:   deadLettersView{letters.Letters, letters.Events, letters.Bytes, millis(letters.OldestAt)},
		Health:        sub.Health,
		LastAttempted: millis(sub.LastAttemptedAt), PausedUntil: millis(sub.PausedUntil), NextDelivery: millis(sub.NextDeliveryAt),
	}
}

// maxPause is how far ahead a pause may end.
const maxPause = 365 * 24 * time.Hour

// pauseSubscriber has nothing be delivered until a time, or for good.
func (a *API) pauseSubscriber(w http.ResponseWriter, r *http.Request, of bus.Token) {
	until, err := a.readPause(w, r)
	if err == nil {
		err = a.store.Pause(r.Context(), of, until)
	}
	a.respondSubscriberChanged(w, r, of, err, "paused a subscriber", slog.Time("until", until.UTC()))
}

// readPause reads until when to pause.
func (a *API) readPause(w http.ResponseWriter, r *http.Request) (until time.Time, err error) {
	var sent struct {
		Until *int64 `json:"until"` // ms since the Unix epoch
	}
	if err := a.ReadOptionalJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return until, err
	}
	now := a.Now()
	switch {
	case sent.Until == nil:
		return bus.Forever, nil
	case *sent.Until <= now.UnixMilli() || *sent.Until > now.Add(maxPause).UnixMilli():
		return until, bus.Invalidf("/until", "must be a time in the next 365 days, in ms since the Unix epoch")
	}
	return time.UnixMilli(*sent.Until), nil
}

// resumeSubscriber ends a pause, if there is one.
func (a *API) resumeSubscriber(w http.ResponseWriter, r *http.Request, of bus.Token) {
	a.respondSubscriberChanged(w, r, of, a.store.Resume(r.Context(), of), "resumed a subscriber")
}

// testSubscriber has a test event be delivered.
func (a *API) testSubscriber(w http.ResponseWriter, r *http.Request, of bus.Token) {
	batch, err := a.store.TestEvent(r.Context(), of, a.Now())
	if err != nil {
		a.Fail(w, r, err)
		return
	}
	a.logSubscriberChange(r, of, "queued a test event", slog.String("batch", string(batch)))
	rest.WriteJSON(w, http.StatusAccepted, map[string]bus.BatchID{"batch": batch})
}

// logSubscriberChange logs who changed what of a subscriber, and whose it is if root did.
func (a *API) logSubscriberChange(r *http.Request, of bus.Token, what string, fields ...slog.Attr) {
	if rest.Caller(r).Root {
		fields = append(fields, slog.String("subscriber", string(a.publicName(r, of))))
	}
	a.LogChange(r, what, fields...)
}

// respondSubscriberChanged responds with 204 and logs who changed what of a subscriber, or responds
// with an error.
func (a *API) respondSubscriberChanged(
	w http.ResponseWriter, r *http.Request, of bus.Token, err error, what string, fields ...slog.Attr,
) {
	if err == nil {
		a.logSubscriberChange(r, of, what, fields...)
	}
	a.Respond(w, r, err)
}

// publicName returns the name that logs and metrics have for a client.
func (a *API) publicName(r *http.Request, token bus.Token) bus.ClientName {
	names, _ := a.Auth.ClientNames(r.Context()) // without them, of a token's form
	return bus.PublicName(token, names[token])
}

// orNull returns a value for JSON: null if it is the zero value.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
