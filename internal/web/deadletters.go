package web

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// letterFilter says which dead letters a request is about.
var letterFilter = []parameter{
	{
		name: "reason", enum: texts(bus.DeathReasons),
		words: "Only those with this reason.",
	},
	{
		name: "status", kind: "integer", max: maxStatus,
		words: "Only those whose last attempt was answered with this status. 0: those that got no answer.",
	},
	{
		name: "since", kind: "integer", max: rest.MaxTime,
		words: "Only those put away at this time or later, in ms since the Unix epoch.",
	},
	{
		name: "before", kind: "integer", max: rest.MaxTime,
		words: "Only those put away before this time, in ms since the Unix epoch.",
	},
}

// letterOperations are the operations on dead letters.
func (h *subscriberHandlers) letterOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/subscriber/dead_letters", handle: h.ofSubscriber(h.getDeadLetters), who: clientsOnly,
			id: "listDeadLetters", tag: "subscribers",
			summary: "List the dead letters",
			params:  slices.Concat(letterFilter, []parameter{pageLimit, pageAfter}),
			returns: pages("The dead letters, newest first.", []letterView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/subscriber/dead_letters/count", handle: h.ofSubscriber(h.countDeadLetters), who: clientsOnly,
			id: "countDeadLetters", tag: "subscribers",
			summary: "Count the dead letters",
			params:  letterFilter,
			returns: returns(http.StatusOK, "How many there are. With a `reason` or a `status`, the 10,000 oldest are looked at.", letterCountView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodGet, path: "/subscriber/dead_letters/{id}", handle: h.ofSubscriber(h.getDeadLetter), who: clientsOnly,
			id: "getDeadLetter", tag: "subscribers",
			summary: "Show a dead letter with its events",
			params: []parameter{
				{name: "id", in: "path", words: "The dead letter."},
				eventsSkipped,
			},
			returns: returns(http.StatusOK, "The dead letter.", letterWithEventsView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodDelete, path: "/subscriber/dead_letters/{id}", handle: h.ofSubscriber(h.deleteDeadLetter), who: clientsOnly,
			id: "discardDeadLetter", tag: "subscribers",
			summary: "Discard a dead letter",
			params:  []parameter{{name: "id", in: "path", words: "The dead letter."}},
			returns: returns(http.StatusNoContent, "It is gone.", nil),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/dead_letters/{id}/redeliver", handle: h.ofSubscriber(h.withoutBody(h.redeliverDeadLetter)), who: clientsOnly,
			id: "redeliverDeadLetter", tag: "subscribers",
			summary: "Redeliver a dead letter",
			params:  []parameter{{name: "id", in: "path", words: "The dead letter."}},
			returns: returns(http.StatusNoContent, "It is queued, behind what waits already.", nil),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/dead_letters/redeliver", handle: h.ofSubscriber(h.redeliverDeadLetters), who: clientsOnly,
			id: "redeliverDeadLetters", tag: "subscribers",
			summary: "Redeliver dead letters",
			about: "A request moves at most 100 letters, or 10,000 events, oldest first. Send it again while " +
				"`remaining` is above 0.",
			body: &body{
				of:      sentSelection{},
				example: `{"all":true,"reason":"refused","since":1795302000000}`,
			},
			returns: returns(http.StatusOK, "How many are queued now, and how many are left.", movedView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/dead_letters/discard", handle: h.ofSubscriber(h.discardDeadLetters), who: clientsOnly,
			id: "discardDeadLetters", tag: "subscribers",
			summary: "Discard dead letters",
			about: "A request moves at most 100 letters, or 10,000 events, oldest first. Send it again while " +
				"`remaining` is above 0.",
			body:    &body{of: sentSelection{}, example: `{"all":true}`},
			returns: returns(http.StatusOK, "How many are gone, and how many are left.", movedView{}),
			fails:   []problem{notFound},
		},
	}
}

// letterView is a dead letter. Times are in ms since the Unix epoch.
type letterView struct {
	ID bus.BatchID `json:"id"`
	// When it was put away, in ms since the Unix epoch.
	DiedAt int64 `json:"died_at"`
	// When its first event came, in ms since the Unix epoch.
	CreatedAt int64 `json:"created_at"`
	// `attempts`: refused as often as `dead_letters` allows; `age`: too old at a failed attempt;
	// `refused`: refused for good; `rejected`: by a receipt; `removed`: by a request.
	Reason bus.DeathReason `json:"reason" api:"enum=attempts|age|refused|rejected|removed"`
	// Of the last response.
	Status *int `json:"status"`
	// Of the last attempt.
	Error *string `json:"error"`
	// The receipt's note on it.
	Note     *string `json:"note"`
	Attempts int     `json:"attempts" api:"minimum=0"`
	Events   int     `json:"events" api:"minimum=0"`
	// As stored.
	Bytes int `json:"bytes" api:"minimum=0"`
	// The `webhook-id` of its deliveries.
	WebhookID *string `json:"webhook_id"`
}

// letterWithEventsView has the events in place of their number.
type letterWithEventsView struct {
	letterView
	// Up to 1,000 of the events, as delivered. One that cannot be read is `{"unreadable":true}`.
	Events []json.RawMessage `json:"events" api:"items.type=object items.additionalProperties=true"`
}

func viewLetter(letter store.Letter) letterView {
	return letterView{
		ID: letter.ID, DiedAt: letter.DiedAt.UnixMilli(), CreatedAt: letter.CreatedAt.UnixMilli(),
		Reason: letter.Reason, Status: rest.OrNull(letter.Status), Error: rest.OrNull(letter.Error), Note: rest.OrNull(letter.Note),
		Attempts: letter.Attempts, Events: letter.Events, Bytes: letter.Bytes, WebhookID: rest.OrNull(letter.WebhookID),
	}
}

// getDeadLetters lists dead letters.
func (h *subscriberHandlers) getDeadLetters(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	filter := readFilter(q)
	page := store.LetterPage{After: q.Get("after"), Limit: q.Limit()}
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	letters, next, err := h.at(of).letters.List(r.Context(), of, filter, page)
	views := make([]letterView, len(letters))
	for i, letter := range letters {
		views[i] = viewLetter(letter)
	}
	h.RespondPage(w, r, views, next, err)
}

// readFilter reads which dead letters a query is about.
func readFilter(q *rest.Query) store.LetterFilter {
	filter := store.LetterFilter{
		Reason: rest.Word(q, "reason", bus.DeathReasons), Since: q.Time("since"), Before: q.Time("before"),
	}
	if q.Has("status") {
		filter.Status = filterStatus(q.Integer("status", 0, maxStatus, 0))
	}
	return filter
}

// maxStatus is the highest status of HTTP that an endpoint may answer.
const maxStatus = 999

// filterStatus is the status of a filter that a request sends: 0 stands for no answer.
func filterStatus(sent int64) int {
	if sent == 0 {
		return store.NoAnswer
	}
	return int(sent)
}

// letterCountView is how many dead letters there are.
type letterCountView struct {
	Letters int `json:"letters" api:"minimum=0"`
	// Whether there are letters that were not looked at.
	More bool `json:"more"`
}

// countDeadLetters says how many dead letters there are.
func (h *subscriberHandlers) countDeadLetters(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	filter := readFilter(q)
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	var view letterCountView
	var err error
	view.Letters, view.More, err = h.at(of).letters.Count(r.Context(), of, filter)
	h.RespondJSON(w, r, view, err)
}

// getDeadLetter shows a dead letter with its events.
func (h *subscriberHandlers) getDeadLetter(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	from := q.From()
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	letter, events, err := h.at(of).letters.Show(r.Context(), of, batchParam(r), from)
	h.RespondJSON(w, r, letterWithEventsView{viewLetter(letter), append([]json.RawMessage{}, events...)}, err) // never null
}

// redeliver is [store.Letters.Redeliver], logged and counted.
func (h *subscriberHandlers) redeliver(r *http.Request, of bus.Token, which store.LetterSelection) (store.MovedLetters, error) {
	moved, err := h.at(of).letters.Redeliver(r.Context(), of, which)
	if err == nil && moved.Letters > 0 {
		h.config.Recorder.Count(telemetry.RedeliveredEvents, moved.Events, string(h.publicName(r, of)))
		h.logMoved(r, of, "redelivered dead letters", moved)
	}
	return moved, err
}

// discard is [store.Letters.Discard], logged.
func (h *subscriberHandlers) discard(r *http.Request, of bus.Token, which store.LetterSelection) (store.MovedLetters, error) {
	moved, err := h.at(of).letters.Discard(r.Context(), of, which)
	if err == nil && moved.Letters > 0 {
		h.logMoved(r, of, "discarded dead letters", moved)
	}
	return moved, err
}

func (h *subscriberHandlers) logMoved(r *http.Request, of bus.Token, what string, moved store.MovedLetters) {
	h.logSubscriberChange(r, of, what, slog.Int("letters", moved.Letters), slog.Int("events", moved.Events))
}

// redeliverDeadLetter puts one dead letter back into the queue.
func (h *subscriberHandlers) redeliverDeadLetter(w http.ResponseWriter, r *http.Request, of bus.Token) {
	h.moveOne(w, r, of, h.redeliver)
}

// deleteDeadLetter removes one dead letter.
func (h *subscriberHandlers) deleteDeadLetter(w http.ResponseWriter, r *http.Request, of bus.Token) {
	h.moveOne(w, r, of, h.discard)
}

// redeliverDeadLetters puts some dead letters back into the queue.
func (h *subscriberHandlers) redeliverDeadLetters(w http.ResponseWriter, r *http.Request, of bus.Token) {
	h.moveSome(w, r, of, h.redeliver)
}

// discardDeadLetters removes some dead letters.
func (h *subscriberHandlers) discardDeadLetters(w http.ResponseWriter, r *http.Request, of bus.Token) {
	h.moveSome(w, r, of, h.discard)
}

// move is [subscriberHandlers.redeliver] or [subscriberHandlers.discard].
type move func(*http.Request, bus.Token, store.LetterSelection) (store.MovedLetters, error)

func (h *subscriberHandlers) moveOne(w http.ResponseWriter, r *http.Request, of bus.Token, move move) {
	moved, err := move(r, of, store.LetterSelection{IDs: []bus.BatchID{batchParam(r)}})
	if err == nil && moved.Letters == 0 {
		err = store.ErrLetterUnknown
	}
	h.Respond(w, r, err)
}

func (h *subscriberHandlers) moveSome(w http.ResponseWriter, r *http.Request, of bus.Token, move move) {
	var moved store.MovedLetters
	which, err := h.readSelection(w, r)
	if err == nil {
		moved, err = move(r, of, which)
	}
	h.RespondJSON(w, r, movedView(moved), err)
}

// movedView is how many dead letters a request has moved.
type movedView struct {
	// How many this request moved.
	Letters int `json:"letters" api:"minimum=0"`
	Events  int `json:"events" api:"minimum=0"`
	// How many are left; send the request again while there are any.
	Remaining int `json:"remaining" api:"minimum=0"`
}

// sentSelection is which dead letters are meant: either some, or all that match the rest.
type sentSelection struct {
	IDs *[]bus.BatchID `json:"ids" api:"minItems=1 maxItems=100"`
	// True for all that match the rest.
	All    *bool            `json:"all"`
	Reason *bus.DeathReason `json:"reason" api:"enum=attempts|age|refused|rejected|removed"`
	// Only letters whose last attempt was answered with this status. 0: letters without an answer.
	Status *int64 `json:"status" api:"minimum=0 maximum=999"`
	// Only those put away at this time or later, in ms since the Unix epoch.
	Since *int64 `json:"since" api:"format=int64"`
	// Only those put away before this time, in ms since the Unix epoch.
	Before *int64 `json:"before" api:"format=int64"`
}

// readSelection reads which dead letters are meant: some, or all that match a filter.
func (h *subscriberHandlers) readSelection(w http.ResponseWriter, r *http.Request) (which store.LetterSelection, err error) {
	var sent sentSelection
	if err := h.ReadJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return which, err
	}
	all := sent.All != nil && *sent.All
	switch {
	case all == (sent.IDs != nil):
		return which, bus.Invalidf("", `send either {"ids":[…]} or {"all":true}`)
	case !all && (len(*sent.IDs) == 0 || len(*sent.IDs) > store.MaxMovedLetters):
		return which, bus.Invalidf("/ids", "must be 1 to %d dead letters", store.MaxMovedLetters)
	case !all && (sent.Reason != nil || sent.Status != nil || sent.Since != nil || sent.Before != nil):
		return which, bus.Invalidf("/ids", "must be alone: reason, status, since and before are for all")
	case !all:
		return store.LetterSelection{IDs: *sent.IDs}, nil
	}
	if sent.Reason != nil {
		if which.Reason, err = bus.ParseDeathReason(string(*sent.Reason)); err != nil {
			return which, bus.At("/reason", err)
		}
	}
	if sent.Status != nil {
		if *sent.Status < 0 || *sent.Status > maxStatus {
			return which, bus.Invalidf("/status", "must be the status of an answer, at most %d, or 0 for no answer", maxStatus)
		}
		which.Status = filterStatus(*sent.Status)
	}
	if which.Since, err = rest.ReadTime("/since", sent.Since); err == nil {
		which.Before, err = rest.ReadTime("/before", sent.Before)
	}
	return which, err
}

// batchParam returns the batch in a request's path. A dead letter is named like the batch it was.
func batchParam(r *http.Request) bus.BatchID { return bus.BatchID(chi.URLParam(r, "id")) }
