package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// RotateToken begins to change a client's token: the client gets another one, which takes over the
// subscription and all that is queued. Publishes and deliveries go on meanwhile. The old token
// keeps working, for the same subscription, until [Store.FinishRotation]. The new token is fresh,
// unless a rotation was begun before, which then goes on with its token. RotateToken fails with
// [bus.ErrTokenUnknown] or [bus.ErrUnavailable].
func (s *Store) RotateToken(ctx context.Context, old, fresh bus.Token) (token bus.Token, name bus.ClientName, err error) {
	change := s.redis.Change(ctx, scriptTokenRotate, string(old), string(fresh))
	if change.Err == nil && !change.Changed {
		return "", "", s.refusal("rotate token", change.Text(0))
	}
	return bus.Token(change.Text(1)), bus.ClientName(change.Text(0)), rdb.Wrap("rotate token", change.Err)
}

// IsRotating reports whether a token is being changed for another one. It fails with
// [bus.ErrUnavailable].
func (s *Store) IsRotating(ctx context.Context, token bus.Token) (bool, error) {
	is, err := s.redis.HExists(ctx, s.keys.Rotations(), string(token)).Result()
	return is, rdb.Wrap("look for a rotation", err)
}

// Relabelling says how far the batches of a token that is being changed have been relabelled. A
// client of the API keeps its text between two requests.
type Relabelling struct {
	// began is when it began, in ms: Redis may have lost changes from before an outage.
	began int64
	// score and bid identify the last batch that was looked at; empty at first.
	score, bid string
}

// String returns the text that [ParseRelabelling] reads.
func (r Relabelling) String() string { return fmt.Sprintf("%d-%s-%s", r.began, r.score, r.bid) }

// ParseRelabelling reads a text of [Relabelling.String].
func ParseRelabelling(text string) (r Relabelling, err error) {
	parts := strings.SplitN(text, "-", 3)
	if len(parts) != 3 || len(parts[2]) > bus.UIDLen || !bus.IsURLSafe(parts[2]) && parts[2] != "" {
		return r, bus.Invalidf("", "after must be what the answer before had as after")
	}
	r.score, r.bid = parts[1], parts[2]
	r.began, err = strconv.ParseInt(parts[0], 10, 64)
	if _, notANumber := strconv.ParseUint(r.score, 10, 63); err != nil || notANumber != nil && r.score != "" {
		return r, bus.Invalidf("", "after must be what the answer before had as after")
	}
	return r, nil
}

// BeginRelabelling is the first of a rotation's relabelling.
func BeginRelabelling() Relabelling { return Relabelling{began: time.Now().UnixMilli()} }

// relabelledPerStep is how many batches one step looks at: some 1 ms of Redis.
const relabelledPerStep = 500

// Relabel writes the new token into the batches of a token that is being changed, a slice at a
// time, until the timeout. It starts again if Redis was unavailable since it began, because Redis
// may have lost writes then. It reports whether all batches are done. It fails with
// [bus.ErrUnavailable].
func (s *Store) Relabel(ctx context.Context, old bus.Token, r Relabelling, timeout time.Duration) (next Relabelling, done bool, err error) {
	for until := time.Now().Add(timeout); ; {
		if s.redis.SteadySince().UnixMilli() >= r.began {
			r = BeginRelabelling()
		}
		last, err := s.redis.Run(ctx, scriptTokenRelabel, string(old), r.score, r.bid, relabelledPerStep).Strings()
		if err != nil {
			return r, false, rdb.Wrap("rotate token", err)
		}
		if len(last) == 0 {
			return r, s.redis.SteadySince().UnixMilli() < r.began, nil
		}
		r.score, r.bid = last[0], last[1]
		if time.Now().After(until) {
			return r, false, nil
		}
	}
}

// FinishRotation removes the old token of a rotation whose batches are all relabelled. It fails
// with [bus.ErrUnavailable].
func (s *Store) FinishRotation(ctx context.Context, old bus.Token) error {
	if err := s.DeleteToken(ctx, old); err != nil {
		return err
	}
	return s.Change(ctx, "rotate token", scriptTokenRotated, string(old))
}

// Holder returns the token that has the subscription of a token: the new one while the token is
// being changed, else the token itself. It fails with [bus.ErrUnavailable].
func (s *Store) Holder(ctx context.Context, token bus.Token) (bus.Token, error) {
	heir, err := s.redis.HGet(ctx, s.keys.Rotations(), string(token)).Result()
	return cmp.Or(bus.Token(heir), token), rdb.Wrap("read rotation", err)
}
