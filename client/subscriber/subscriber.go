// Package subscriber manages a subscriber of a bus: its options, the attempts to deliver to it, and
// its queue.
//
//	shop := subscriber.New(bus) // a *client.Client
//	for attempt, err := range shop.Attempts(ctx, subscriber.AttemptFilter{}) {
//		…
//	}
package subscriber

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"routemaster/client"
)

// Subscriber is a subscriber of a bus, as a client of it sees it. It is safe for concurrent use.
type Subscriber struct {
	client *client.Client
	path   string
}

// New returns a client's own subscriber.
func New(c *client.Client) *Subscriber { return &Subscriber{c, "/subscriber"} }

// Of returns the subscriber of another client, given by its token. Only root may use it.
func Of(c *client.Client, token string) *Subscriber {
	return &Subscriber{c, "/subscribers/" + url.PathEscape(token)}
}

// Time is a [client.Time].
type Time = client.Time

// Milliseconds is a duration as the bus sends it.
type Milliseconds int64

// Duration is the same duration in Go's type.
func (m Milliseconds) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Info is the configuration and the state of a subscriber. It has the JSON of the bus's GET
// /subscriber.
type Info struct {
	Topics   []string `json:"topics"`
	Callback string   `json:"callback"`
	UUID     string   `json:"uuid"`
	// Timeout is how long a batch may wait for more events; Max is the limit of events of a batch.
	Timeout Milliseconds `json:"timeout"`
	Max     int          `json:"max"`
	// MaxBytes is the limit of a delivery's body in bytes, 0 for none.
	MaxBytes int `json:"max_bytes"`
	// MaxRequestsPerMinute and MaxEventsPerMinute limit the pace of the deliveries; 0 is no limit.
	MaxRequestsPerMinute int `json:"max_requests_per_minute"`
	MaxEventsPerMinute   int `json:"max_events_per_minute"`
	// Lanes is how many queues the subscriber has, each delivered in order. Events with the same value
	// at OrderKey, a JSON pointer into an event as it is delivered, are in one lane.
	Lanes    int    `json:"lanes"`
	OrderKey string `json:"order_key"`
	// StrictOrder makes a failed batch hold up the batches behind it in its lane.
	StrictOrder bool `json:"strict_order"`
	// Partial makes the bus read a 207 as a receipt for each event.
	Partial bool `json:"partial"`
	// KeepAge and KeepEvents limit the queue: the bus drops batches older than KeepAge, and the oldest
	// events while there are more than KeepEvents. 0 is no limit.
	KeepAge    Milliseconds `json:"keep_age"`
	KeepEvents int          `json:"keep_events"`
	// GapNotices reports lost events with an event of the type [client.Gap].
	GapNotices bool `json:"gap_notices"`
	// DeadLetters says when the bus gives up on events. Without it they are tried for ever.
	DeadLetters *DeadLetters `json:"dead_letters"`
	// LogAttempts is which attempts are recorded: "failures", "none" or "all".
	LogAttempts string `json:"log_attempts"`
	Status      Status `json:"status"`
}

// MarshalJSON writes null where there is no value, as the bus does.
func (i Info) MarshalJSON() ([]byte, error) {
	type info Info // without this method
	return json.Marshal(struct {
		info
		UUID                 *string       `json:"uuid"`
		MaxBytes             *int          `json:"max_bytes"`
		MaxRequestsPerMinute *int          `json:"max_requests_per_minute"`
		MaxEventsPerMinute   *int          `json:"max_events_per_minute"`
		KeepAge              *Milliseconds `json:"keep_age"`
		KeepEvents           *int          `json:"keep_events"`
	}{
		info(i), orNull(i.UUID), orNull(i.MaxBytes), orNull(i.MaxRequestsPerMinute), orNull(i.MaxEventsPerMinute),
		orNull(i.KeepAge), orNull(i.KeepEvents),
	})
}

// orNull returns a value for JSON: null if it is the zero value.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// DeadLetters says when the bus gives up on a batch, and how many dead letters it keeps.
type DeadLetters struct {
	// Attempts is how often a batch may be refused, Age how old its first event may be; 0 is no
	// limit.
	Attempts int          `json:"attempts,omitzero"`
	Age      Milliseconds `json:"age,omitzero"`
	// KeepEvents, KeepBytes and KeepAge limit the dead letters.
	KeepEvents int          `json:"keep_events,omitzero"`
	KeepBytes  int          `json:"keep_bytes,omitzero"`
	KeepAge    Milliseconds `json:"keep_age,omitzero"`
}

