package bus

import (
	"crypto/sha256"
	"time"
)

// IdempotencyKey identifies a request of a publisher, which can then repeat it safely.
type IdempotencyKey struct {
	// Key is the publisher's name for the request. It has no line break.
	Key string
	// Digest is of the request itself: the same key with another digest is refused.
	Digest string
	// TTL is how long the key is remembered at least after its last use;
	// [DefaultIdempotencyTTL] if 0. It may be remembered a quarter longer.
	TTL time.Duration
}

// digestBytes is how many bytes are kept of the SHA-256 of a key, and as many of the SHA-256 of its
// request. Redis needs 16 bytes for this length including its overhead, and 32 for one byte more.
//
// 112 bits suffice. Two of 100,000 keys have the same digest by accident with a probability of
// 10^-24. To find a key with the digest of another client's takes 2^112 hashes, or 2^95 to match
// any of 100,000. To find two keys, or two requests, of one's own with the same digest takes 2^56,
// which is feasible. It harms only the client that does so, because each client has its own keys.
const digestBytes = 14

// Digests returns the digests of the key, and of the key with its request: bytes, not text.
func (k *IdempotencyKey) Digests() (key, request string) {
	ofKey, ofRequest := sha256.Sum256([]byte(k.Key)), sha256.Sum256([]byte(k.Key+"\n"+k.Digest))
	return string(ofKey[:digestBytes]), string(ofRequest[:digestBytes])
}
