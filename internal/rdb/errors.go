package rdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// Nil is the error of a command or script that Redis answered with nothing.
const Nil = redis.Nil

// class is what the result of a call says about Redis.
type class int

const (
	// answered: it works, even if the answer is an error of the call itself.
	answered class = iota
	// abandoned: nothing, because the call was given up on our side.
	abandoned
	// refused: it works, but refuses some calls: it is full, read-only, without its replicas, or
	// does not allow them to this user.
	refused
	// unavailable: it cannot be reached, or is not ready for any call.
	unavailable
)

// What error replies say, by their codes. Scripts put the code into the middle of their own
// message. UNBLOCKED ends a wait when Redis becomes a replica, EXECABORT a transaction of which a
// command was refused: a full Redis refuses even those that only read.
var (
	refusals = []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM", "EXECABORT"}
	unready  = []string{"LOADING", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY",
		"NOAUTH", "WRONGPASS", "max number of clients"}
)

func classify(err error) class {
	if err == nil || errors.Is(err, redis.Nil) {
		return answered
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) || errors.Is(err, redis.ErrClosed) {
		return abandoned
	}
	if errors.Is(err, errUnconfirmed) {
		return refused
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return unavailable // not an answer: the network, a time-out, an exhausted pool
	}
	has := func(code string) bool { return strings.Contains(reply.Error(), code) }
	switch {
	case slices.ContainsFunc(refusals, has):
		return refused
	case slices.ContainsFunc(unready, has):
		return unavailable
	}
	return answered
}

// Answered reports whether Redis worked and answered the call that returned err: it succeeded, or
// failed by itself, as a command on a key of another type does.
func Answered(err error) bool { return classify(err) == answered }

// HasCode reports whether err is an error that Redis answered with, which begins with a code, such
// as NOSCRIPT.
func HasCode(err error, code string) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(reply.Error(), code+" ")
}

// Refusal returns the code with which Redis refused a call, such as READONLY; empty if it did not.
func Refusal(err error) string {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		for _, code := range refusals {
			if strings.Contains(reply.Error(), code) {
				return code
			}
		}
	}
	return ""
}

// IsWrongType reports whether a key of another type refused a call, perhaps within a script, where
// engines put the code into a sentence.
func IsWrongType(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), "WRONGTYPE ")
}

// isFull reports whether Redis refused a call because it has no memory left.
func isFull(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), "OOM")
}

// Wrap says what failed, and marks the errors of a Redis that is unavailable or refuses calls with
// [bus.ErrUnavailable]. It returns nil for [Nil].
func Wrap(what string, err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if errors.Is(err, bus.ErrUnavailable) { // it is marked already
		return fmt.Errorf("%s: %w", what, err)
	}
	// A script that is missing though it was just loaded: Redis is being replaced.
	class := classify(err)
	if class == refused || class == unavailable || HasCode(err, "NOSCRIPT") {
		return fmt.Errorf("%s: %w: %w", what, bus.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
