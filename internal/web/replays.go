package web

import (
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

var (
	replayKey = parameter{
		name: "Idempotency-Key", in: "header", key: true, component: "HistoryReplayKey",
		words: "With the same key, the same client gets the same replay again, while it is listed. 409 if that " +
			"was begun for another topic or range.",
	}
	replayRefused = problem{
		http.StatusConflict,
		"The client is not subscribed to the topic, the topic keeps no history, nothing of it is in the " +
			"range, a replay of it is running, or the idempotency key is of another replay.",
		"ReplayRefused",
	}
)

// replayOperations are the operations on replays of topics' histories to a subscriber.
func (h *subscriberHandlers) replayOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/subscriber/replays", handle: h.ofSubscriber(h.getReplays), who: clientsOnly,
			id: "listReplays", tag: "subscribers",
			summary: "List the replays",
			params:  []parameter{pageLimitOrAll, pageAfter},
			returns: pages("The replays that run, and those that ended in the last day, newest first; the last 100 at most.", listOf{of: replayView{}, max: store.MaxReplaysKept}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/replays", handle: h.ofSubscriber(h.postReplay), who: clientsOnly,
			id: "startReplay", tag: "subscribers",
			summary: "Have a topic's history delivered again",
			params:  []parameter{replayKey},
			body:    &body{of: sentReplay{}, example: `{"topic":"widgets","from":501}`},
			returns: returns(http.StatusAccepted, "It is being copied to the queue. Positions are resolved: `from` is the first event that "+
				"the history has, `to` at most its newest.", begunReplayView{}),
			fails: []problem{notFound, replayRefused},
		},
		{
			method: http.MethodDelete, path: "/subscriber/replays/{id}", handle: h.ofSubscriber(h.deleteReplay), who: clientsOnly,
			id: "cancelReplay", tag: "subscribers",
			summary: "Cancel a replay",
			params:  []parameter{{name: "id", in: "path", words: "The replay."}},
			returns: returns(http.StatusNoContent, "No more is copied. What was copied is delivered.", nil),
			fails:   []problem{notFound},
		},
	}
}

// replayView is a replay. Positions are positions of its topic's events; times are in ms since the
// Unix epoch.
type replayView struct {
	ID    bus.ReplayID  `json:"id"`
	Topic bus.TopicName `json:"topic" api:"ref=TopicName"`
	// The position of the first event.
	From int64 `json:"from" api:"minimum=1"`
	// The position of the last event.
	To int64 `json:"to" api:"minimum=1"`
	// The position of the next event to copy.
	Next int64 `json:"next" api:"minimum=1"`
	// How many events were put into the queue.
	Copied int64 `json:"copied" api:"minimum=0"`
	// How many events the history had lost before their turn came.
	Skipped int64 `json:"skipped" api:"minimum=0"`
	// `running` copies; `done` has copied all, though some may still be in the queue.
	State store.ReplayState `json:"state" api:"enum=running|done|cancelled|failed"`
	// In ms since the Unix epoch.
	CreatedAt int64 `json:"created_at"`
	// Why it ended before it was done, unless a request cancelled it.
	Error *string `json:"error"`
}

// begunReplayView is a replay that begins.
type begunReplayView struct {
	ID    bus.ReplayID  `json:"id"`
	Topic bus.TopicName `json:"topic" api:"ref=TopicName"`
	// The position of the first event.
	From int64 `json:"from" api:"minimum=1"`
	// The position of the last event.
	To int64 `json:"to" api:"minimum=1"`
	// How many events there are.
	Events int64 `json:"events" api:"minimum=1"`
}

// getReplays lists replays.
func (h *subscriberHandlers) getReplays(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	part := q.PartOfAll()
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	all, err := h.at(of).replays.List(r.Context(), of)
	all, next := rest.Take(part, all, func(one store.Replay) (int64, string) { return one.CreatedAt.UnixMilli(), string(one.ID) })
	views := make([]replayView, len(all))
	for i, one := range all {
		views[i] = replayView{
			one.ID, one.Topic, one.From(), one.To, one.Next, one.Copied, one.Skipped, one.State,
			one.CreatedAt.UnixMilli(), rest.OrNull(one.Error),
		}
	}
	h.RespondPage(w, r, views, next, err)
}

