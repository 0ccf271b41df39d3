package rest

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"

	httpauth "github.com/abbot/go-http-auth"
)

// realm is the realm of the challenges.
const realm = "routemaster"

// digester makes challenges and verifies nonces of HTTP Digest authentication (RFC 7616), with
// MD5 and SHA-256, and qop=auth. A nonce carries its time and a seal made with the root key. So
// every process with the same root key can verify the nonces of the others, and nothing is stored
// for nonces that are never used.
type digester struct {
	key [sha256.Size]byte
	ttl time.Duration
	now func() time.Time

	seen *seenNonces
}

// A nonce is 8 bytes of time (ms since the Unix epoch), 8 random bytes, and a seal of both.
const (
	sealedLen = 16
	sealLen   = 16
)

// clockSkew is how far the clock of another process may be ahead of ours.
const clockSkew = time.Minute

// digestAlgorithms are the algorithms offered. MD5 is first: common clients, such as Python's
// urllib, read one challenge, and fail on an algorithm that they do not know. Clients that read all
// may take the stronger one.
var digestAlgorithms = []struct {
	name string
	hash func() hash.Hash
}{{"MD5", md5.New}, {"SHA-256", sha256.New}}

func newDigester(rootKey string, ttl time.Duration, now func() time.Time) *digester {
	key := sha256.Sum256([]byte("routemaster digest nonce " + rootKey))
	return &digester{key: key, ttl: ttl, now: now, seen: newSeenNonces()}
}

// challenges returns the WWW-Authenticate headers that ask for Digest credentials. Stale says that
// the credentials were right, but not the nonce.
func (d *digester) challenges(stale bool) (headers []string) {
	nonce := d.nonce()
	for _, algorithm := range digestAlgorithms {
		header := fmt.Sprintf(`Digest realm="%s", qop="auth", algorithm=%s, nonce="%s", charset=UTF-8`,
			realm, algorithm.name, nonce)
		if stale {
			header += ", stale=true"
		}
		headers = append(headers, header)
	}
	return headers
}

func (d *digester) nonce() string {
	nonce := binary.BigEndian.AppendUint64(nil, uint64(d.now().UnixMilli()))
	nonce = append(nonce, make([]byte, 8)...)
	_, _ = rand.Read(nonce[8:])
	seal := d.seal(nonce)
	return base64.RawURLEncoding.EncodeToString(append(nonce, seal[:]...))
}

func (d *digester) seal(sealed []byte) [sealLen]byte {
	mac := hmac.New(sha256.New, d.key[:])
	mac.Write(sealed)
	return [sealLen]byte(mac.Sum(nil))
}

// open reads a nonce. It is not ok when the nonce was not made with our root key.
func (d *digester) open(nonce string) (opened openNonce, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(nonce)
	if err != nil || len(raw) != sealedLen+sealLen {
		return opened, false
	}
	opened.madeAt = time.UnixMilli(int64(binary.BigEndian.Uint64(raw)))
	opened.seal = d.seal(raw[:sealedLen])
	age := d.now().Sub(opened.madeAt)
	opened.expired = age > d.ttl || age < -clockSkew
	return opened, hmac.Equal(opened.seal[:], raw[sealedLen:])
}

// use notes the use of a nonce, and reports whether it is still valid: it has not expired, and its
// count has grown since its last use.
func (d *digester) use(nonce openNonce, count uint64) bool {
	return !nonce.expired && d.seen.count(nonce, count, d.now().Add(-d.ttl))
}

// digestCredentials are the fields of an Authorization header that are checked.
type digestCredentials struct {
	username, nonce, uri, cnonce, nc, response string
	count                                      uint64
	hash                                       func() hash.Hash
}

// parseDigest reads an Authorization header. It is not ok when a field is missing, or has a value
// that was not offered.
func parseDigest(header string) (c digestCredentials, ok bool) {
	fields := map[string]string{"algorithm": "MD5"}
	for _, field := range httpauth.ParseList(header) {
		name, value, _ := strings.Cut(field, "=")
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		fields[strings.ToLower(strings.TrimSpace(name))] = value
	}
	for _, algorithm := range digestAlgorithms {
		if strings.EqualFold(fields["algorithm"], algorithm.name) {
			c.hash = algorithm.hash
		}
	}
	c.username, c.nonce, c.uri = fields["username"], fields["nonce"], fields["uri"]
	c.cnonce, c.nc, c.response = fields["cnonce"], fields["nc"], strings.ToLower(fields["response"])
	count, err := strconv.ParseUint(c.nc, 16, 32)
	c.count = count
	ok = c.hash != nil && fields["realm"] == realm && fields["qop"] == "auth" &&
		err == nil && len(c.nc) == 8 && c.cnonce != ""
	return c, ok
}

// matches reports whether the response was computed from a password.
func (c digestCredentials) matches(method, password string) bool {
	sum := func(parts ...string) string {
		h := c.hash()
		h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	want := sum(sum(c.username, realm, password), c.nonce, c.nc, c.cnonce, "auth", sum(method, c.uri))
	return subtle.ConstantTimeCompare([]byte(want), []byte(c.response)) == 1
}
