// Package topics is where state machines meet the bus: the events that they hear, and the moves
// that they tell. To the bus it is one more client. It subscribes, acknowledges batches when the
// labels have changed, and publishes.
package topics

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/machines"
	"routemaster/internal/machines/labelstore"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// Callback is that of the subscription. A worker hands its batches to [Client.Hear].
const Callback = "machines:"

// Config is what a [Client] works with.
type Config struct {
	Store  *store.Store
	Labels *labelstore.Store
	// Ingest publishes moves. Only [Client.Tell] needs it.
	Ingest *ingest.Ingest
	// Recorder counts events and moves. It may be nil.
	Recorder *telemetry.Recorder
	Log      *slog.Logger
	Now      func() time.Time
}

// Client is the machines as a client of the bus. It is safe for concurrent use, but for
// [Client.Tidy].
type Client struct {
	Config
	keys store.Keys
	// unwanted are the topics that the last call of Tidy found without need, and settled the version
	// of definitions without topics that have nothing left on the bus.
	unwanted []bus.TopicName
	settled  int64
}

// New makes a client.
func New(c Config) *Client {
	return &Client{Config: c, keys: store.Keys{Namespace: c.Store.Partition().Namespace()}}
}

// clients are the tokens of all clients, with their names.
type clients map[bus.Token]bus.ClientName

// token returns a token of a client; empty if it has none. Of several it is always the same.
func (c clients) token(name bus.ClientName) (found bus.Token) {
	for token, of := range c {
		if of == name && (found == "" || token < found) {
			found = token
		}
	}
	return found
}

// own returns the token of the machines' own client. It adds the client if there is none.
func (c *Client) own(ctx context.Context, all clients) (bus.Token, error) {
	if token := all.token(machines.DefaultPublisher); token != "" {
		return token, nil
	}
	token, err := bus.NewToken(machines.DefaultPublisher)
	if err != nil {
		return "", err
	}
	return token, c.Store.AddToken(ctx, token, machines.DefaultPublisher)
}

// subscription is what the bus knows of the machines' own client; zero if it has not subscribed.
type subscription struct {
	token    bus.Token
	callback string
	topics   []bus.TopicName
}

// lacks returns whether a topic is missing.
func (s *subscription) lacks(topics []bus.TopicName) bool {
	return slices.ContainsFunc(topics, func(t bus.TopicName) bool { return !slices.Contains(s.topics, t) })
}

// subscription reads the subscription of a token.
func (c *Client) subscription(ctx context.Context, token bus.Token) (s subscription, err error) {
	redis := c.Store.Partition()
	found, err := redis.HMGet(ctx, c.keys.Subscriber(token), "callback").Result()
	if err != nil {
		return s, wrap(err)
	}
	topics, err := redis.SMembers(ctx, c.keys.SubscriberTopics(token)).Result()
	if err != nil {
		return s, wrap(err)
	}
	s.token = token
	s.callback, _ = found[0].(string)
	for _, topic := range topics {
		s.topics = append(s.topics, bus.TopicName(topic))
	}
	return s, nil
}
