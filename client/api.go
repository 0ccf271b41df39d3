package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Subscription names the topics that a subscriber wants, and sets how they are delivered.
type Subscription struct {
	// Topics are all the topics subscribed to from now on. Topics that are not listed are
	// unsubscribed.
	Topics []string
	// Callback is the https URL that batches are sent to, without query string and fragment. The
	// bus ignores a user name: see UUID.
	Callback string
	// UUID is the secret that the bus sends to the callback as the user name: see [NewHandler]. If
	// it is empty, deliveries carry none.
	UUID string
	// Timeout is how long a batch may wait for more events, 0 to 1 h, in whole ms. If it is nil, it
	// is unchanged: 500 ms at first.
	Timeout *time.Duration
	// Max is the limit of events of a batch, 1 to 10,000. If it is zero, it is unchanged: 100 at
	// first.
	Max int
	// Options are further options, by their JSON names in the Info of package subscriber. The fields
	// above cannot be set here. Options that are not named stay as they are.
	Options map[string]any
}

// MarshalJSON writes the subscription as the bus reads it.
func (s Subscription) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(s.UUID) { // encoding it would silently change it
		return nil, errors.New("the uuid must be UTF-8")
	}
	fields := map[string]any{"topics": append([]string{}, s.Topics...), "callback": s.Callback}
	for name, value := range s.Options {
		switch name {
		case "topics", "callback", "uuid", "timeout", "max":
			return nil, fmt.Errorf("%s has a field of its own: it must not be among the options", name)
		}
		fields[name] = value
	}
	if s.UUID != "" {
		fields["uuid"] = s.UUID
	}
	if s.Timeout != nil {
		fields["timeout"] = s.Timeout.Milliseconds()
	}
	if s.Max != 0 {
		fields["max"] = s.Max
	}
	return marshal(fields)
}

// Subscribe subscribes this client, or changes its subscription.
func (c *Client) Subscribe(ctx context.Context, s Subscription) error {
	body, err := s.MarshalJSON()
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return c.call(ctx, request{method: http.MethodPost, path: "/subscription", operation: "subscribe", body: body}, nil)
}

// Unsubscribe leaves topics. It stops at the first error: 404 if this client is not subscribed to a
// topic.
func (c *Client) Unsubscribe(ctx context.Context, topics ...string) error {
	for _, topic := range topics {
		leave := request{method: http.MethodDelete, path: "/subscriber/topics/" + url.PathEscape(topic), operation: "unsubscribe from " + topic}
		if err := c.call(ctx, leave, nil); err != nil {
			return err
		}
	}
	return nil
}

// UnsubscribeAll removes this client's subscriber with all its subscriptions: 404 if there is none.
func (c *Client) UnsubscribeAll(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/subscriber", operation: "unsubscribe"}, nil)
}

// SubscriptionStatus is the state of a subscriber. It has the JSON of the bus's GET /subscriptions.
type SubscriptionStatus struct {
	// Subscriber is the token for root and for the subscriber itself, the client's name for others.
	Subscriber string
	// Name is the client's name. Older versions of the bus leave it empty.
	Name string
	// UUID is empty unless root or the subscriber itself asks.
	UUID     string
	Callback string
	// Max is the limit of events of a batch; Timeout is how long a batch may wait for more.
	Max     int
	Timeout time.Duration
	Topics  []string
	// Health is 0 to 100. The bus delivers less often to a subscriber near 0.
	Health int
	// LastAttempted is zero if nothing has been sent yet.
	LastAttempted time.Time
	// Sent and Queued are counts of events.
	Sent, Queued int64
	// Oldest is when the bus received the oldest queued event; zero if there is none.
	Oldest time.Time
}

// status is a SubscriptionStatus on the wire. Timeout is in ms.
type status struct {
	Subscriber    string   `json:"subscriber"`
	Name          string   `json:"name,omitempty"`
	UUID          *string  `json:"uuid"`
	Callback      string   `json:"callback"`
	Max           int      `json:"max_events"`
	Timeout       int64    `json:"timeout"`
	Topics        []string `json:"topics"`
	Health        int      `json:"health_points"`
	LastAttempted Time     `json:"last_attempted_at"`
	Events        struct {
		Sent   int64 `json:"sent"`
		Queued int64 `json:"queued"`
		Oldest Time  `json:"oldest"`
	} `json:"events"`
}

// UnmarshalJSON reads a subscriber of the bus's response.
func (s *SubscriptionStatus) UnmarshalJSON(text []byte) error {
	var wire status
	if err := json.Unmarshal(text, &wire); err != nil {
		return err
	}
	*s = SubscriptionStatus{
		Subscriber: wire.Subscriber, Name: wire.Name, UUID: *cmp.Or(wire.UUID, new("")), Callback: wire.Callback, Max: wire.Max, Timeout: time.Duration(wire.Timeout) * time.Millisecond,
		Topics: wire.Topics, Health: wire.Health, LastAttempted: wire.LastAttempted.Time,
		Sent: wire.Events.Sent, Queued: wire.Events.Queued, Oldest: wire.Events.Oldest.Time,
	}
	return nil
}

