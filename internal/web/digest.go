package web

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
	"net/http"
	"strconv"
	"strings"
	"time"

	auth "github.com/abbot/go-http-auth"
)

// realm names what the credentials are for.
const realm = "routemaster"

// digester makes and verifies what HTTP Digest authentication (RFC 7616) needs: SHA-256 and MD5, qop=auth.
// A nonce carries its time and a seal made with the root key, so that every process with the same
// root key can verify the nonces of the others, and remembers nothing for those that are never used.
type digester struct {
	key [sha256.Size]byte
	ttl time.Duration
	now func() time.Time

	seen *seenNonces
}

// A nonce is 8 bytes of time (ms), 8 of chance, and a seal of both.
const (
	sealedLen = 16
	sealLen   = 16
)

// clockSkew is how far the clock of another process may be ahead of ours.
const clockSkew = time.Minute

// digestAlgorithms are those offered, the stronger first.
var digestAlgorithms = []struct {
	name string
	hash func() hash.Hash
}{{"SHA-256", sha256.New}, {"MD5", md5.New}}

func newDigester(rootKey string, ttl time.Duration, now func() time.Time) *digester {
	return &digester{key: sha256.Sum256([]byte("routemaster digest nonce " + rootKey)), ttl: ttl, now: now, seen: newSeenNonces()}
}

// challenges are the WWW-Authenticate headers that ask for Digest credentials. Stale says that the credentials
// were right, but not the nonce: the client tries again by itself.
func (d *digester) challenges(stale bool) (headers []string) {
	nonce := d.nonce()
	for _, algorithm := range digestAlgorithms {
		header := fmt.Sprintf(`Digest realm="%s", qop="auth", algorithm=%s, nonce="%s", charset=UTF-8`, realm, algorithm.name, nonce)
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

// open reads a nonce; ok is false when it is not one of ours.
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

// use notes the use of a nonce, and reports whether it is still good: it has not expired, and the count has grown
// since its last use.
func (d *digester) use(nonce openNonce, count uint64) bool {
	return !nonce.expired && d.seen.count(nonce, count, d.now().Add(-d.ttl))
}

// digestCredentials are the fields of an Authorization header that matter.
type digestCredentials struct {
	username, nonce, uri, cnonce, nc, response string
	count                                      uint64
	hash                                       func() hash.Hash
}

// parseDigest reads an Authorization header. It is not ok when a field is missing or not among what was offered.
func parseDigest(header string) (c digestCredentials, ok bool) {
	fields := map[string]string{"algorithm": "MD5"}
	for _, field := range auth.ParseList(header) {
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
	ok = c.hash != nil && fields["realm"] == realm && fields["qop"] == "auth" && err == nil && len(c.nc) == 8 && c.cnonce != ""
	return c, ok
}

// matches reports whether the response was made with a password.
func (c digestCredentials) matches(method, password string) bool {
	sum := func(parts ...string) string {
		h := c.hash()
		h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	want := sum(sum(c.username, realm, password), c.nonce, c.nc, c.cnonce, "auth", sum(method, c.uri))
	return subtle.ConstantTimeCompare([]byte(want), []byte(c.response)) == 1
}

// digest returns the client that a request's Digest credentials name. Stale says that they would be
// right with a fresh nonce.
func (s *Server) digest(r *http.Request, header string) (found client, ok, stale bool, err error) {
	credentials, ok := parseDigest(header)
	if !ok || credentials.uri != r.RequestURI {
		return client{}, false, false, nil
	}
	nonce, ok := s.digester.open(credentials.nonce)
	if !ok {
		return client{}, false, false, nil
	}
	found, ok, err = s.directory.findNamed(r.Context(), credentials.username, func(password string) bool {
		return credentials.matches(r.Method, password)
	})
	if err != nil || !ok {
		return client{}, false, false, err
	}
	if !s.digester.use(nonce, credentials.count) {
		return client{}, false, true, nil
	}
	return found, true, false, nil
}
