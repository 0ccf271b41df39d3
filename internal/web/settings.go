package web

import (
	"encoding/json"
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

// get shows what a client has set of its subscription, by the names that it sets it by, and how its
// deliveries go.
func (h *subscriberHandlers) get(w http.ResponseWriter, r *http.Request) {
	of := clientParam(r)
	sub, err := h.at(of).inspector.Detail(r.Context(), of, h.Now())
	if err != nil {
		if of, err = h.named(r, err); err == nil {
			sub, err = h.at(of).inspector.Detail(r.Context(), of, h.Now())
		}
	}
	if err == nil && sub.Replays > 0 { // those that have expired do not count
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
	Queued        int64           `json:"queued"` // events
	DeadLetters   deadLettersView `json:"dead_letters"`
	Health        int             `json:"health_points"`
	LastAttempted *int64          `json:"last_attempted_at"`
	Paused        *int64          `json:"paused_until"`
	Throttled     *int64          `json:"throttled_until"`
	Paced         *int64          `json:"paced_until"`
	NextDelivery  *int64          `json:"next_delivery_at"`
	Gap           *gapView        `json:"gap"`
	Blocked       int             `json:"blocked"` // lanes
	Replays       int64           `json:"replays"`
	Signed        bool            `json:"signed"` // also if all secrets have expired
}

type deadLettersView struct {
	Letters int64  `json:"letters"`
	Events  int64  `json:"events"`
	Bytes   int64  `json:"bytes"`
	Oldest  *int64 `json:"oldest_at"`
}

// gapView is what a gap notice that waits will tell.
type gapView struct {
	Events  int64          `json:"events"`
	Batches int64          `json:"batches"`
	Since   int64          `json:"since"`
	Until   int64          `json:"until"`
	Reason  bus.LossReason `json:"reason"`
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
