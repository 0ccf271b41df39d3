package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/signature"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

var (
	clientInPath = parameter{
		name: "token", in: "path", component: "Client",
		words: "The client's token. Its name does as well if only one subscriber has it, but not to subscribe, " +
			"to unsubscribe, or to delete the subscription.",
	}
)

// callerOperations are about the caller's own subscription.
func (h *subscriberHandlers) callerOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/subscriber", handle: h.get, who: clientsOnly,
			id: "getSubscriber", tag: "subscribers",
			summary: "Show a subscriber's settings and status",
			returns: returns(http.StatusOK, "The settings, with their defaults, and the status.", schemaRef("SubscriberSettings")),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPatch, path: "/subscriber", handle: h.ofSubscriber(h.patch), who: clientsOnly,
			id: "changeSubscriber", tag: "subscribers",
			summary: "Change some of a subscriber's settings",
			about: "What is left out stays as it is; null sets the default. An object takes the place of the one " +
				"before. Options hold from the next delivery on, also for what is queued.",
			body:    &body{of: schemaRef("SubscriptionChange"), example: `{"max":20,"max_requests_per_minute":600}`},
			returns: returns(http.StatusNoContent, "Changed.", nil),
			fails:   []problem{notFound, tooManyTopics},
		},
		{
			method: http.MethodPost, path: "/subscriber/pause", handle: h.ofSubscriber(h.pause), who: clientsOnly,
			id: "pauseSubscriber", tag: "subscribers",
			summary: "Pause deliveries",
			body:    &body{of: sentPause{}, example: `{"until":null}`, optional: true},
			returns: returns(http.StatusNoContent, "Paused. Events are queued meanwhile.", nil),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/resume", handle: h.ofSubscriber(h.withoutBody(h.resume)), who: clientsOnly,
			id: "resumeSubscriber", tag: "subscribers",
			summary: "Resume deliveries",
			returns: returns(http.StatusNoContent, "Not paused.", nil),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/retry", handle: h.ofSubscriber(h.withoutBody(h.retry)), who: clientsOnly,
			id: "retrySubscriber", tag: "subscribers",
			summary: "Try at once what has failed",
			returns: returns(http.StatusNoContent, "It is not throttled; what waits is tried, unless it is paused.", nil),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/test", handle: h.ofSubscriber(h.withoutBody(h.test)), who: clientsOnly,
			id: "testSubscriber", tag: "subscribers",
			summary: "Send a test event",
			returns: returns(http.StatusAccepted, "A `noop` event whose data is `{\"test\":true}` will be delivered, once, also through a pause. The "+
				"attempt log has the result.", testView{}),
			fails: []problem{notFound, testWaits},
		},
	}
}

// SubscriberConfig configures [subscriberHandlers].
type SubscriberConfig struct {
	// Deny lists the addresses that a callback must not have.
	Deny bus.DenyList
	// MaxTopics is the maximum number of topics of a subscription; 0 is no limit.
	MaxTopics int
	// Secrets has the keys that signing secrets are sealed with.
	Secrets signature.Keyring
	// Recorder, if given, counts redelivered and removed events.
	Recorder *telemetry.Recorder
}

// subscriberHandlers serve the requests that are about one client's subscription.
type subscriberHandlers struct {
	*rest.Service
	config     SubscriberConfig
	stores     *store.Bus
	partitions []subscriberPartition // by number
}

// subscriberPartition is the handlers' view of a partition of the bus.
type subscriberPartition struct {
	store     *store.Store
	inspector *inspect.Inspector
	letters   *store.Letters
	replays   *store.Replays
	secrets   *store.Secrets
}

// newSubscriberHandlers makes the handlers of an API. They read requests and respond by its
// service.
func newSubscriberHandlers(config SubscriberConfig, service *rest.Service, all *store.Bus) *subscriberHandlers {
	h := &subscriberHandlers{Service: service, config: config, stores: all}
	for _, st := range all.All() {
		h.partitions = append(h.partitions, subscriberPartition{
			st, inspect.Of(st), store.NewLetters(st), store.NewReplays(all, st), store.NewSecrets(st),
		})
	}
	return h
}

// at is where a client's subscription is.
func (h *subscriberHandlers) at(token bus.Token) subscriberPartition {
	return h.partitions[h.stores.Of(token).Partition().Number()]
}

// operations are about one client's subscription. Each that a client sends at /subscriber about its
// own is also there for the operator, with the client in the path.
func (h *subscriberHandlers) operations() (all []operation) {
	for _, o := range h.subscriptionOperations() {
		alias := o.at(strings.Replace(o.path, "/subscription", "/subscriber", 1), o.id+"Alias")
		all = append(all, o, alias, ofClient(alias.at(alias.path, o.id)))
	}
	for _, o := range slices.Concat(
		h.callerOperations(), h.attemptOperations(), h.batchOperations(), h.letterOperations(), h.replayOperations(), h.secretOperations(),
	) {
		all = append(all, o, ofClient(o))
	}
	return all
}

