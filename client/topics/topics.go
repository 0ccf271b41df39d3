// Package topics inspects one topic of a bus: its publisher, its subscribers and its last event.
package topics

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// Topic is a topic of a bus. It has the JSON of the bus's GET /topics/{topic}.
type Topic struct {
	client.Topic
	// LastEvent is the last event as it is delivered, null if there is none.
	LastEvent json.RawMessage `json:"last_event"`
	// Subscribers are ordered by name.
	Subscribers []Subscriber `json:"subscribers"`
}

// Subscriber is a subscriber of a topic. Queued and Oldest count events of all its topics.
type Subscriber struct {
	// Name is the client's name.
	Name string `json:"name"`
	// Health is 0 to 100.
	Health int `json:"health_points"`
	// Queued is a number of events, Oldest when the bus received the oldest of them; zero if there is
	// none, or it is not known.
	Queued int64           `json:"queued"`
	Oldest subscriber.Time `json:"oldest"`
}

// Get returns a topic. An unknown one is a 404.
func Get(ctx context.Context, c *client.Client, name string) (t Topic, err error) {
	_, err = c.Call(ctx, client.Request{
		Operation: "show topic " + name, Method: http.MethodGet, Path: "/topics/" + url.PathEscape(name),
	}, &t)
	return t, err
}
