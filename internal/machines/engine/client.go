package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/layout"
	"routemaster/internal/machines"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
)

// ownLibrary is the store's library with the additions of the machines' own client.
var ownLibrary = append(store.Library[:len(store.Library):len(store.Library)], rdb.ReadLua(luaFiles, "lib/own"))

// The scripts. Each file's header documents its arguments, result and keys.
var (
	scriptOwnPut         = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_put"))
	scriptOwnSubscribe   = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_subscribe"))
	scriptOwnShow        = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_show"))
	scriptOwnUnsubscribe = rdb.NewScript(ownLibrary, rdb.ReadLua(luaFiles, "own_unsubscribe"))
)

// Callback marks the machines' subscription. A worker hands its batches to [Client.Hear].
const Callback = "machines:"

// ClientConfig configures a [Client].
type ClientConfig struct {
	// Stores are the bus's.
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
	// everywhere is the own client's token that is known to all partitions.
	everywhere atomic.Value
	// unwanted are the topics that the last call of Tidy found without need.
	unwanted []bus.TopicName
}

// NewClient makes a client.
func NewClient(c ClientConfig) *Client { return &Client{ClientConfig: c} }

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

// home is where the machines' own client is.
type home struct {
	*store.Store
	// elsewhere are its tokens in other partitions: each with a space before and after.
	elsewhere string
}

// home finds where the machines' own client is: where it is subscribed, or else in the first
// partition. On a bus that was copied from another number of partitions its token may be of any.
func (c *Client) home(ctx context.Context) (home, error) {
	first := c.Stores.First()
	if !first.Partition().IsOneOfSeveral() {
		return home{Store: first}, nil
	}
	all, err := first.Tokens(ctx)
	if err != nil {
		return home{}, err
	}
	var tokens []bus.Token
	for token, name := range all {
		if name == machines.DefaultPublisher {
			tokens = append(tokens, token)
		}
	}
	h := home{Store: first}
	if slices.ContainsFunc(tokens, func(token bus.Token) bool { return c.Stores.Of(token) != first }) {
		if h.Store, err = c.subscribed(ctx, tokens); err != nil {
			return home{}, err
		}
	}
	for _, token := range tokens {
		if c.Stores.Of(token) != h.Store {
			h.elsewhere += " " + string(token) + " "
		}
	}
	return h, nil
}

// subscribed returns where one of the tokens has the machines' subscription: the first store if
// none has.
func (c *Client) subscribed(ctx context.Context, tokens []bus.Token) (*store.Store, error) {
	slices.SortFunc(tokens, func(a, b bus.Token) int { // an operator's need not be asked if the first has it
		return cmp.Or(cmp.Compare(c.Stores.Of(a).Partition().Number(), c.Stores.Of(b).Partition().Number()), cmp.Compare(a, b))
	})
	for _, token := range tokens {
		p := c.Stores.Of(token).Partition()
		callback, err := p.HGet(ctx, layout.Keys{Namespace: p.Namespace()}.Subscriber(token), "callback").Result()
		if err != nil && !errors.Is(err, rdb.Nil) {
			return nil, rdb.Wrap("look for the machines' subscription", err)
		}
		if callback == Callback {
			return c.Stores.Of(token), nil
		}
	}
	return c.Stores.First(), nil
}

// own returns the token of the machines' own client. It adds the client if there is none.
func (c *Client) own(ctx context.Context) (bus.Token, error) {
	at, err := c.home(ctx)
	if err != nil {
		return "", err
	}
	return c.ownAt(ctx, at)
}

func (c *Client) ownAt(ctx context.Context, at home) (bus.Token, error) {
	fresh, err := c.newToken(at)
	if err != nil {
		return "", err
	}
	change := at.Partition().Change(ctx, scriptOwnPut, string(machines.DefaultPublisher), Callback, at.elsewhere, string(fresh))
	if change.Err != nil {
		return "", rdb.Wrap("make the machines' client", change.Err)
	}
	token := bus.Token(change.Text(0))
	if at.Partition().IsOneOfSeveral() && c.everywhere.Load() != token {
		if err := c.Stores.AddToken(ctx, token, machines.DefaultPublisher); err != nil {
			return "", err
		}
		c.everywhere.Store(token)
	}
	return token, nil
}

// newToken makes a token of the machines' own client.
func (c *Client) newToken(at home) (bus.Token, error) {
	return c.Stores.TokenIn(at.Store, func() (bus.Token, error) { return bus.NewToken(machines.DefaultPublisher) })
}
