package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"routemaster/internal/bus"
)

// passing are the beginnings of the error replies with which Redis refuses work for a while, or until
// an operator has seen to it: nothing is wrong with the call. Scripts put the
// reply's code into the middle of their own message.
var passing = []string{
	"LOADING", "OOM", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS",
	"BUSY", "MISCONF", "NOAUTH", "WRONGPASS", "NOPERM", "max number of clients",
}

// unavailable reports whether Redis could not do its work, as against having answered.
func unavailable(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled) {
		return false
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, redis.ErrClosed) {
		return false // we closed it ourselves
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return true // not an answer: the network, a time-out, an exhausted pool
	}
	for _, code := range passing {
		if strings.Contains(reply.Error(), code) {
			return true
		}
	}
	return false
}

// wrap makes errors of an unavailable Redis into [bus.ErrUnavailable], and says what failed.
func wrap(what string, err error) error {
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		return nil
	case unavailable(err):
		return fmt.Errorf("%s: %w: %w", what, bus.ErrUnavailable, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}
