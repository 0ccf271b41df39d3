package bus

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers branch on.
var (
	// ErrUnavailable means that Redis could not be reached, or refuses work for now (it is loading,
	// full, read-only). The same call may succeed later.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrTopicRelayed is an [ErrUnavailable]: events of a topic that is to be deleted are on their way
	// to other partitions.
	ErrTopicRelayed = fmt.Errorf("%w: events of the topic are on their way to other partitions", ErrUnavailable)
	// ErrTopicBusy is an [ErrUnavailable]: others delete the topic that is to be deleted, or subscribe
	// to it, at the same time.
	ErrTopicBusy = fmt.Errorf("%w: others delete the topic, or subscribe to it", ErrUnavailable)
	// ErrOverloaded means that too many requests are waiting. Nothing was stored.
	ErrOverloaded = errors.New("too many requests are waiting")
	// ErrPoisoned means that a job cannot be acquired because its data is damaged. It was scheduled
	// for later.
	ErrPoisoned = errors.New("a job cannot be taken, and is put off")
	// ErrTopicClaimed means that another client publishes to the topic.
	ErrTopicClaimed = errors.New("another client publishes to this topic")
	// ErrIdempotencyKeyReused means that another request was sent with the same idempotency key.
	ErrIdempotencyKeyReused = errors.New("another request was sent with this idempotency key")
	// ErrTokenTaken means that a token is another client's.
	ErrTokenTaken = errors.New("the token is another client's")
	// ErrTooManyBatches means that a publish would open more than [MaxOpenedBatches].
	ErrTooManyBatches = errors.New("the events would open too many batches")
	// ErrTokenUnknown means that a token was removed.
	ErrTokenUnknown = errors.New("there is no such token")
	// ErrManyTokens means that a client's name does not say which of its tokens is meant.
	ErrManyTokens = errors.New("the client has several tokens")
	// ErrTopicUnknown means that there is no such topic.
	ErrTopicUnknown = errors.New("there is no such topic")
	// ErrTestWaits means that a test event of the subscriber is still queued.
	ErrTestWaits = errors.New("a test event is still queued")
	// ErrNotSubscribed means that the client is not subscribed, or not to that topic.
	ErrNotSubscribed = errors.New("not subscribed")
	// ErrTooManySecrets means that a subscriber has all the signing secrets that it may have.
	ErrTooManySecrets = errors.New("there are too many unexpired secrets; remove one, or have the others expire sooner")
	// ErrSecretUnknown means that a subscriber has no such signing secret, or that it has expired.
	ErrSecretUnknown = errors.New("there is no such secret")
)

// TopicLimitError means that a request would make more topics than the operator allows. Nothing
// was changed.
type TopicLimitError struct {
	// Limit is the maximum number of topics: of the client or, if OfBus, of the bus.
	Limit int
	// OfBus is whether the limit is the bus's, not a client's.
	OfBus bool
}

func (e *TopicLimitError) Error() string {
	if e.OfBus {
		return fmt.Sprintf("the bus has its limit of %d topics; delete topics that are not needed", e.Limit)
	}
	return fmt.Sprintf("this would be more than %d topics that the client publishes to or was the first to name; delete those that are not needed", e.Limit)
}

// Invalid is an error in a client's input. Its text says what is allowed.
type Invalid struct {
	// Pointer is the JSON pointer (RFC 6901) of the value at fault, empty for the whole input.
	Pointer string
	// Detail says what is allowed.
	Detail string
	// ID is the kind of error for programs, if it has a name of its own.
	ID string
}

func (e *Invalid) Error() string {
	if e.Pointer == "" {
		return e.Detail
	}
	return e.Pointer + ": " + e.Detail
}

// ErrAfter is the [Invalid] for the place where a page is to begin, if it is none.
var ErrAfter = Invalidf("", "the query's after must be that of the Link of the page before")

// Invalidf makes an [Invalid] for the value at pointer.
func Invalidf(pointer, format string, args ...any) error {
	return &Invalid{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}

// Words lists words as an error shows them: a, b, c.
func Words[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return strings.Join(texts, ", ")
}

// At puts an [Invalid] below a pointer: At("/topics/0", err). Other errors pass unchanged.
func At(pointer string, err error) error {
	if invalid, ok := errors.AsType[*Invalid](err); ok {
		return &Invalid{Pointer: pointer + invalid.Pointer, Detail: invalid.Detail, ID: invalid.ID}
	}
	return err
}
