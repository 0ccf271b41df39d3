package rdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Nil is the error of a command or script with an empty reply.
const Nil = redis.Nil

// Answered reports whether Redis worked and answered the call that returned err: it succeeded, or
// failed by itself, as a command on a key of another type does. Other error replies are refusals.
func Answered(err error) bool { return classify(err) == answered }

// IsHeld reports whether a call was refused because its partition is held, has come back without
// its keys, or is on its way to another node.
func IsHeld(err error) bool { return classify(err) == held }

// Lacks reports whether err says that this Redis, or the proxy before it, does not know a command,
// or does not allow it to this user.
func Lacks(err error) bool { return HasCode(err, "NOPERM") || isUnknownCommand(err) }

// IsWrongType reports whether a key of another type refused a call, perhaps within a script, where
// engines put the code into a sentence.
func IsWrongType(err error) bool { return mentions(err, "WRONGTYPE ") }

// isFull reports whether Redis refused a call because it has no memory left.
func isFull(err error) bool { return mentions(err, "OOM") }

// Wrap adds what failed to an error, and marks errors of a Redis that is unavailable or refuses
// calls with [bus.ErrUnavailable]. It returns nil for [Nil].
func Wrap(what string, err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if errors.Is(err, bus.ErrUnavailable) { // it is marked already
		return fmt.Errorf("%s: %w", what, err)
	}
	// A script that is missing right after it was loaded: Redis is being replaced. The same holds
	// where this side closed the connection, as at a failover, unless the caller gave up.
	class := classify(err)
	isClosed := class == abandoned && !errors.Is(err, context.Canceled)
	switch {
	case isClosed, class == refused, class == unavailable, class == held, class == moved, HasCode(err, "NOSCRIPT"):
		return fmt.Errorf("%s: %w: %w", what, bus.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
