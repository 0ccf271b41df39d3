package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"

	"routemaster/client"
	"routemaster/internal/bus"
)

// TokenID stands for a token in pages and forms: tokens themselves are shown nowhere.
func TokenID(token string) string {
	sum := sha256.Sum256([]byte("console" + token))
	return hex.EncodeToString(sum[:])[:12]
}

// Tokens returns the tokens of the clients of a public name. Only root may ask.
func (v *Visit) Tokens(name string) (some []client.Token, err error) {
	_, err = v.Bus.Call(v.Context(), client.Request{
		Operation: "list tokens", Method: http.MethodGet, Path: "/api_tokens?client=" + url.QueryEscape(name),
	}, &some)
	return some, err
}

// NameOf returns the public name for a name that the API shows. The API shows a client's token to
// root and to the client itself, and the public name to others.
func (v *Visit) NameOf(shown string) (string, error) {
	switch {
	case shown == "":
		return "", nil
	case v.IsOwn(shown):
		return v.Client, nil
	case !v.Root:
		return shown, nil
	}
	all, err := v.Bus.Tokens(v.Context())
	for _, t := range all {
		if t.Token == shown {
			return PublicName(t), err
		}
	}
	return string(bus.LegacyClientName(bus.Token(shown))), err
}

// PublicName returns the name under which other clients see a token's client.
func PublicName(t client.Token) string {
	return string(bus.PublicName(bus.Token(t.Token), bus.ClientName(t.Name)))
}

// HasStatus reports whether an error is an answer of the bus with a status.
func HasStatus(err error, status int) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == status
}
