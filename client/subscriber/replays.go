package subscriber

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"routemaster/client"
)

// Replay is a replay of a topic's history to the subscriber. It has the JSON of the bus's GET
// /subscriber/replays, without nulls.
type Replay struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	// From and To are the positions of the first and of the last event, Next is the position of the
	// next to copy.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Next int64 `json:"next"`
	// Copied is how many events were put into the queue, Skipped how many the history had lost before
	// their turn.
	Copied  int64 `json:"copied"`
	Skipped int64 `json:"skipped"`
	// State is "running", "done", "cancelled" or "failed".
	State     string `json:"state"`
	CreatedAt Time   `json:"created_at"`
	// Error is why it ended before it was done, unless a request cancelled it.
	Error string `json:"error,omitzero"`
}

// ReplayRange selects the events to replay. It begins at the position From, or at events received
// Since, by default at the oldest kept one. It ends at the position To, or at events received
// Until, by default at the newest.
type ReplayRange struct {
	From, To     int64
	Since, Until time.Time
}

// StartedReplay is a replay that has begun.
type StartedReplay struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	// From and To are the positions of the first and of the last event, Events is how many there are.
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Events int64 `json:"events"`
}

// StartReplay delivers events of a topic's history to the subscriber again: 409 if it is not
// subscribed to the topic, the topic keeps no history, the range has none of its events, or a
// replay of the topic runs; 404 if there is no such topic.
func (s *Subscriber) StartReplay(ctx context.Context, topic string, of ReplayRange) (started StartedReplay, err error) {
	body := struct {
		Topic string `json:"topic"`
		From  int64  `json:"from,omitzero"`
		Since Time   `json:"since,omitzero"`
		To    int64  `json:"to,omitzero"`
		Until Time   `json:"until,omitzero"`
	}{topic, of.From, Time{Time: of.Since}, of.To, Time{Time: of.Until}}
	_, err = s.client.Call(ctx, client.Request{
		Operation: "start a replay", Method: http.MethodPost, Path: s.path + "/replays", Body: body, IdempotencyKey: rand.Text(),
	}, &started)
	return started, err
}

// Replays returns the running replays of the subscriber and the ones that ended in the last day,
// newest first; 100 at most.
func (s *Subscriber) Replays(ctx context.Context) (all []Replay, err error) {
	err = s.call(ctx, "list replays", http.MethodGet, "/replays", nil, &all)
	return all, err
}

// CancelReplay stops a replay from copying more events to the subscriber's queue: 404 if there is
// no such replay. Events already copied are delivered.
func (s *Subscriber) CancelReplay(ctx context.Context, id string) error {
	return s.call(ctx, "cancel a replay", http.MethodDelete, "/replays/"+url.PathEscape(id), nil, nil)
}
