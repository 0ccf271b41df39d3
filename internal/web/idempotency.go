package web

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/store"
)

// maxKey is the most characters of an idempotency key.
const maxKey = 128

// readIdempotencyKey reads the Idempotency-Key of a request, if it has one, and how long it is to be remembered. Requests are the same
// if they have the same path and body.
func (s *Server) readIdempotencyKey(r *http.Request, text []byte) (*store.IdempotencyKey, error) {
	values, lives := r.Header.Values("Idempotency-Key"), r.Header.Values("Idempotency-Expires-In")
	if len(values) == 0 {
		if len(lives) > 0 {
			return nil, bus.Invalidf("", "the Idempotency-Expires-In header is of use only beside an Idempotency-Key; send both or neither")
		}
		return nil, nil
	}
	key := values[0]
	if len(values) != 1 || !isVisible(key, maxKey) {
		return nil, bus.Invalidf("", "the Idempotency-Key header must be one value of 1 to %d visible ASCII characters", maxKey)
	}
	ttl, err := readKeyTTL(lives, s.config.IdempotencyTTL)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	digest.Write([]byte(r.URL.Path + "\n"))
	digest.Write(text)
	return &store.IdempotencyKey{Key: key, Digest: string(digest.Sum(nil)), TTL: ttl}, nil
}

// readKeyTTL reads the values of Idempotency-Expires-In, in s.
func readKeyTTL(values []string, fallback time.Duration) (time.Duration, error) {
	const least, most = int(bus.MinIdempotencyTTL / time.Second), int(bus.MaxIdempotencyTTL / time.Second)
	if len(values) == 0 {
		return fallback, nil
	}
	seconds, err := strconv.Atoi(values[0])
	if len(values) != 1 || err != nil || seconds < least || seconds > most {
		return 0, bus.Invalidf("", "the Idempotency-Expires-In header must be one integer from %d to %d, in s", least, most)
	}
	return time.Duration(seconds) * time.Second, nil
}
