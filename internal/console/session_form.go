package console

import (
	"context"
	"time"

	"routemaster/internal/rdb"
)

// formTTL is how long it is known that a form was sent: longer than a session that may send one.
const formTTL = 24 * time.Hour

// IsFirst reports whether a form is sent for the first time, and notes it. The nonce identifies the
// form. The error may be [bus.ErrUnavailable].
func (s *Store) IsFirst(ctx context.Context, nonce string) (bool, error) {
	first, err := s.redis.SetNX(ctx, s.keys.SentForm(ID(nonce)), "sent", formTTL).Result()
	return first, rdb.Wrap("note that a form was sent", err)
}