// Status is the state of the deliveries to a subscriber.
type Status struct {
	// Queued is how many events wait.
	Queued      int64 `json:"queued"`
	DeadLetters struct {
		Letters  int64 `json:"letters"`
		Events   int64 `json:"events"`
		Bytes    int64 `json:"bytes"`
		OldestAt Time  `json:"oldest_at"`
	} `json:"dead_letters"`
	// Health is 0 to 100. The bus delivers less often to a subscriber near 0.
	Health          int  `json:"health_points"`
	LastAttemptedAt Time `json:"last_attempted_at"`
	// PausedUntil is zero unless the subscriber is paused. It is in the year 9999 if the pause has no
	// end.
	PausedUntil Time `json:"paused_until"`
	// ThrottledUntil is until when nothing is delivered because deliveries have failed, PacedUntil to
	// keep to the pace. They are zero once that time has passed.
	ThrottledUntil Time `json:"throttled_until"`
	PacedUntil     Time `json:"paced_until"`
	// NextDeliveryAt is when the next delivery may begin, as far as that is known.
	NextDeliveryAt Time `json:"next_delivery_at"`
	// Gap is the content of the next gap notice, as far as it is known.
	Gap *Gap `json:"gap"`
	// Blocked is how many lanes a batch that failed holds up. It is zero unless the order is strict.
	Blocked int `json:"blocked"`
	// Replays is how many replays run, or ended within the last day.
	Replays int64 `json:"replays"`
	// Signed is whether the subscriber has signing secrets.
	Signed bool `json:"signed"`
}

// Gap is events that a subscriber has lost. It is also the data of an event of the type
// [client.Gap].
type Gap struct {
	// Events were in Batches (and dead letters). The first batch was created at Since, the last at
	// Until.
	Events  int64 `json:"events"`
	Batches int64 `json:"batches"`
	Since   Time  `json:"since"`
	Until   Time  `json:"until"`
	// Reason is why the last of them were lost: "autodrop" (the bus was about to be full),
	// "retention" (older, or more, than is kept), "dead_letters", "history", "removed" or "rejected".
	Reason string `json:"reason"`
}

// IsPaused reports whether nothing is delivered at a time, because of a pause.
func (s Status) IsPaused(now time.Time) bool { return s.PausedUntil.After(now) }

// IsPausedForGood reports whether it is paused until it is resumed by a request.
func (s Status) IsPausedForGood() bool { return s.PausedUntil.UTC().Year() >= 9999 }

// Subscribe subscribes the client, or changes its subscription.
func (s *Subscriber) Subscribe(ctx context.Context, to client.Subscription) error {
	return s.call(ctx, "subscribe", http.MethodPost, "", to, nil)
}

// Unsubscribe leaves a topic: 404 if the client is not subscribed to it.
func (s *Subscriber) Unsubscribe(ctx context.Context, topic string) error {
	return s.call(ctx, "unsubscribe from "+topic, http.MethodDelete, "/topics/"+url.PathEscape(topic), nil, nil)
}

// Delete removes the subscriber with all its subscriptions and its queue: 404 if there is none.
func (s *Subscriber) Delete(ctx context.Context) error {
	return s.call(ctx, "delete the subscriber", http.MethodDelete, "", nil, nil)
}

// Info returns the configuration and the state: 404 if the client is not subscribed.
func (s *Subscriber) Info(ctx context.Context) (info Info, err error) {
	err = s.call(ctx, "show the subscriber", http.MethodGet, "", nil, &info)
	return info, err
}

// Patch changes some fields, by their names in the JSON of [Info]. A nil value makes a field its
// default. Fields that are not named stay as they are.
func (s *Subscriber) Patch(ctx context.Context, fields map[string]any) error {
	return s.call(ctx, "change the subscriber", http.MethodPatch, "", fields, nil)
}

// Pause stops deliveries until a time, or until [Subscriber.Resume] if that is zero. The events
// wait.
func (s *Subscriber) Pause(ctx context.Context, until time.Time) error {
	return s.call(ctx, "pause the subscriber", http.MethodPost, "/pause", struct {
		Until Time `json:"until,omitzero"`
	}{Time{Time: until}}, nil)
}

// Resume ends a pause. It is no error if there is none.
func (s *Subscriber) Resume(ctx context.Context) error {
	return s.call(ctx, "resume the subscriber", http.MethodPost, "/resume", nil, nil)
}

// Retry makes the bus try at once, instead of after its pause, a subscriber whose deliveries fail.
// It is no error if they do not fail.
func (s *Subscriber) Retry(ctx context.Context) error {
	return s.call(ctx, "retry the subscriber", http.MethodPost, "/retry", nil, nil)
}

// Test makes the bus deliver one test event, at once and only once. It returns the batch by which
// [Subscriber.Attempts] finds the result: 409 while another test waits.
func (s *Subscriber) Test(ctx context.Context) (batch string, err error) {
	var test struct {
		Batch string `json:"batch"`
	}
	_, err = s.client.Call(ctx, client.Request{
		Operation: "test the subscriber", Method: http.MethodPost, Path: s.path + "/test", NoRetry: true,
	}, &test)
	return test.Batch, err
}

// call sends a request about the subscriber.
func (s *Subscriber) call(ctx context.Context, operation, method, of string, body, into any) error {
	_, err := s.client.Call(ctx, client.Request{Operation: operation, Method: method, Path: s.path + of, Body: body}, into)
	return err
}
