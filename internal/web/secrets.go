package web

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"routemaster/internal/bus"
	"routemaster/internal/signature"
	"routemaster/internal/store"
	"routemaster/internal/web/rest"
)

var (
	secretKey = parameter{
		name: "Idempotency-Key", in: "header", key: true, component: "SecretKey",
		words: "With the same key, the same client gets the same secret again, while it is not expired. 409 if " +
			"the request is for another type or brings another secret.",
	}
	tooManySecrets = problem{
		http.StatusConflict,
		"There are five secrets that have not expired.",
		"TooManySecrets",
	}
)

// secretOperations are the operations on signing secrets.
func (h *subscriberHandlers) secretOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/subscriber/secrets", handle: h.ofSubscriber(h.getSecrets), who: clientsOnly,
			id: "listSecrets", tag: "subscribers",
			summary: "List the signing secrets",
			params:  []parameter{pageLimitOrAll, pageAfter},
			returns: pages("The secrets that have not expired, newest first, without what is secret.", []secretView{}),
			fails:   []problem{notFound},
		},
		{
			method: http.MethodPost, path: "/subscriber/secrets", handle: h.ofSubscriber(h.postSecret), who: clientsOnly,
			id: "addSecret", tag: "subscribers",
			summary: "Add a signing secret",
			params:  []parameter{secretKey},
			body: &body{
				of:       secretRequest{},
				example:  `{"type":"hmac-sha256","expire_others_in":3600000}`,
				optional: true,
			},
			returns: returns(http.StatusCreated, "Deliveries are signed with it from the next one on.", addedSecretView{}),
			fails:   []problem{notFound, tooManySecrets},
		},
		{
			method: http.MethodDelete, path: "/subscriber/secrets/{id}", handle: h.ofSubscriber(h.deleteSecret), who: clientsOnly,
			id: "removeSecret", tag: "subscribers",
			summary: "Remove a signing secret",
			params:  []parameter{{name: "id", in: "path", words: "The secret."}},
			returns: returns(http.StatusNoContent, "It signs no more. Without another one deliveries are not signed.", nil),
			fails:   []problem{notFound},
		},
	}
}

// secretView is a signing secret, without its secret part.
type secretView struct {
	ID   string         `json:"id"`
	Type signature.Type `json:"type" api:"enum=hmac-sha256|ed25519"`
	// `whpk_…`, of an Ed25519 key.
	PublicKey string `json:"public_key,omitempty"`
	// In ms since the Unix epoch.
	CreatedAt int64 `json:"created_at"`
	// From when it signs no more, in ms since the Unix epoch; null is never.
	ExpiresAt *int64 `json:"expires_at"`
}

// addedSecretView is a secret as only the response to its making shows it.
type addedSecretView struct {
	ID   string         `json:"id"`
	Type signature.Type `json:"type" api:"enum=hmac-sha256|ed25519"`
	// `whsec_…`, in this response only; not of an Ed25519 key.
	Secret string `json:"secret,omitempty"`
	// `whpk_…`, of an Ed25519 key.
	PublicKey string `json:"public_key,omitempty"`
}

// getSecrets lists the secrets that sign.
func (h *subscriberHandlers) getSecrets(w http.ResponseWriter, r *http.Request, of bus.Token) {
	q := rest.ReadQuery(r)
	part := q.PartOfAll()
	if err := q.Err(); err != nil {
		h.Fail(w, r, err)
		return
	}
	all, err := h.at(of).secrets.List(r.Context(), of)
	current, next := rest.Take(part, all.Current(h.Now()), func(one signature.Stored) (int64, string) { return one.CreatedAt, one.ID })
	views := []secretView{}
	for _, secret := range current {
		views = append(views, secretView{
			ID: secret.ID, Type: secret.Type, PublicKey: secret.PublicKey,
			CreatedAt: secret.CreatedAt, ExpiresAt: rest.OrNull(secret.ExpiresAt),
		})
	}
	h.RespondPage(w, r, views, next, err)
}

// postSecret adds a secret, and shows it.
func (h *subscriberHandlers) postSecret(w http.ResponseWriter, r *http.Request, of bus.Token) {
	secret, err := h.addSecret(w, r, of)
	if err != nil {
		h.Fail(w, r, err)
		return
	}
	view := addedSecretView{ID: secret.ID, Type: secret.Type(), PublicKey: secret.PublicKey()}
	if view.Type == signature.HMAC {
		view.Secret = secret.Text()
	}
	rest.WriteJSON(w, http.StatusCreated, view)
}

