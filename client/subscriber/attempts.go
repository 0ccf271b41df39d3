package subscriber

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"routemaster/client"
)

// Attempt is an attempt of the bus to deliver events of a batch. It has the JSON of the bus's GET
// /subscriber/attempts, without nulls.
type Attempt struct {
	At    Time   `json:"at"`
	Batch string `json:"batch"`
	// Attempt counts the attempts of the batch from 1; Events is how many events were sent.
	Attempt int `json:"attempt"`
	Events  int `json:"events"`
	// Outcome is "acknowledged", "partial", "failed" or "dead".
	Outcome string `json:"outcome"`
	// Status is the HTTP status of the endpoint's response; 0 if there was none.
	Status int `json:"status,omitzero"`
	// Error is why there was none, such as "dns", "refused" or "tls"; or "receipt", if the answer
	// could not be read. Detail says more, mostly to root only.
	Error  string `json:"error,omitzero"`
	Detail string `json:"detail,omitzero"`
	// Duration is how long the attempt took.
	Duration Milliseconds `json:"duration"`
	// RetryAt is when the rest of the batch may be sent again; zero if nothing is left.
	RetryAt Time `json:"retry_at,omitzero"`
	// Excerpt is the beginning of the answer's body, as text. Clients see it if the endpoint has a
	// public address.
	Excerpt string `json:"excerpt,omitzero"`
	// WebhookID stands for the content that was sent.
	WebhookID string `json:"webhook_id,omitzero"`
	// Acknowledged, Retried and Rejected count the events of a partial attempt.
	Acknowledged int `json:"acknowledged,omitzero"`
	Retried      int `json:"retried,omitzero"`
	Rejected     int `json:"rejected,omitzero"`
	// Replay is the replay that the batch is of, or empty.
	Replay string `json:"replay,omitzero"`
	// Test is whether the event was a test.
	Test bool `json:"test,omitzero"`
}

// AttemptFilter selects attempts. An empty field selects all.
type AttemptFilter struct{ Batch, Outcome string }

// Attempts yields the last attempts to deliver to the subscriber, newest first. The bus keeps a
// few, usually failed ones. An error is the last value that it yields.
func (s *Subscriber) Attempts(ctx context.Context, f AttemptFilter) iter.Seq2[Attempt, error] {
	return pages[Attempt](ctx, s, "list attempts", "/attempts", f.query())
}

// LastAttempts returns the first of [Subscriber.Attempts], at most limit of them, 1 to 100.
func (s *Subscriber) LastAttempts(ctx context.Context, f AttemptFilter, limit int) (last []Attempt, err error) {
	last, _, err = readPage[Attempt](ctx, s, "list attempts", "/attempts", f.query(), limit)
	return last, err
}

func (f AttemptFilter) query() url.Values {
	query := url.Values{}
	if f.Batch != "" {
		query.Set("batch", f.Batch)
	}
	if f.Outcome != "" {
		query.Set("outcome", f.Outcome)
	}
	return query
}

// Batch is a queued batch. It has the JSON of the bus's GET /subscriber/batches.
type Batch struct {
	ID        string `json:"id"`
	CreatedAt Time   `json:"created_at"`
	// Attempts counts the deliveries that were begun; Events is how many events it has.
	Attempts int `json:"attempts"`
	Events   int `json:"events"`
	// State is "current" (it still takes in events), "waiting", "delivering" or "retrying".
	State string `json:"state"`
	// NextAt is when the next delivery may begin, as far as that is known.
	NextAt Time `json:"next_at"`
	// Lane is the lane that it is in, from 0 on.
	Lane int `json:"lane"`
	// Replay is the replay that it is of, or empty.
	Replay string `json:"replay,omitzero"`
}

// BatchEvents is a queued batch with events of it. It has the JSON of the bus's GET
// /subscriber/batches/{id}, which leaves out the number of events.
type BatchEvents struct {
	Batch
	Events []client.Event `json:"events"`
}

// Batches yields the queued batches of the subscriber, oldest first, at least the ones among the
// 20,000 oldest batches of the bus. An error is the last value that it yields.
func (s *Subscriber) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return pages[Batch](ctx, s, "list batches", "/batches", url.Values{})
}

// OldestBatches returns the first of [Subscriber.Batches], at most limit of them, 1 to 100.
func (s *Subscriber) OldestBatches(ctx context.Context, limit int) (oldest []Batch, err error) {
	oldest, _, err = readPage[Batch](ctx, s, "list batches", "/batches", url.Values{}, limit)
	return oldest, err
}

// Batch returns a queued batch of the subscriber with its events from an index on, at
// most 1,000: 404 if there is none.
func (s *Subscriber) Batch(ctx context.Context, id string, from int) (b BatchEvents, err error) {
	err = s.call(ctx, "show a batch", http.MethodGet, eventsFrom("/batches/"+url.PathEscape(id), from), nil, &b)
	return b, err
}

// RemoveBatch removes a queued batch of the subscriber: 404 if there is none, 409 while
// it is being delivered. Its events become a dead letter if the subscriber keeps those; else they
// are lost.
func (s *Subscriber) RemoveBatch(ctx context.Context, id string) error {
	return s.call(ctx, "remove a batch", http.MethodDelete, "/batches/"+url.PathEscape(id), nil, nil)
}
