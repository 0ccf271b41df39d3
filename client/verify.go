package client

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxSignatureAge is how far the time of a signed delivery may be from a receiver's clock.
const MaxSignatureAge = 5 * time.Minute

// The reasons for which a [Verifier] refuses a delivery.
var (
	// ErrUnsigned means that a delivery lacks a header of the standard, or has it twice.
	ErrUnsigned = errors.New("the delivery is not signed: it must have webhook-id, webhook-timestamp and webhook-signature once each")
	// ErrSignatureTime means that the delivery's time is too far from now: it may be a recorded
	// delivery, or a clock is wrong.
	ErrSignatureTime = errors.New("the delivery is not from now: its webhook-timestamp is more than 5 minutes off")
	// ErrSignature means that no signature fits: the delivery was signed with another secret, or was
	// changed on the way.
	ErrSignature = errors.New("no signature of the delivery fits")
)

// Verifier checks the signatures of deliveries, as Standard Webhooks 1.0 says. It is safe for
// concurrent use, and does not print its secrets.
type Verifier struct{ keys *[]verifierKey }

// verifierKey checks the signatures of one version.
type verifierKey struct {
	// version is how a signature begins: "v1," for an HMAC, "v1a," for Ed25519.
	version string
	// hmac or public is set.
	hmac   []byte
	public ed25519.PublicKey
}

// NewVerifier returns a verifier for one or more secrets (whsec_…) or public keys (whpk_…). It
// accepts a delivery if one of them fits. So a receiver that has both accepts every delivery while
// a secret is replaced. The error names a secret by its number only.
func NewVerifier(secrets ...string) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a verifier needs a secret or a public key")
	}
	var keys []verifierKey
	for i, text := range secrets {
		key, ok := parseVerifierKey(text)
		if !ok {
			return nil, fmt.Errorf("secret %d must be whsec_ or whpk_ and base64", i+1)
		}
		keys = append(keys, key)
	}
	return &Verifier{&keys}, nil
}

func parseVerifierKey(text string) (verifierKey, bool) {
	prefix, encoded, _ := strings.Cut(text, "_")
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	switch {
	case err == nil && prefix == "whsec" && len(key) > 0:
		return verifierKey{version: "v1,", hmac: key}, true
	case err == nil && prefix == "whpk" && len(key) == ed25519.PublicKeySize:
		return verifierKey{version: "v1a,", public: key}, true
	}
	return verifierKey{}, false
}

// Verify checks that a delivery with a header and a body was signed by the bus within
// [MaxSignatureAge] of at, the time of its receipt. The body must be as it was received, byte for
// byte. It fails with [ErrUnsigned], [ErrSignatureTime] or [ErrSignature].
func (v *Verifier) Verify(header http.Header, body []byte, at time.Time) error {
	values := make([]string, 3)
	for i, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		all := header.Values(name)
		if len(all) != 1 || all[0] == "" {
			return ErrUnsigned
		}
		values[i] = all[0]
	}
	id, timestamp, signatures := values[0], values[1], strings.Fields(values[2])
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return ErrUnsigned
	}
	if signed := time.Unix(seconds, 0); signed.Before(at.Add(-MaxSignatureAge)) || signed.After(at.Add(MaxSignatureAge)) {
		return ErrSignatureTime
	}
	message := append([]byte(id+"."+timestamp+"."), body...)
	for _, key := range *v.keys {
		for _, signature := range signatures {
			if key.fits(message, signature) {
				return nil
			}
		}
	}
	return ErrSignature
}

// fits reports whether a signature is of this key's version, and of the message.
func (k verifierKey) fits(message []byte, signature string) bool {
	encoded, ours := strings.CutPrefix(signature, k.version)
	if !ours {
		return false
	}
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}
	if k.public != nil {
		return ed25519.Verify(k.public, message, sum)
	}
	mac := hmac.New(sha256.New, k.hmac)
	mac.Write(message)
	return hmac.Equal(sum, mac.Sum(nil))
}
