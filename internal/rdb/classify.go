package rdb

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// class is the state of Redis that the result of a call shows.
type class int

const (
	// answered: it works, even if the answer is an error that only the call itself can be the reason
	// of, as a command on a key of another type is.
	answered class = iota
	// moved: it works, and the partition is at another node of the cluster.
	moved
	// abandoned: nothing, because this side gave up the call.
	abandoned
	// refused: it works, but refuses some calls: it is full, read-only, without its replicas, or
	// does not allow them to this user. Any other error reply that the call did not cause counts
	// too: providers and proxies have errors of their own, such as limits of requests.
	refused
	// held: it works, but the partition is held, has come back without its keys, or is on its way to
	// another node. Scripts are refused; other calls may be answered.
	held
	// unavailable: it cannot be reached, or is not ready for any call.
	unavailable
)

// refusals are codes of error replies. Scripts put the code into the middle of their own message.
var refusals = []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM", aborted}

// aborted ends a transaction after Redis refused one of its commands, and is the error of all
// others. A full Redis refuses even those that only read.
const aborted = "EXECABORT"

var (
	// unready are codes too. UNBLOCKED ends a wait when Redis becomes a replica.
	unready = []string{"LOADING", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "BUSY",
		"NOAUTH", "WRONGPASS", "max number of clients"}
	// holds: a partition of a cluster is on its way to another node, or held.
	holds = []string{"ASK", "TRYAGAIN", "CLOSED"}
)

// mistakes are parts of error replies that only the call, or the key it uses, can cause. Scripts
// put them into the middle of their own message; " user_script:" begins an error of Lua itself,
// while "@user_script:" only names the place.
var mistakes = []string{"WRONGTYPE", "NOSCRIPT", "CROSSSLOT", " user_script:", "Error compiling script", "syntax error",
	"rong number of arg", "not an integer", "not a valid float", "not a float", "would overflow",
	"would produce NaN", "not a number (NaN)", "no such key", "index out of range", "must be positive", "invalid cursor",
	"invalid expire"}

// ErrUnconfirmed says that a change may be lost if Redis fails over now.
var ErrUnconfirmed = errors.New("too few replicas have confirmed the change")

// classify returns the class of the error of a call, which may be nil.
func classify(err error) class {
	if err == nil || errors.Is(err, redis.Nil) {
		return answered
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) || errors.Is(err, redis.ErrClosed) {
		return abandoned
	}
	if errors.Is(err, ErrUnconfirmed) {
		return refused
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return unavailable // not an answer: the network, a time-out, an exhausted pool
	}
	has := func(code string) bool { return strings.Contains(reply.Error(), code) }
	begins := func(code string) bool { return HasCode(reply, code) }
	switch {
	case begins("MOVED"):
		return moved
	case slices.ContainsFunc(holds, begins):
		return held
	case slices.ContainsFunc(refusals, has):
		return refused
	case slices.ContainsFunc(unready, has):
		return unavailable
	case slices.ContainsFunc(mistakes, has):
		return answered
	}
	return refused
}

// HasCode reports whether err is an error that Redis answered with, which begins with a code.
func HasCode(err error, code string) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(reply.Error(), code+" ")
}

// mentions reports whether err is an error that Redis answered with, which has a text in it.
func mentions(err error, text string) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), text)
}

// Refusal returns the code with which Redis refused a call, or all that it said if the code is none
// that is known; empty if it did not.
func Refusal(err error) string {
	for _, code := range refusals {
		if mentions(err, code) {
			return code
		}
	}
	if isUnknownCommand(err) {
		return err.Error()
	}
	return ""
}

// isUnknownCommand reports whether Redis refused a call in words that are not known here, as one
// does that lacks the command.
func isUnknownCommand(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	has := func(code string) bool { return strings.Contains(reply.Error(), code) }
	return ok && classify(err) == refused && !slices.ContainsFunc(refusals, has)
}

// worst returns the error of a pipeline: the first unanswered or refused command's, if there is
// one; for an aborted transaction, the error of the command that caused it.
func worst(cmds []redis.Cmder, first error) error {
	if classify(first) != answered && !HasCode(first, aborted) {
		return first
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); classify(err) != answered && !HasCode(err, aborted) {
			return err
		}
	}
	return first
}
