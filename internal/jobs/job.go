package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"routemaster/internal/bus"
)

// Status is the state of a job.
type Status string

// The statuses. A job is archived with one of the last four.
const (
	// Queued is a job that waits: for its time, for its turn, or to be tried again.
	Queued Status = "queued"
	// InProgress is a job that its service has, or is about to be given.
	InProgress Status = "in-progress"
	// Succeeded and Failed are set by a service's report, or follow from its silence.
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	// Expired is a job whose expires_at passed before it was given to its service.
	Expired Status = "expired"
	// Cancelled is a job that a client did not want any more.
	Cancelled Status = "cancelled"
)

// Archived are the statuses of jobs that have ended.
var Archived = [...]Status{Succeeded, Failed, Expired, Cancelled}

// IsArchived reports whether a job with the status has ended.
func (s Status) IsArchived() bool { return s != Queued && s != InProgress }

// MaxData is the maximum size of a job's data in bytes, without white space: see [FitData].
const MaxData = 102_400

// FitData returns the data of a job as it is stored: as it was sent or, if it has more than
// [MaxData] bytes so, without the white space between its tokens. So data is not refused that a
// database has printed with spaces.
func FitData(data []byte) []byte {
	if len(data) <= MaxData {
		return data
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil { // its reader refuses it
		return data
	}
	return compact.Bytes()
}

// MaxBulk is how many jobs one request may enqueue, MaxFetch how many it may fetch.
const (
	MaxBulk  = 1000
	MaxFetch = 100
)

// Job is a job, queued or archived.
type Job struct {
	ID     ID
	Type   TypeName
	Status Status
	// Attempts is how many attempts are left, the one in progress included.
	Attempts int
	// Data is JSON, to the letter as it was sent, but for the white space that [FitData] takes away.
	Data []byte
	// Sequence grows from one job of a type to the next, in the order in which they were enqueued. It
	// is a time in µs since the Unix epoch, or a little later.
	Sequence int64
	// RunAfter is the earliest time at which it is given to its service.
	RunAfter time.Time
	// ExpiresAt is the latest; zero if there is none.
	ExpiresAt time.Time
	// CreatedAt is when it was enqueued or, if it is archived, when that was done. UpdatedAt is when
	// it changed last.
	CreatedAt, UpdatedAt time.Time
	// EnqueuedAt is when it was enqueued, StartedAt when its last attempt began, zero if none has, and
	// EndedAt when it was archived, zero unless it was.
	EnqueuedAt, StartedAt, EndedAt time.Time
	// Deadline is until when its service has to report; zero unless the service has it.
	Deadline time.Time
	// Reason says why the last attempt failed or was put off: the error that the service reported, if
	// it did.
	Reason string
}

// Attempt is one time that a job was given to its service, or should have been.
type Attempt struct {
	// Attempt is how many attempts were left, this one included.
	Attempt int
	// BeganAt is when a worker or a service took the job, EndedAt when its outcome was known; zero
	// before.
	BeganAt, EndedAt time.Time
	// Outcome is "succeeded", "failed", "held" if the service asked for time, or "in-progress".
	Outcome string
	// Status is the HTTP status of the service's answer to a POST, 0 for none.
	Status int
	// Error is as [Job].Reason, Excerpt the beginning of the answer.
	Error, Excerpt string
	// Public is whether clients may see Status and Excerpt.
	Public bool
}

// MaxError is how many bytes of a report's error are kept, MaxAttemptsKept how many attempts of a
// job.
const (
	MaxError        = 4096
	MaxAttemptsKept = 20
)

// NewJob is a job to be enqueued. Zero fields are not set.
type NewJob struct {
	ID        ID
	Data      []byte
	RunAfter  time.Time
	ExpiresAt time.Time
}

// BulkError is why jobs were not enqueued: it is about one of them.
type BulkError struct {
	// Index is the index of the job, from 0.
	Index int
	// Err is [ErrArchived], [ErrRemoved], [ErrOtherType], [ErrTooLarge] or [ErrNeverRuns].
	Err error
}

func (e *BulkError) Error() string { return fmt.Sprintf("job %d: %v", e.Index, e.Err) }

func (e *BulkError) Unwrap() error { return e.Err }

// Report is a service's report on an attempt.
type Report struct {
	// Attempt is the one that it is about: [Job].Attempts of when it was given.
	Attempt int
	// Status is [Succeeded] or [Failed].
	Status Status
	// Final says that a job that failed is not to be tried again.
	Final bool
	// Error says why it failed, in at most [MaxError] bytes; empty if the service does not say. See
	// [ReportedError].
	Error string
}

// ReportedError is the error of a report as it is kept, cut to [MaxError] bytes and without the
// characters that have a meaning where it is kept.
func ReportedError(text string) string {
	clean := func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return ' '
		}
		return r
	}
	return bus.Excerpt(strings.Map(clean, text), MaxError)
}

// Errors that callers branch on. A step that fails with one of them has changed nothing.
var (
	// ErrUnknownJob means that there is no such job, or that it is of another type.
	ErrUnknownJob = errors.New("there is no such job")
	// ErrArchived means that the job has ended.
	ErrArchived = errors.New("the job has ended")
	// ErrRemoved means that the job, which was to be tried once, has ended and was removed less than a
	// day ago.
	ErrRemoved = errors.New("the job has ended, and was removed")
	// ErrQueued means that the job waits in the queue.
	ErrQueued = errors.New("the job is queued")
	// ErrNotInProgress means that the job's service does not have it.
	ErrNotInProgress = errors.New("the job is not in progress")
	// ErrStaleAttempt means that a report is about another attempt.
	ErrStaleAttempt = errors.New("the report is about another attempt")
	// ErrReported means that another outcome was accepted before.
	ErrReported = errors.New("another outcome was reported before")
	// ErrCancelled means that the job was cancelled.
	ErrCancelled = errors.New("the job was cancelled")
	// ErrOtherType means that a job of another type has the id.
	ErrOtherType = errors.New("the id is that of a job of another type")
	// ErrTooLarge means that the existing jobs have too much data to be returned.
	ErrTooLarge = errors.New("the jobs that are there have too much data")
	// ErrNeverRuns means that a new job expires before it may run. By a minute in the past it may be
	// that its client's clock is wrong.
	ErrNeverRuns = errors.New("the job would never run")
	// ErrManyTypes means that jobs of several types, in different partitions, have an id.
	ErrManyTypes = errors.New("jobs of several types have the id")
)
