package signature

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"routemaster/internal/bus"
)

// Type is how a secret signs.
type Type string

// The types of secrets. Receivers check an HMAC with the same secret, an Ed25519 signature with its
// public key.
const (
	HMAC    Type = "hmac-sha256"
	Ed25519 Type = "ed25519"
)

// ParseType reads a type. It fails with a [bus.Invalid].
func ParseType(text string) (Type, error) {
	if t := Type(text); t == HMAC || t == Ed25519 {
		return t, nil
	}
	return "", bus.Invalidf("", "must be %s or %s", HMAC, Ed25519)
}

// The prefixes of secrets and keys. Base64 follows.
const (
	hmacPrefix    = "whsec_"
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"
)

// The sizes in bytes of an HMAC's secret: of secrets that subscribers bring, and of new ones.
const (
	minHMAC, maxHMAC = 24, 64
	newHMAC          = 32
)

// Secret signs deliveries. Only [Secret.Text] shows the secret part.
type Secret struct {
	// ID names the secret. It is random.
	ID string
	// CreatedAt is when it was added. From ExpiresAt on it signs no more; zero is never.
	CreatedAt, ExpiresAt time.Time
	// material is behind a pointer, which package fmt prints as an address.
	material *material
}

// material is either an HMAC's key or a private key.
type material struct {
	hmac    []byte
	private ed25519.PrivateKey
}

// Generate makes a random secret.
func Generate(kind Type, now time.Time) Secret {
	random := make([]byte, newHMAC) // which is also ed25519.SeedSize
	_, _ = rand.Read(random)        // never fails
	if kind == Ed25519 {
		return newSecret(&material{private: ed25519.NewKeyFromSeed(random)}, now)
	}
	return newSecret(&material{hmac: random}, now)
}

// Parse reads a secret that a subscriber brings: whsec_ and the base64 of 24 to 64 bytes, or whsk_
// and the base64 of an Ed25519 key (64 bytes, or the 32 of its seed). It fails with a
// [bus.Invalid], which does not show the text.
func Parse(text string, now time.Time) (Secret, error) {
	m, err := parseMaterial(text)
	return newSecret(m, now), err
}

// newSecret gives material an ID, which a command line does not take for a flag.
func newSecret(m *material, now time.Time) Secret {
	return Secret{ID: rand.Text(), CreatedAt: now.Truncate(time.Millisecond), material: m}
}

// IDFor is the ID of the secret that a client adds with an idempotency key: always the same one, so
// that it is added once.
func IDFor(client bus.ClientName, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", client, key))
	return base32.StdEncoding.EncodeToString(sum[:])[:len(rand.Text())]
}

// Same reports whether both would sign alike.
func (s Secret) Same(other Secret) bool { return s.Text() == other.Text() }

func parseMaterial(text string) (*material, error) {
	if encoded, ok := strings.CutPrefix(text, hmacPrefix); ok {
		if key, err := decode(encoded); err == nil && len(key) >= minHMAC && len(key) <= maxHMAC {
			return &material{hmac: key}, nil
		}
	}
	if encoded, ok := strings.CutPrefix(text, privatePrefix); ok {
		if private := parsePrivate(encoded); private != nil {
			return &material{private: private}, nil
		}
	}
	return nil, bus.Invalidf("", "must be %s and the base64 of %d to %d bytes, or %s and that of an Ed25519 private key",
		hmacPrefix, minHMAC, maxHMAC, privatePrefix)
}

// parsePrivate reads a private key, or returns nil. The second half of a key of 64 bytes is its
// public key, and must belong to the first: signing with another one gives the private key away.
func parsePrivate(encoded string) ed25519.PrivateKey {
	key, err := decode(encoded)
	switch {
	case err != nil:
	case len(key) == ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(key)
	case len(key) == ed25519.PrivateKeySize:
		if private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]); private.Equal(ed25519.PrivateKey(key)) {
			return private
		}
	}
	return nil
}

// decode reads base64 with or without padding, as the libraries of the standard do.
func decode(text string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

// Type is how the secret signs.
func (s Secret) Type() Type { return s.material.kind() }

func (m *material) kind() Type {
	if m.private != nil {
		return Ed25519
	}
	return HMAC
}

// Text is the secret itself: whsec_…, or whsk_… with the whole private key.
func (s Secret) Text() string {
	if private := s.material.private; private != nil {
		return privatePrefix + base64.StdEncoding.EncodeToString(private)
	}
	return hmacPrefix + base64.StdEncoding.EncodeToString(s.material.hmac)
}

// PublicKey is whpk_…, with which receivers check signatures; empty for an HMAC.
func (s Secret) PublicKey() string {
	if s.material.private == nil {
		return ""
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(s.material.private.Public().(ed25519.PublicKey))
}

// expired reports whether the secret signs no more.
func (s Secret) expired(at time.Time) bool { return !s.ExpiresAt.IsZero() && !at.Before(s.ExpiresAt) }

// Format implements [fmt.Formatter]: it names the secret without showing it.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "secret "+s.ID) }