// postReplay begins a replay, or shows the one that an earlier request of the client has begun with
// the same idempotency key.
func (h *subscriberHandlers) postReplay(w http.ResponseWriter, r *http.Request, of bus.Token) {
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	topic, which, err := h.readReplay(w, r)
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	var begun store.Replay
	replays, isNew := h.at(of).replays, true
	if key == "" {
		begun, err = replays.Start(r.Context(), of, topic, which, h.Now())
	} else {
		id := store.ReplayIDFor(rest.Caller(r).PublicName(), of, key)
		begun, isNew, err = replays.StartOnce(r.Context(), id, of, topic, which, h.Now())
	}
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	events := begun.To - begun.From() + 1
	if isNew {
		h.logSubscriberChange(r, of, "a replay began", slog.String("replay", string(begun.ID)), slog.String("topic", string(topic)),
			slog.Int64("from", begun.From()), slog.Int64("to", begun.To), slog.Int64("events", events))
	}
	rest.WriteJSON(w, http.StatusAccepted, begunReplayView{begun.ID, topic, begun.From(), begun.To, events})
}

// sentReplay is the body of a request for a replay.
type sentReplay struct {
	Topic bus.TopicName `json:"topic" api:"required ref=TopicName"`
	// The position of the first event: 1 is the first that the topic ever received. By default, it is
	// the oldest that is kept.
	From *int64 `json:"from" api:"minimum=1"`
	// Instead of `from`: when the first event was received, in ms since the Unix epoch, or later.
	Since *int64 `json:"since" api:"minimum=0 maximum=253402300799999"`
	// The position of the last event. By default, it is the newest.
	To *int64 `json:"to" api:"minimum=1"`
	// Instead of `to`: when the last event was received, in ms since the Unix epoch, or before.
	Until *int64 `json:"until" api:"minimum=0 maximum=253402300799999"`
}

// readReplay reads the topic and the range of a requested replay.
func (h *subscriberHandlers) readReplay(w http.ResponseWriter, r *http.Request) (topic bus.TopicName, which store.ReplayRange, err error) {
	var sent sentReplay
	if err := h.ReadJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return "", which, err
	}
	switch {
	case sent.Topic == "":
		return "", which, bus.Invalidf("/topic", "is required: a topic that keeps a history")
	case sent.From != nil && sent.Since != nil:
		return "", which, bus.Invalidf("", "send either from, the position of the first event, or since, when it was received")
	case sent.To != nil && sent.Until != nil:
		return "", which, bus.Invalidf("", "send either to, the position of the last event, or until, when it was received")
	}
	if which.From, err = readPosition("/from", sent.From); err == nil {
		which.To, err = readPosition("/to", sent.To)
	}
	if err == nil {
		which.Since, err = rest.ReadTime("/since", sent.Since)
	}
	if err == nil {
		which.Until, err = rest.ReadTime("/until", sent.Until)
	}
	return sent.Topic, which, err
}

// readPosition reads a position of an event, 0 if there is none.
func readPosition(pointer string, position *int64) (int64, error) {
	switch {
	case position == nil:
		return 0, nil
	case *position < 1:
		return 0, bus.Invalidf(pointer, "must be a position of the topic's events, which begin with 1")
	}
	return *position, nil
}

// deleteReplay ends a replay.
func (h *subscriberHandlers) deleteReplay(w http.ResponseWriter, r *http.Request, of bus.Token) {
	id := bus.ReplayID(chi.URLParam(r, "id"))
	ran, err := h.at(of).replays.Cancel(r.Context(), of, id)
	if err == nil && ran {
		h.logSubscriberChange(r, of, "a replay ended", slog.String("replay", string(id)), slog.String("state", string(store.ReplayCancelled)))
	}
	h.Respond(w, r, err)
}
