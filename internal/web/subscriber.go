package web

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/inspect"
	"routemaster/internal/signature"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/web/rest"
)

// SubscriberConfig configures [subscriberHandlers].
type SubscriberConfig struct {
	// Deny lists the addresses that a callback must not have.
	Deny bus.DenyList
	// MaxTopics is the maximum number of topics of a subscription; 0 is no limit.
	MaxTopics int
	// Secrets has the keys that signing secrets are sealed with.
	Secrets signature.Keyring
	// Recorder, if given, counts what clients redeliver and remove.
	Recorder *telemetry.Recorder
}

// subscriberHandlers serve the requests that are about one client's subscription.
type subscriberHandlers struct {
	*rest.Service
	config     SubscriberConfig
	stores     *store.Bus
	partitions []subscriberPartition // by number
}

// subscriberPartition is what there is in each partition of the bus.
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

// SubscriptionRoutes adds the routes that existing clients know, at a path that stands for a
// client: the caller, or the one whose token is in the path, which only root may send.
func (h *subscriberHandlers) SubscriptionRoutes(r chi.Router, path string) {
	r.Post(path, h.postSubscription)
	r.Delete(path, h.deleteSubscription)
	r.Delete(path+"/topics/{topic}", h.deleteSubscriptionTopic)
}

// Routes adds all routes, at a path that stands for a client likewise. At those that are not in
// [subscriberHandlers.SubscriptionRoutes] the path may also have the name of a client with one
// subscriber.
func (h *subscriberHandlers) Routes(r chi.Router, path string) {
	h.SubscriptionRoutes(r, path)
	route := func(method, below string, handle handler, query ...string) {
		r.With(rest.AllowQuery(query...)).Method(method, path+below, h.ofSubscriber(handle))
	}
	// What it has set, and how it is.
	r.With(rest.AllowQuery()).Get(path, h.get) // which finds the subscriber by itself
	route(http.MethodPatch, "", h.patch)
	route(http.MethodPost, "/pause", h.pause)
	route(http.MethodPost, "/resume", h.withoutBody(h.resume))
	route(http.MethodPost, "/retry", h.withoutBody(h.retry))
	route(http.MethodPost, "/test", h.withoutBody(h.test))
	// What is queued, and how its deliveries go.
	route(http.MethodGet, "/attempts", h.getAttempts, "batch", "outcome", "limit", "after")
	route(http.MethodGet, "/batches", h.getBatches, "limit", "after")
	route(http.MethodGet, "/batches/{id}", h.getBatch, "from")
	route(http.MethodDelete, "/batches/{id}", h.deleteBatch)
	// What the bus has given up on.
	route(http.MethodGet, "/dead_letters", h.getDeadLetters, "reason", "status", "since", "before", "limit", "after")
	route(http.MethodGet, "/dead_letters/count", h.countDeadLetters, "reason", "status", "since", "before")
	route(http.MethodGet, "/dead_letters/{id}", h.getDeadLetter, "from")
	route(http.MethodDelete, "/dead_letters/{id}", h.deleteDeadLetter)
	route(http.MethodPost, "/dead_letters/{id}/redeliver", h.withoutBody(h.redeliverDeadLetter))
	route(http.MethodPost, "/dead_letters/redeliver", h.redeliverDeadLetters)
	route(http.MethodPost, "/dead_letters/discard", h.discardDeadLetters)
	// What it gets again of topics' histories.
	route(http.MethodGet, "/replays", h.getReplays, "limit", "after")
	route(http.MethodPost, "/replays", h.postReplay)
	route(http.MethodDelete, "/replays/{id}", h.deleteReplay)
	// What deliveries are signed with.
	route(http.MethodGet, "/secrets", h.getSecrets, "limit", "after")
	route(http.MethodPost, "/secrets", h.postSecret)
	route(http.MethodDelete, "/secrets/{id}", h.deleteSecret)
}

// handler handles a request that is about a subscriber, by the token that holds the subscription.
type handler func(w http.ResponseWriter, r *http.Request, of bus.Token)

// ofSubscriber finds the subscriber for a handler, or responds with 404 if there is none.
func (h *subscriberHandlers) ofSubscriber(handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := clientParam(r)
		holder, err := h.at(client).inspector.Holder(r.Context(), client)
		if err != nil {
			holder, err = h.named(r, err)
		}
		if err != nil {
			h.Fail(w, r, err)
			return
		}
		handle(w, r, holder)
	})
}

// ofMissing is the error of a request about a client: for a token in its path that nobody has,
// [bus.ErrTokenUnknown] in place of [bus.ErrNotSubscribed].
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
		holder, err := h.at(token).inspector.Holder(r.Context(), token)
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

// logSubscriberChange logs who changed what of a subscriber, and whose it is if root did.
func (h *subscriberHandlers) logSubscriberChange(r *http.Request, of bus.Token, what string, fields ...slog.Attr) {
	if rest.Caller(r).Root {
		fields = append(fields, slog.String("subscriber", string(h.publicName(r, of))))
	}
	h.LogChange(r, what, fields...)
}

// respondSubscriberChanged responds with 204 and logs who changed what of a subscriber, or responds
// with an error.
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