// addSecret adds the secret of a request, or returns the one that an earlier request of the client
// has added with the same idempotency key.
func (h *subscriberHandlers) addSecret(w http.ResponseWriter, r *http.Request, of bus.Token) (signature.Secret, error) {
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return signature.Secret{}, err
	}
	sent, err := h.readSecret(w, r, h.Now())
	if err != nil {
		return signature.Secret{}, err
	}
	secret := sent.secret
	if key != "" {
		secret.ID = signature.IDFor(rest.Caller(r).PublicName(), key)
	}
	err = h.at(of).secrets.Add(r.Context(), of, secret.Seal(h.config.Secrets), sent.othersExpire, h.Now())
	if there, is := errors.AsType[*store.SecretExistsError](err); is {
		earlier, err := there.Open(h.config.Secrets)
		if err == nil && (earlier.Type() != secret.Type() || sent.brought && !earlier.Same(secret)) {
			err = bus.ErrIdempotencyKeyReused
		}
		return earlier, err
	}
	if err == nil {
		h.logSubscriberChange(r, of, "added a signing secret", slog.String("secret", secret.ID), slog.String("type", string(secret.Type())))
	}
	return secret, err
}

// When the other secrets expire, unless the request says when, and at the latest.
const (
	defaultExpiry = 24 * time.Hour
	maxExpiry     = 7 * 24 * time.Hour
)

// sentSecret is a new secret.
type sentSecret struct {
	secret signature.Secret
	// brought is whether the request has it; else it was made.
	brought bool
	// othersExpire is when the others expire: zero for never.
	othersExpire time.Time
}

// secretRequest is a signing secret as clients send it.
type secretRequest struct {
	// HMAC if left out or null; the type of `secret`, if that is given.
	Type *string `json:"type" api:"enum=hmac-sha256|ed25519"`
	// A secret of your own: `whsec_` and the base64 of 24 to 64 bytes, or `whsk_` and the base64 of an
	// Ed25519 private key. Made if left out or null.
	Secret *string `json:"secret" api:"format=password"`
	// ms after which the other secrets expire; null is never. 86400000 if left out.
	ExpireOthersIn rest.Nullable[int64] `json:"expire_others_in" api:"minimum=0 maximum=604800000"`
}

// readSecret reads a new secret, or makes it.
func (h *subscriberHandlers) readSecret(w http.ResponseWriter, r *http.Request, now time.Time) (s sentSecret, err error) {
	var sent secretRequest
	if err := h.ReadOptionalJSON(w, r, rest.MaxValueBody, &sent); err != nil {
		return s, err
	}
	expiry := sent.ExpireOthersIn
	switch {
	case !expiry.Sent:
		s.othersExpire = now.Add(defaultExpiry)
	case expiry.Value == nil:
	case *expiry.Value < 0 || *expiry.Value > maxExpiry.Milliseconds():
		return s, bus.Invalidf("/expire_others_in", "must be 0 to %d ms, or null for never", maxExpiry.Milliseconds())
	default:
		s.othersExpire = now.Add(time.Duration(*expiry.Value) * time.Millisecond)
	}
	s.brought = sent.Secret != nil
	s.secret, err = newSecret(sent.Type, sent.Secret, now)
	return s, err
}

// newSecret makes a secret of a type, or reads one that was brought, which must be of the type if
// that is given.
func newSecret(kind, text *string, now time.Time) (secret signature.Secret, err error) {
	wanted := signature.HMAC
	if kind != nil {
		if wanted, err = signature.ParseType(*kind); err != nil {
			return secret, bus.At("/type", err)
		}
	}
	if text == nil {
		return signature.Generate(wanted, now), nil
	}
	if secret, err = signature.Parse(*text, now); err != nil {
		return secret, bus.At("/secret", err)
	}
	if kind != nil && secret.Type() != wanted {
		return secret, bus.Invalidf("/secret", "must be of the type %s, or leave type out", wanted)
	}
	return secret, nil
}

// deleteSecret removes a secret.
func (h *subscriberHandlers) deleteSecret(w http.ResponseWriter, r *http.Request, of bus.Token) {
	id := chi.URLParam(r, "id")
	err := h.at(of).secrets.Delete(r.Context(), of, id, h.Now())
	h.respondSubscriberChanged(w, r, of, err, "removed a signing secret", slog.String("secret", id))
}
