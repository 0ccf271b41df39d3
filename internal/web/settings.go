package web

import (
	"encoding/json"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

// get shows a client's settings, by the names that set them, and the state of its deliveries.
func (h *subscriberHandlers) get(w http.ResponseWriter, r *http.Request) {
	of := clientParam(r)
	sub, err := h.at(of).inspector.Detail(r.Context(), of, h.Now())
	if err != nil {
		if of, err = h.named(r, err); err == nil {
			sub, err = h.at(of).inspector.Detail(r.Context(), of, h.Now())
		}
	}
	if err == nil {
		holdersOf(r).Store(of, sub.Token)
	}
	if err == nil && sub.Replays > 0 { // expired ones do not count
		var kept []store.Replay
		kept, err = h.at(of).replays.List(r.Context(), sub.Token)
		sub.Replays = int64(len(kept))
	}
	view := map[string]any{
		"topics": append([]bus.TopicName{}, sub.Topics...), "callback": sub.Callback, "uuid": rest.OrNull(sub.UUID),
		"timeout": sub.Timeout.Milliseconds(), "max": sub.MaxEvents, "status": viewStatus(sub),
	}
	for _, name := range bus.OptionNames() {
		view[name] = json.RawMessage(sub.Options.Options.JSON(name))
	}
	h.RespondJSON(w, r, view, err)
}

// subscriberStatusView is how a subscriber's deliveries go. Times are in ms since the Unix epoch.
type subscriberStatusView struct {
	// Events that are not delivered yet.
	Queued int64 `json:"queued" api:"minimum=0"`
	// The dead letters.
	DeadLetters deadLettersView `json:"dead_letters"`
	Health      int             `json:"health_points" api:"minimum=0 maximum=100"`
	// When a delivery was last tried, in ms since the Unix epoch.
	LastAttempted *int64 `json:"last_attempted_at"`
	// Until when deliveries are paused, 253402300799999 for good, in ms since the Unix epoch.
	Paused *int64 `json:"paused_until"`
	// Until when nothing is delivered because deliveries have failed, in ms since the Unix epoch.
	Throttled *int64 `json:"throttled_until"`
	// Until when nothing is delivered to keep to the pace, in ms since the Unix epoch.
	Paced *int64 `json:"paced_until"`
	// When something is due next, in ms since the Unix epoch.
	NextDelivery *int64 `json:"next_delivery_at"`
	// The part of the gap notice that no attempt has sent yet.
	Gap *gapView `json:"gap"`
	// With strict_order, lanes that a batch that failed holds up until its next attempt succeeds, or
	// it is given up.
	Blocked int `json:"blocked" api:"minimum=0"`
	// Replays that run, or ended within the last day.
	Replays int64 `json:"replays" api:"minimum=0"`
	// Whether it has signing secrets.
	Signed bool `json:"signed"`
}

type deadLettersView struct {
	Letters int64 `json:"letters" api:"minimum=0"`
	Events  int64 `json:"events" api:"minimum=0"`
	// As stored.
	Bytes int64 `json:"bytes" api:"minimum=0"`
	// When the oldest was put away, in ms since the Unix epoch.
	Oldest *int64 `json:"oldest_at"`
}

// gapView is a waiting gap notice.
type gapView struct {
	Events int64 `json:"events" api:"minimum=1"`
	// How many batches and dead letters they were in; events of a replay that its history has lost
	// were in none.
	Batches int64 `json:"batches" api:"minimum=0"`
	// When the first of these was created, in ms since the Unix epoch.
	Since int64 `json:"since"`
	// When the last of these was created, in ms since the Unix epoch.
	Until int64 `json:"until"`
	// Why the last of them were lost: Redis filled up; they were older, or more, than the subscriber
	// keeps; dead letters were too many or too old; the history of a topic had dropped them before a
	// replay; the batch was removed; a receipt rejected them.
	Reason bus.LossReason `json:"reason" api:"enum=autodrop|retention|dead_letters|history|removed|rejected"`
}

func viewGap(gap *inspect.Gap) *gapView {
	if gap == nil {
		return nil
	}
	return &gapView{gap.Events, gap.Batches, gap.Since.UnixMilli(), gap.Until.UnixMilli(), gap.Reason}
}

func viewStatus(sub inspect.Detail) subscriberStatusView {
	letters := sub.DeadLetters
	return subscriberStatusView{
		Queued:        sub.Queued,
		DeadLetters:   deadLettersView{letters.Letters, letters.Events, letters.Bytes, rest.Millis(letters.OldestAt)},
		Health:        sub.Health,
		LastAttempted: rest.Millis(sub.LastAttemptedAt), NextDelivery: rest.Millis(sub.NextDeliveryAt),
		Paused: rest.Millis(sub.Holds.Paused), Throttled: rest.Millis(sub.Holds.Throttled), Paced: rest.Millis(sub.Holds.Paced),
		Gap: viewGap(sub.Gap), Blocked: sub.Blocked, Replays: sub.Replays, Signed: sub.Options.Secrets != "",
	}
}
