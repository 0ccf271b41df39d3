package console

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// CodeTTL is how long a code is good.
const CodeTTL = time.Minute

// maxCodes is how many codes a client may have, or root. A new one ends the oldest, so that a
// client that makes many ends its own, and the one that was made last is good.
const maxCodes = 20

// storedCode is the value of a code in Redis. Its proof is made like a [Session]'s.
type storedCode struct {
	Token    bus.Token `json:"token"`
	Person   string    `json:"person"`
	LookOnly bool      `json:"look_only"`
	Proof    string    `json:"proof"`
}

// session is the session that the code begins, as far as it says.
func (c storedCode) session() Session {
	return Session{Token: c.Token, Person: c.Person, LookOnly: c.LookOnly}
}

// NewCode makes a code that begins a session, once, within [CodeTTL], on any process: of the client
// of a token, or of root if that is empty. It ends the oldest if there are more than [maxCodes] of
// the client. The error may be [bus.ErrUnavailable].
func (s *Store) NewCode(ctx context.Context, token bus.Token, person string, lookOnly bool) (code string, err error) {
	code = newSecret()
	made := storedCode{Token: token, Person: person, LookOnly: lookOnly}
	made.Proof = s.proofOfCode(code, made)
	text, err := json.Marshal(made)
	if err != nil {
		return "", err
	}
	return code, rdb.Wrap("make a code", s.redis.Run(ctx, scriptCodePut, ID(code), text, CodeTTL.Milliseconds(), ID(string(token)), maxCodes).Err())
}

// TakeCode returns the session that a code begins, without the client's name, and ends the code.
// The error is [ErrNone] or [bus.ErrUnavailable].
func (s *Store) TakeCode(ctx context.Context, code string) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	text, err := s.redis.GetDel(ctx, s.keys.LoginCode(ID(code))).Bytes()
	if errors.Is(err, rdb.Nil) || rdb.IsWrongType(err) {
		return Session{}, ErrNone
	}
	if err != nil {
		return Session{}, rdb.Wrap("take a code", err)
	}
	var made storedCode
	if json.Unmarshal(text, &made) != nil || !hmac.Equal([]byte(made.Proof), []byte(s.proofOfCode(code, made))) {
		return Session{}, ErrNone
	}
	// If it stays in the list, it counts as one of the client's for a minute.
	_ = s.redis.LRem(ctx, s.keys.LoginCodes(ID(string(made.Token))), 1, ID(code)).Err()
	return made.session(), nil
}

// proofOfCode is never the proof of a session, whose cookie has no colon.
func (s *Store) proofOfCode(code string, made storedCode) string {
	return s.proof("code:"+code, made.session())
}
