package state

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Class is what the result of a call says about Redis.
type Class int

const (
	// Answered: it works, even if the answer is an error that only the call itself can be the reason
	// of, as a command on a key of another type is.
	Answered Class = iota
	// Moved: it works, and the partition is at another node of the cluster.
	Moved
	// Abandoned: nothing, because the call was given up on our side.
	Abandoned
	// Refused: it works, but refuses some calls: it is full, read-only, without its replicas, or
	// does not allow them to this user. So is whatever else it answers that is no mistake of the
	// call: providers and proxies have errors of their own, such as limits of requests.
	Refused
	// Held: it works, but the partition is held, has come back without its keys, or is on its way to
	// another node. Scripts are refused; other calls may be answered.
	Held
	// Unavailable: it cannot be reached, or is not ready for any call.
	Unavailable
)

// refusals are codes of error replies. Scripts put the code into the middle of their own message.
var refusals = []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "NOPERM", aborted}

// aborted ends a transaction of which a command was refused, and is the error of all others. A full
// Redis refuses even those that only read.
const aborted = "EXECABORT"

var (
	// unready are codes too. UNBLOCKED ends a wait when Redis becomes a replica.
	unready = []string{"LOADING", "UNBLOCKED", "MASTERDOWN", "CLUSTERDOWN", "BUSY",
		"NOAUTH", "WRONGPASS", "max number of clients"}
	// holds: a partition of a cluster is on its way to another node, or held.
	holds = []string{"ASK", "TRYAGAIN", "CLOSED"}
)

// mistakes are parts of error replies of which only the call, or the key that it meets, can be the
// reason. Scripts put them into the middle of their own message; " user_script:" begins what Lua
// itself says, where "@user_script:" only names the place.
var mistakes = []string{"WRONGTYPE", "NOSCRIPT", "CROSSSLOT", " user_script:", "Error compiling script", "syntax error",
	"rong number of arg", "not an integer", "not a valid float", "not a float", "would overflow",
	"would produce NaN", "not a number (NaN)", "no such key", "index out of range", "must be positive", "invalid cursor",
	"invalid expire"}

// ErrUnconfirmed says that a change may be lost if Redis fails over now.
var ErrUnconfirmed = errors.New("too few replicas have confirmed the change")

// Classify says what the result of a call, which may be nil, says about Redis.
func Classify(err error) Class {
	if err == nil || errors.Is(err, redis.Nil) {
		return Answered
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) || errors.Is(err, redis.ErrClosed) {
		return Abandoned
	}
	if errors.Is(err, ErrUnconfirmed) {
		return Refused
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return Unavailable // not an answer: the network, a time-out, an exhausted pool
	}
	has := func(code string) bool { return strings.Contains(reply.Error(), code) }
	begins := func(code string) bool { return HasCode(reply, code) }
	switch {
	case begins("MOVED"):
		return Moved
	case slices.ContainsFunc(holds, begins):
		return Held
	case slices.ContainsFunc(refusals, has):
		return Refused
	case slices.ContainsFunc(unready, has):
		return Unavailable
	case slices.ContainsFunc(mistakes, has):
		return Answered
	}
	return Refused
}

// HasCode reports whether err is an error that Redis answered with, which begins with a code.
func HasCode(err error, code string) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(reply.Error(), code+" ")
}

// Mentions reports whether err is an error that Redis answered with, which has a text in it.
func Mentions(err error, text string) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.Contains(reply.Error(), text)
}

// Refusal returns the code with which Redis refused a call, or all that it said if the code is none
// that is known; empty if it did not.
func Refusal(err error) string {
	for _, code := range refusals {
		if Mentions(err, code) {
			return code
		}
	}
	if Unknown(err) {
		return err.Error()
	}
	return ""
}

// Unknown reports whether Redis refused a call in words that are not known here, as one does that
// lacks the command.
func Unknown(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	has := func(code string) bool { return strings.Contains(reply.Error(), code) }
	return ok && Classify(err) == Refused && !slices.ContainsFunc(refusals, has)
}

// Worst is the error of a pipeline: that of the first command that Redis did not answer, or
// refused, if there is one; of a transaction that was aborted, that of the command that was the
// reason.
func Worst(cmds []redis.Cmder, first error) error {
	if Classify(first) != Answered && !HasCode(first, aborted) {
		return first
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); Classify(err) != Answered && !HasCode(err, aborted) {
			return err
		}
	}
	return first
}
