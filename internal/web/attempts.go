package web

import (
	"net/http"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/web/rest"
	"routemaster/internal/wire"
)

// attemptOperations are about how deliveries go.
func (h *subscriberHandlers) attemptOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/subscriber/attempts", handle: h.ofSubscriber(h.getAttempts), who: clientsOnly,
			id: "listAttempts", tag: "subscribers",
			summary: "List the last attempts to deliver",
			params: []parameter{
				{name: "batch", words: "Only attempts of this batch."},
				{
					name: "outcome", enum: texts(bus.Outcomes),
					words: "Only those that came to this.",
				},
				pageLimit,
				pageAfter,
			},
			returns: pages("The attempts, newest first.", []attemptView{}),
			fails:   []problem{notFound},
		},
	}
}

// attemptView is an attempt to deliver. Times are in ms since the Unix epoch.
type attemptView struct {
	// When it began, in ms since the Unix epoch.
	At    int64       `json:"at"`
	Batch bus.BatchID `json:"batch"`
	// Counts the batch's attempts from 1.
	Attempt int `json:"attempt" api:"minimum=1"`
	// How many were sent.
	Events  int         `json:"events" api:"minimum=0"`
	Outcome bus.Outcome `json:"outcome" api:"enum=acknowledged|partial|failed|dead"`
	// The response's; null if there was none.
	Status *int `json:"status"`
	// Why there was no response: `dns`, `refused`, `unreachable`, `timeout`, `connect_timeout`,
	// `tls`, `reset`, `protocol`, `denied` or `secrets`. Beside a status: `receipt`. Of an address
	// that is not public, clients see `unreachable` for all failures to connect.
	Error *string `json:"error"`
	// In ms; 0 to clients if an address that is not public gave no answer.
	Duration int64 `json:"duration" api:"minimum=0"`
	// When the rest may be sent again, in ms since the Unix epoch.
	RetryAt *int64 `json:"retry_at"`
	// The beginning of the response's body; null for clients if the address is not public.
	Excerpt *string `json:"excerpt"`

	// The delivery's `webhook-id`; null if it was not signed.
	WebhookID *string `json:"webhook_id"`
	// The replay that the batch is of.
	Replay *bus.ReplayID `json:"replay"`
	// Whether it was a test event.
	Test bool `json:"test"`
	// The error's text: for the operator, and of a receipt that cannot be read also for the client.
	Detail string `json:"detail,omitempty"`
	receiptView
}

// receiptView counts the events by their results; it is left out unless they differ.
type receiptView struct {
	// Events acknowledged, where that is not all or none. Left out if 0, as are the next two.
	Acknowledged int `json:"acknowledged,omitempty" api:"minimum=1"`
	Retried      int `json:"retried,omitempty" api:"minimum=1"`
	Rejected     int `json:"rejected,omitempty" api:"minimum=1"`
}

func viewAttempt(r wire.AttemptRecord) attemptView {
	return attemptView{
		At: r.At.UnixMilli(), Batch: r.Batch, Attempt: r.Attempt, Events: r.Events, Outcome: r.Outcome,
		Status: rest.OrNull(r.Status), Error: rest.OrNull(r.Error), Duration: r.Duration.Milliseconds(), RetryAt: rest.Millis(r.RetryAt),
		Excerpt: rest.OrNull(r.Excerpt), WebhookID: rest.OrNull(r.WebhookID), Replay: rest.OrNull(r.Replay), Test: r.Test, Detail: r.Detail,
		receiptView: receiptView{r.Acknowledged, r.Retried, r.Rejected},
	}
}

// getAttempts lists the last attempts to deliver.
func (h *subscriberHandlers) getAttempts(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	filter := inspect.Filter{Batch: bus.BatchID(q.Get("batch")), Outcome: rest.Word(q, "outcome", bus.Outcomes)}
	page := inspect.Page{After: q.Get("after"), Limit: q.Limit()}
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	view := inspect.ForClient
	if rest.Caller(r).Root {
		view = inspect.ForRoot
	}
	attempts, next, err := h.at(of).inspector.Attempts(r.Context(), of, view, filter, page)
	views := make([]attemptView, len(attempts))
	for i, attempt := range attempts {
		views[i] = viewAttempt(attempt)
	}
	h.RespondPage(w, r, views, next, err)
}
