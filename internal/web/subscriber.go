package web

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/web/rest"
)

// subscriberHandler handles a request that is about a subscriber, by the token that holds the
// subscription.
type subscriberHandler func(w http.ResponseWriter, r *http.Request, of bus.Token)

// ofSubscriber finds the subscriber for a handler: the client that root names in the path, or else
// the caller. It responds with 404 if there is none.
func (a *API) ofSubscriber(handle subscriberHandler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := cmp.Or(bus.Token(chi.URLParam(r, "token")), rest.Caller(r).Token)
		holder, err := a.store.Subscriber(r.Context(), token)
		if err != nil {
			a.Fail(w, r, err)
			return
		}
		handle(w, r, holder)
	})
}

// logSubscriberChange logs who changed what of a subscriber, and whose it is if root did.
func (a *API) logSubscriberChange(r *http.Request, of bus.Token, what string, fields ...slog.Attr) {
	if rest.Caller(r).Root {
		fields = append(fields, slog.String("subscriber", string(a.publicName(r, of))))
	}
	a.LogChange(r, what, fields...)
}

// respondSubscriberChanged responds with 204 and logs who changed what of a subscriber, or responds
// with an error.
func (a *API) respondSubscriberChanged(
	w http.ResponseWriter, r *http.Request, of bus.Token, err error, what string, fields ...slog.Attr,
) {
	if err == nil {
		a.logSubscriberChange(r, of, what, fields...)
	}
	a.Respond(w, r, err)
}

// publicName returns the name that logs and metrics have for a client.
func (a *API) publicName(r *http.Request, token bus.Token) bus.ClientName {
	names, _ := a.Auth.ClientNames(r.Context()) // without them, of a token's form
	return bus.PublicName(token, names[token])
}

// orNull returns a value for JSON: null if it is the zero value.
func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
