package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// ownLibrary is what the machines' own client adds to the store's.
var ownLibrary = append(store.Library[:len(store.Library):len(store.Library)], rdb.ReadLua(luaFiles, "lib/own"))

// The scripts. Each file's header says what it takes, returns and keeps.
var (
	scriptOwnPut         = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_put"))
	scriptOwnSubscribe   = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_subscribe"))
	scriptOwnShow        = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_show"))
	scriptOwnUnsubscribe = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_unsubscribe"))
)

// Callback is that of the subscription. A worker hands its batches to [Client.Hear].
const Callback = "machines:"

// ClientConfig is what a [Client] works with.
type ClientConfig struct {
	// Stores are the bus's. The machines' own client is where they are, in the first.
	Stores *store.Bus
	Labels *Bus
	// Ingest publishes moves. Only [Client.Tell] needs it.
	Ingest *ingest.Ingest
	// Recorder counts events and moves. It may be nil.
	Recorder *telemetry.Recorder
	Log      *slog.Logger
	Now      func() time.Time
}

// Client is the machines as a client of the bus. It subscribes to the events that they hear,
// acknowledges batches when the labels have changed, and publishes their moves. It is safe for
// concurrent use, but for [Client.Tidy].
type Client struct {
	ClientConfig
	redis *rdb.Partition
	// everywhere is the own client's token that is known to all partitions.
	everywhere atomic.Value
	// unwanted are the topics that the last call of Tidy found without need.
	unwanted []bus.TopicName
}

// NewClient makes a client.
func NewClient(c ClientConfig) *Client {
	redis := c.Stores.First().Partition()
	return &Client{ClientConfig: c, redis: redis}
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
func (c *Client) own(ctx context.Context) (bus.Token, error) {
	fresh, err := c.newToken()
	if err != nil {
		return "", err
	}
	elsewhere, err := c.elsewhere(ctx)
	if err != nil {
		return "", err
	}
	change := c.redis.Change(ctx, scriptOwnPut, string(machines.DefaultPublisher), Callback, elsewhere, string(fresh))
	if change.Err != nil {
		return "", rdb.Wrap("make the machines' client", change.Err)
	}
	token := bus.Token(change.Text(0))
	if c.redis.IsOneOfSeveral() && c.everywhere.Load() != token {
		if err := c.Stores.AddToken(ctx, token, machines.DefaultPublisher); err != nil {
			return "", err
		}
		c.everywhere.Store(token)
	}
	return token, nil
}

// elsewhere are the tokens of the machines' own client that are of other partitions than they are:
// each with a space before and after.
func (c *Client) elsewhere(ctx context.Context) (tokens string, err error) {
	if !c.redis.IsOneOfSeveral() {
		return "", nil
	}
	all, err := c.Stores.First().Tokens(ctx)
	for token, name := range all {
		if name == machines.DefaultPublisher && c.Stores.Of(token) != c.Stores.First() {
			tokens += " " + string(token) + " "
		}
	}
	return tokens, err
}

// newToken makes a token of the machines' own client.
func (c *Client) newToken() (bus.Token, error) {
	return c.Stores.TokenIn(c.Stores.First(), func() (bus.Token, error) { return bus.NewToken(machines.DefaultPublisher) })
}