// ofClient is an operation about the caller's subscription, as the operator sends it.
func ofClient(o operation) operation {
	o.path = strings.Replace(o.path, "/subscriber", "/subscribers/{token}", 1)
	o.id += "OfClient"
	o.summary += ", as the operator"
	o.who = rootOnly
	o.params = append([]parameter{clientInPath}, o.params...)
	o.fails = append([]problem{notFound}, o.fails...)
	return o
}

// holders are the tokens that hold the subscriptions of clients, by the tokens of these.
type holders struct{ sync.Map }

// holdersKey is where the context of a request has its holders.
type holdersKey struct{}

// withHolders returns a request for a page of the console. It asks the API several things of the
// same subscriber, whose holder is found once.
func withHolders(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), holdersKey{}, &holders{}))
}

// holdersOf returns the holders that other requests of the same page have found; of a request that
// is not of a page there are none.
func holdersOf(r *http.Request) *holders {
	if known, ok := r.Context().Value(holdersKey{}).(*holders); ok {
		return known
	}
	return &holders{}
}

// holder is [inspect.Inspector.Holder], once for each page.
func (h *subscriberHandlers) holder(r *http.Request, client bus.Token) (bus.Token, error) {
	page := holdersOf(r)
	if known, ok := page.Load(client); ok {
		return known.(bus.Token), nil
	}
	holder, err := h.at(client).inspector.Holder(r.Context(), client)
	if err == nil {
		page.Store(client, holder)
	}
	return holder, err
}

// handler handles a request that is about a subscriber, by the token that holds the subscription.
type handler func(w http.ResponseWriter, r *http.Request, of bus.Token)

// ofSubscriber finds the subscriber for a handler, or responds with 404 if there is none.
func (h *subscriberHandlers) ofSubscriber(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		client := clientParam(r)
		holder, err := h.holder(r, client)
		if err != nil {
			holder, err = h.named(r, err)
		}
		if err != nil {
			h.Fail(w, r, err)
			return
		}
		handle(w, r, holder)
	}
}

// ofMissing turns the error [bus.ErrNotSubscribed] of a request into [bus.ErrTokenUnknown], if
// root's path names a token that does not exist.
func (h *subscriberHandlers) ofMissing(r *http.Request, err error) error {
	if !rest.Caller(r).Root || !errors.Is(err, bus.ErrNotSubscribed) {
		return err
	}
	known, failure := h.stores.FindTokens(r.Context(), []bus.Token{clientParam(r)})
	if failure == nil && len(known) == 0 {
		return bus.ErrTokenUnknown
	}
	return err
}

// named returns the subscriber of the client whose name is in the path in place of a token. Err is
// why none was found by the token, and stays the error if there is such a token. Named fails with
// [bus.ErrManyTokens] if several subscribers have the name.
func (h *subscriberHandlers) named(r *http.Request, err error) (named bus.Token, _ error) {
	if err = h.ofMissing(r, err); !errors.Is(err, bus.ErrTokenUnknown) {
		return "", err
	}
	tokens, err := h.stores.TokensNamed(r.Context(), bus.ClientName(clientParam(r)))
	if err != nil {
		return "", err
	}
	for _, token := range tokens {
		holder, err := h.holder(r, token)
		switch {
		case errors.Is(err, bus.ErrNotSubscribed):
		case err != nil:
			return "", err
		case named != "" && named != holder: // while a token is being changed two have one subscriber
			return "", bus.ErrManyTokens
		default:
			named = holder
		}
	}
	if named == "" {
		return "", bus.ErrNotSubscribed
	}
	return named, nil
}

// withoutBody is a handler that takes no body, and refuses one that says something.
func (h *subscriberHandlers) withoutBody(handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, of bus.Token) {
		if err := h.RefuseBody(w, r); err != nil {
			h.Fail(w, r, err)
			return
		}
		handle(w, r, of)
	}
}

// clientParam returns the client that a request is about: the one that root names in the path, or
// else the caller.
func clientParam(r *http.Request) bus.Token {
	return cmp.Or(bus.Token(chi.URLParam(r, "token")), rest.Caller(r).Token)
}

// logSubscriberChange logs a change of a subscriber and its caller, and the subscriber if root made
// it.
func (h *subscriberHandlers) logSubscriberChange(r *http.Request, of bus.Token, what string, fields ...slog.Attr) {
	if rest.Caller(r).Root {
		fields = append(fields, slog.String("subscriber", string(h.publicName(r, of))))
	}
	h.LogChange(r, what, fields...)
}

// respondSubscriberChanged responds with 204 and logs the change of a subscriber and its caller, or
// responds with an error.
func (h *subscriberHandlers) respondSubscriberChanged(
	w http.ResponseWriter, r *http.Request, of bus.Token, err error, what string, fields ...slog.Attr,
) {
	if err == nil {
		h.logSubscriberChange(r, of, what, fields...)
	}
	h.Respond(w, r, h.ofMissing(r, err))
}

// publicName returns the name that logs and metrics have for a client.
func (h *subscriberHandlers) publicName(r *http.Request, token bus.Token) bus.ClientName {
	names, _ := h.Auth.ClientNames(r.Context()) // without them, of a token's form
	return bus.PublicName(token, names[token])
}
