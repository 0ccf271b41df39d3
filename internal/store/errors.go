package store

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

// verdict is what the result of a call says about Redis.
type verdict int

const (
	// answered: it works, whatever it said.
	answered verdict = iota
	// silent: nothing, because we gave the call up ourselves.
	silent
	// refused: it works, but refuses some calls: it is full, read-only, without its replicas, or does not allow them
	// to this user.
	refused
	// away: it cannot be reached, or is not ready for any call.
	away
)

// What error replies tell, by their codes. Scripts put the code into the middle of their own message. UNBLOCKED ends a wait when
// Redis becomes a replica.
var (
	refusals = []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM"}
	unready  = []string{"LOADING", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOAUTH", "WRONGPASS", "max number of clients"}
)

func judge(err error) verdict {
	if err == nil || errors.Is(err, redis.Nil) {
		return answered
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) || errors.Is(err, redis.ErrClosed) {
		return silent
	}
	if errors.Is(err, errUnconfirmed) {
		return refused
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return away // not an answer: the network, a time-out, an exhausted pool
	}
	has := func(code string) bool { return strings.Contains(reply.Error(), code) }
	switch {
	case slices.ContainsFunc(refusals, has):
		return refused
	case slices.ContainsFunc(unready, has):
		return away
	}
	return answered
}

// isFull reports whether Redis refused a call because it has no memory left.
func isFull(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), "OOM")
}

// wrap makes errors of an unavailable Redis into [bus.ErrUnavailable], and says what failed.
func wrap(what string, err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	// A script that is missing though it was just loaded: Redis is being replaced.
	verdict := judge(err)
	if verdict == refused || verdict == away || redis.HasErrorPrefix(err, "NOSCRIPT") {
		return fmt.Errorf("%s: %w: %w", what, bus.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
