package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// How long sessions last. A look-only one is for screens on walls.
const (
	ttl         = 12 * time.Hour
	lookOnlyTTL = 30 * 24 * time.Hour
)

const (
	// maxSessions is how many sessions there may be, and maxOwn how many of one client, or of root. A
	// new one ends that which would end first: a client that begins many ends its own.
	maxSessions, maxOwn = 1000, 20
	// redisTimeout bounds a call to Redis, so that pages appear while Redis is away.
	redisTimeout = 500 * time.Millisecond
)

//go:embed lua
var luaFiles embed.FS

// These are described in their headers.
var (
	library          = rdb.Library{rdb.ReadLua(luaFiles, "keys")}
	scriptSessionPut = rdb.NewScript(library, rdb.ReadLua(luaFiles, "session_put"))
	scriptCodePut    = rdb.NewScript(library, rdb.ReadLua(luaFiles, "code_put"))
)

// ErrNone says that there is no such session, or not any more.
var ErrNone = errors.New("no such session")

// Session is a login.
type Session struct {
	// Token is the client's token; empty for root.
	Token bus.Token
	// Client is the public name of the client, or of root.
	Client string
	// Person is the name that was given at the login; it may be empty.
	Person string
	// From is where the login came from.
	From     string
	LookOnly bool
	// MadeAt is when it began.
	MadeAt time.Time
	// Stale is set if Redis could not be asked whether the session has ended.
	Stale bool
}

// Root is whether the session is the operator's.
func (s Session) Root() bool { return s.Token == "" }

// TTL is how long the session lasts in all.
func (s Session) TTL() time.Duration {
	if s.LookOnly {
		return lookOnlyTTL
	}
	return ttl
}

func (s Session) ends() time.Time { return s.MadeAt.Add(s.TTL()) }

// Store is where sessions are. It is safe for concurrent use.
type Store struct {
	redis   *rdb.Partition
	keys    layout.Keys
	rootKey []byte
	now     func() time.Time
	recent  *memory
}

// NewSessions returns the sessions in a partition of Redis.
func NewSessions(redis *rdb.Partition, rootKey string, now func() time.Time) *Store {
	return &Store{redis, layout.Keys{Namespace: redis.Namespace()}, []byte(rootKey), now, &memory{now: now}}
}

// Begin begins a session, and returns its cookie. It sets MadeAt by itself.
// The error may be [bus.ErrUnavailable] or a [DamagedError].
func (s *Store) Begin(ctx context.Context, session Session) (cookie string, err error) {
	cookie = newSecret()
	session.MadeAt = s.now()
	err = s.redis.Run(ctx, scriptSessionPut, ID(cookie), session.MadeAt.UnixMilli(), session.ends().UnixMilli(), maxSessions, maxOwn,
		"token", string(session.Token), "client", session.Client, "person", session.Person, "from", session.From,
		"look_only", strconv.FormatBool(session.LookOnly), "made_at", session.MadeAt.UnixMilli(), "proof", s.proof(cookie, session)).Err()
	return cookie, s.wrap("begin a session", err)
}

// Find returns the session of a cookie. While Redis is unavailable it returns the last known state,
// for 15 min. The error is [ErrNone] or [bus.ErrUnavailable].
func (s *Store) Find(ctx context.Context, cookie string) (Session, error) {
	id := ID(cookie)
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	fields, err := s.redis.HGetAll(ctx, s.keys.Session(id)).Result()
	if err = rdb.Wrap("find a session", err); errors.Is(err, bus.ErrUnavailable) {
		if session, ok := s.recent.find(id); ok && s.now().Before(session.ends()) {
			return session, nil
		}
	}
	if err != nil && !rdb.IsWrongType(err) {
		return Session{}, err
	}
	session, ok := s.read(cookie, fields)
	if !ok {
		s.recent.forget(id)
		return Session{}, ErrNone
	}
	s.recent.keep(id, session)
	return session, nil
}

// read makes a session of its fields in Redis. It is not ok if it has ended, whatever Redis keeps,
// or lacks the proof.
func (s *Store) read(cookie string, fields map[string]string) (session Session, ok bool) {
	session, ok = parse(fields)
	if !ok || !hmac.Equal([]byte(fields["proof"]), []byte(s.proof(cookie, session))) {
		return Session{}, false
	}
	return session, s.now().Before(session.ends())
}

// End ends the session of a cookie. The error may be [bus.ErrUnavailable].
func (s *Store) End(ctx context.Context, cookie string) error { return s.EndID(ctx, ID(cookie)) }

// proof shows that the maker of a session knows the root key. Each part stands behind its length,
// so that nothing can be moved from one to the next.
func (s *Store) proof(cookie string, of Session) string {
	mac := hmac.New(sha256.New, s.rootKey)
	for _, part := range []string{
		cookie, string(of.Token), of.Client, of.Person, of.From, strconv.FormatBool(of.LookOnly), strconv.FormatInt(of.MadeAt.UnixMilli(), 10),
	} {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// newSecret makes a secret of 32 random bytes, in 43 characters that are safe in URLs.
func newSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}

// ID returns the form in which Redis has a cookie, a code or a nonce: its SHA-256.
func ID(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
