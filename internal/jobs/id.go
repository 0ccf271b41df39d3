package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"routemaster/internal/bus"
)

// ID is a job's: a UUID in its canonical form, in lower case.
type ID string

// IDPrefix begins a job's id where it is shown. No type's name begins so.
const IDPrefix = "job_"

// Errors of [ParseID].
var (
	ErrInvalidUUID   = errors.New("a job's id is a UUID, such as job_282227eb-3c76-4ef7-af7e-25dff933077f")
	ErrInvalidPrefix = errors.New(`a job's id begins with "job_", or with nothing before the UUID`)
)

// uuidLen is the number of characters of a UUID.
const uuidLen = 36

// ParseID reads an id as clients write it, with or without its prefix. It fails with
// [ErrInvalidUUID] or [ErrInvalidPrefix].
func ParseID(text string) (ID, error) {
	if len(text) < uuidLen {
		return "", ErrInvalidUUID
	}
	prefix, digits := text[:len(text)-uuidLen], strings.ToLower(text[len(text)-uuidLen:])
	if _, err := uuid.Parse(digits); err != nil {
		return "", ErrInvalidUUID
	}
	if prefix != "" && prefix != IDPrefix {
		return "", ErrInvalidPrefix
	}
	return ID(digits), nil
}

// NewID makes a random id.
func NewID() ID { return ID(uuid.NewString()) }

// scheduled is the namespace of the ids of jobs that a schedule enqueues.
var scheduled = uuid.MustParse("0e4a1c5e-7c1b-5d3c-9a52-6b1f6a3f8f21")

// ScheduledID is the id of the job that a type's schedule enqueues at a time, in ms since the Unix
// epoch: always the same one, so that it is enqueued once.
func ScheduledID(name TypeName, ms int64) ID {
	return ID(uuid.NewSHA1(scheduled, fmt.Appendf(nil, "%s@%d", name, ms)).String())
}

// replayed is the namespace of the ids of jobs that are replayed with an idempotency key.
var replayed = uuid.MustParse("7b0c1f4e-52a8-5c0e-8d6f-3e9a4d2b7c15")

// ReplayedID is the id of the copy that a client makes of a job with an idempotency key: always the
// same one, so that the copy is made once. On a bus with partitions an id may be of jobs of several
// types.
func ReplayedID(client bus.ClientName, name TypeName, of ID, key string) ID {
	return ID(uuid.NewSHA1(replayed, fmt.Appendf(nil, "%s %s %s %s", client, name, of, key)).String())
}

// String is the id as clients see it.
func (id ID) String() string { return IDPrefix + string(id) }
