package subscriber

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"routemaster/client"
)

// Secret is a secret that deliveries are signed with. It has the JSON of the bus's GET
// /subscriber/secrets.
type Secret struct {
	ID string `json:"id"`
	// Type is "hmac-sha256" or "ed25519".
	Type string `json:"type"`
	// PublicKey, of an ed25519 secret, is what receivers check signatures with: whpk_…
	PublicKey string `json:"public_key,omitempty"`
	// CreatedAt is when it was added. It signs until ExpiresAt; zero is for good.
	CreatedAt Time `json:"created_at"`
	ExpiresAt Time `json:"expires_at"`
}

// NewSecret describes the secret to add. The zero value is a random one for hmac-sha256.
type NewSecret struct {
	// Type is "hmac-sha256" or "ed25519". It may be empty.
	Type string
	// Secret is the caller's own secret: whsec_… or whsk_…. If it is empty, the bus makes one.
	Secret string
	// OthersExpireIn is how long the existing secrets go on signing, up to 7 days: 24 hours if it is
	// nil.
	OthersExpireIn *time.Duration
	// KeepOthers keeps them from expiring, whatever OthersExpireIn is.
	KeepOthers bool
}

// Added is a secret that was added.
type Added struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	// Secret, for hmac-sha256, is what receivers check signatures with. The bus never shows it again.
	Secret string `json:"secret,omitempty"`
	// PublicKey is the same for ed25519, whose private key the bus never shows.
	PublicKey string `json:"public_key,omitempty"`
}

// AddSecret adds a secret to sign deliveries with, beside the existing ones: 409 if there are 5.
// Each call adds one, even if it is a retry after a lost response.
func (s *Subscriber) AddSecret(ctx context.Context, secret NewSecret) (added Added, err error) {
	body := map[string]any{}
	if secret.Type != "" {
		body["type"] = secret.Type
	}
	if secret.Secret != "" {
		body["secret"] = secret.Secret
	}
	switch {
	case secret.KeepOthers:
		body["expire_others_in"] = nil
	case secret.OthersExpireIn != nil:
		body["expire_others_in"] = secret.OthersExpireIn.Milliseconds()
	}
	_, err = s.client.Call(ctx, client.Request{
		Operation: "add a secret", Method: http.MethodPost, Path: s.path + "/secrets", Body: body, IdempotencyKey: rand.Text(),
	}, &added)
	return added, err
}

// Secrets lists the secrets that sign, newest first.
func (s *Subscriber) Secrets(ctx context.Context) (all []Secret, err error) {
	err = s.call(ctx, "list secrets", http.MethodGet, "/secrets", nil, &all)
	return all, err
}

// DeleteSecret removes a secret, so that deliveries are not signed with it any more: 404 if there
// is none.
func (s *Subscriber) DeleteSecret(ctx context.Context, id string) error {
	return s.call(ctx, "delete a secret", http.MethodDelete, "/secrets/"+url.PathEscape(id), nil, nil)
}