// MarshalJSON writes the same JSON as the bus.
func (s SubscriptionStatus) MarshalJSON() ([]byte, error) {
	wire := status{
		Subscriber: s.Subscriber, Name: s.Name, Callback: s.Callback, Max: s.Max, Timeout: s.Timeout.Milliseconds(),
		Topics: append([]string{}, s.Topics...), Health: s.Health, LastAttempted: Time{s.LastAttempted},
	}
	if s.UUID != "" {
		wire.UUID = &s.UUID
	}
	wire.Events.Sent, wire.Events.Queued, wire.Events.Oldest = s.Sent, s.Queued, Time{s.Oldest}
	return marshal(wire)
}

// Page is a part of a list.
type Page struct {
	// After is the name that the part follows, of a topic or of a subscriber's client. Empty means
	// the beginning.
	After string
	// Limit is the limit of entries, 10,000 at most; 0 means all the rest.
	Limit int
}

// of is the path of a part of the list at a path.
func (p Page) of(path string) string {
	query := url.Values{}
	if p.After != "" {
		query.Set("after", p.After)
	}
	if p.Limit != 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	return strings.TrimSuffix(path+"?"+query.Encode(), "?")
}

// Subscriptions lists all subscribers of the bus.
func (c *Client) Subscriptions(ctx context.Context) (all []SubscriptionStatus, err error) {
	return c.SubscriptionsPage(ctx, Page{})
}

// SubscriptionsPage lists some subscribers of the bus, ordered by the names of their clients. A
// page is not cut between subscribers of one name, so it may be longer than its limit. An empty
// page is the end.
func (c *Client) SubscriptionsPage(ctx context.Context, p Page) (some []SubscriptionStatus, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: p.of("/subscriptions"), operation: "list subscriptions"}, &some)
	return some, err
}

// Topic is a topic of the bus.
type Topic struct {
	Name string `json:"name"`
	// Publisher is the token for root and for the publisher itself, the client's name for others. It
	// is empty until the first publish.
	Publisher string `json:"publisher"`
	// Events is how many events have been published so far.
	Events int64 `json:"events"`
}

// Topics lists all topics of the bus.
func (c *Client) Topics(ctx context.Context) (all []Topic, err error) {
	return c.TopicsPage(ctx, Page{})
}

// TopicsPage lists some topics of the bus, ordered by name. A page that is shorter than its limit
// is the last.
func (c *Client) TopicsPage(ctx context.Context, p Page) (some []Topic, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: p.of("/topics"), operation: "list topics"}, &some)
	return some, err
}

// DeleteTopic removes a topic and all subscriptions to it; queued events are still delivered. Only
// its publisher and root may: others get 403. An unknown topic is a 404.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/topics/" + url.PathEscape(name), operation: "delete topic " + name}, nil)
}

// Token gives a client access. The token is a secret, the name is not.
type Token struct {
	Name  string `json:"name"`
	Token string `json:"token,omitempty"`
	// LastUsedAt is in ms since the Unix epoch, to the minute; 0 if no use is known.
	LastUsedAt int64 `json:"last_used_at,omitempty"`
}

// Tokens lists all tokens. Only root may.
func (c *Client) Tokens(ctx context.Context) (all []Token, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/api_tokens", operation: "list tokens"}, &all)
	return all, err
}

// AddToken gives a client access with a token of 1 to 64 characters of a-z, 0-9, colon, _ and -. If
// the token is empty the bus makes one; such a request is not retried. A token of another client is
// refused with 409. Only root may.
func (c *Client) AddToken(ctx context.Context, name, token string) (added Token, err error) {
	body, err := marshal(Token{Name: name, Token: token})
	if err != nil {
		return added, err
	}
	err = c.call(ctx, request{method: http.MethodPost, path: "/api_tokens", operation: "add a token", body: body, noRetry: token == ""}, &added)
	return added, err
}

// DeleteToken removes a token and its subscriber. An unknown token is no error. Only root may.
func (c *Client) DeleteToken(ctx context.Context, token string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api_tokens/" + url.PathEscape(token), operation: "delete a token"}, nil)
}

// Pulse checks whether the bus works, including its Redis.
func (c *Client) Pulse(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodGet, path: "/pulse", operation: "pulse"}, nil)
}

// Metrics returns the bus's metrics as Prometheus text. The caller closes it.
func (c *Client) Metrics(ctx context.Context) (io.ReadCloser, error) {
	return c.send(ctx, request{method: http.MethodGet, path: "/metrics", operation: "read metrics"})
}
