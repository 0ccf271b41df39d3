package rest

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"time"

	"routemaster/internal/bus"
)

// maxIdempotencyKey is the maximum length of an idempotency key.
const maxIdempotencyKey = 128

// ReadIdempotencyKey reads the Idempotency-Key of a request, nil if it has none, and how long the
// key is to be remembered: for the fallback if the request does not say. Two requests are the same
// if they have the same path and body, the text. The error is a [bus.Invalid].
func ReadIdempotencyKey(r *http.Request, text []byte, fallback time.Duration) (*bus.IdempotencyKey, error) {
	key, err := IdempotencyKey(r)
	if err != nil {
		return nil, err
	}
	ttls := r.Header.Values("Idempotency-Expires-In")
	if key == "" {
		if len(ttls) > 0 {
			return nil, bus.Invalidf("", "the Idempotency-Expires-In header is of use only beside an Idempotency-Key; send both or neither")
		}
		return nil, nil
	}
	ttl, err := readIdempotencyTTL(ttls, fallback)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	digest.Write([]byte(r.URL.Path + "\n"))
	digest.Write(text)
	return &bus.IdempotencyKey{Key: key, Digest: string(digest.Sum(nil)), TTL: ttl}, nil
}

// IdempotencyKey reads the header of this name alone; it is empty if the request has none. The
// error is a [bus.Invalid].
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if len(values) != 1 || !isVisible(values[0], maxIdempotencyKey) {
		return "", bus.Invalidf("", "the Idempotency-Key header must be one value of 1 to %d visible ASCII characters", maxIdempotencyKey)
	}
	return values[0], nil
}

// readIdempotencyTTL reads the values of the Idempotency-Expires-In header, in s.
func readIdempotencyTTL(values []string, fallback time.Duration) (time.Duration, error) {
	const (
		minTTL = int(bus.MinIdempotencyTTL / time.Second)
		maxTTL = int(bus.MaxIdempotencyTTL / time.Second)
	)
	if len(values) == 0 {
		return fallback, nil
	}
	seconds, err := strconv.Atoi(values[0])
	if len(values) != 1 || err != nil || seconds < minTTL || seconds > maxTTL {
		return 0, bus.Invalidf("", "the Idempotency-Expires-In header must be one integer from %d to %d, in s", minTTL, maxTTL)
	}
	return time.Duration(seconds) * time.Second, nil
}
