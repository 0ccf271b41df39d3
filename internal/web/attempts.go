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
				{name: "batch", words: "Only those of this batch."},
				{
					name: "outcome", enum: texts(bus.Outcomes),
					words: "Only those that came to this.",
				},
				pageLimit,
				pageAfter,
			},
			returns: pages("The attempts, newest first.", listOf{of: schemaRef("Attempt")}),
			fails:   []problem{notFound},
		},
	}
}

// attemptView is an attempt to deliver. Times are in ms since the Unix epoch.
type attemptView struct {
	At       int64       `json:"at"`
	Batch    bus.BatchID `json:"batch"`
	Attempt  int         `json:"attempt"`
	Events   int         `json:"events"`
	Outcome  bus.Outcome `json:"outcome"`
	Status   *int        `json:"status"`
	Error    *string     `json:"error"`
	Duration int64       `json:"duration"` // ms
	RetryAt  *int64      `json:"retry_at"`
	Excerpt  *string     `json:"excerpt"`

	WebhookID *string       `json:"webhook_id"`
	Replay    *bus.ReplayID `json:"replay"`
	Test      bool          `json:"test"`
	// Detail is the error's text.
	Detail string `json:"detail,omitempty"`
	receiptView
}

// receiptView counts the events by what became of them; it is left out unless they differ.
type receiptView struct {
	Acknowledged int `json:"acknowledged,omitempty"`
	Retried      int `json:"retried,omitempty"`
	Rejected     int `json:"rejected,omitempty"`
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
