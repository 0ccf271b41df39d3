package jobs

import (
	"cmp"
	"errors"
	"time"

	"routemaster/internal/bus"
)

// TypeName names a job type.
type TypeName string

// MetaShutdown is a type that clients of the service that this one replaces create and enqueue jobs
// of. It means nothing here.
const MetaShutdown TypeName = "meta.shutdown"

// Strategy says how often a job is given to its service.
type Strategy string

// The strategies.
const (
	// AtLeastOnce jobs are tried again until they succeed or have no attempt left.
	AtLeastOnce Strategy = "at_least_once"
	// AtMostOnce jobs are tried once, whatever happens.
	AtMostOnce Strategy = "at_most_once"
)

// Limits and defaults of a type's fields.
const (
	MaxAttempts      = 32767
	MaxConcurrency   = 32767
	MinTimeout       = time.Second
	MaxTimeout       = 24 * time.Hour
	DefaultTimeout   = 5 * time.Minute
	MaxRetention     = 365 * 24 * time.Hour
	DefaultRetention = 7 * 24 * time.Hour
)

// TypeLimits are how many types there may be. One that is deleted counts until its archived jobs
// have gone: till then the housekeeping, and the step that makes room, look at it like at any
// other.
type TypeLimits struct {
	// Client is for the types of one client; root has no such limit. Bus is for all types.
	Client, Bus int
}

// DefaultTypeLimits are the limits that hold unless the operator sets others.
var DefaultTypeLimits = TypeLimits{Client: 1000, Bus: 5000}

// MaxScheduledOpen is how many jobs of its own a schedule may have that have not ended. While it
// has as many it skips its times.
const MaxScheduledOpen = 100

// MaxSchedule is the maximum length of a schedule in bytes.
const MaxSchedule = 1024

// SkipReason is why a schedule has skipped a time.
type SkipReason string

// The reasons: [MaxScheduledOpen] of its jobs had not ended; the account of the type's owner was
// full.
const (
	SkippedForJobs    SkipReason = "jobs_open"
	SkippedForAccount SkipReason = "account_full"
)

// Type is a type of jobs.
type Type struct {
	Name     TypeName
	Strategy Strategy
	// Attempts is how often a job is tried at most, from 1 to [MaxAttempts].
	Attempts int
	// Concurrency is how many of its jobs are in progress at most, over all workers, from 1 to
	// [MaxConcurrency].
	Concurrency int
	// URL is where its jobs are POSTed; empty for below the operator's DOWNSTREAM_URL. Pull means that
	// services fetch them instead.
	URL  string
	Pull bool
	// Timeout is from when a service has taken a job until it has to report.
	Timeout time.Duration
	// Retention is how long an archived job is kept.
	Retention time.Duration
	// Paused means that no job is taken.
	Paused bool
	// Schedule, a cron expression of five fields, if given, says when a job with ScheduleData (JSON)
	// is enqueued, in a time zone of the IANA database; in UTC without one. ScheduleData may be large:
	// reads of more than one type leave it out.
	Schedule     string
	Timezone     string
	ScheduleData []byte
	// Clients may enqueue, cancel, replay, fetch and report its jobs, besides root.
	Clients bus.Clients
	// Owner is the public name of the client that made it, and may change it; empty for root.
	Owner                bus.ClientName
	CreatedAt, UpdatedAt time.Time
	// SkippedAt is the last time that the schedule skipped, and SkipReason why; zero if it has
	// enqueued a job since.
	SkippedAt  time.Time
	SkipReason SkipReason
}

// CompareTypes orders types, the newest first.
func CompareTypes(a, b Type) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Name, b.Name))
}

// Counts counts the jobs of a type that have not ended, and says why they wait.
type Counts struct {
	// Queued counts all waiting jobs, Waiting the ones that are due and held back by the limit or a
	// pause.
	Queued, Waiting int64
	// InProgress counts jobs that their service has, or is about to be given.
	InProgress int64
	// Oldest is when the oldest job was enqueued that is due and not in progress; zero if there is
	// none.
	Oldest time.Time
	// HeldUntil is until when they are held back, because the service asked for time. It is past once
	// the service is to be tried again, and zero once it has taken a job.
	HeldUntil time.Time
}

// Cause is why jobs of a type are not in progress, or stay there.
type Cause string

// The causes, the gravest first.
const (
	// NoWorker means that none runs: no job that is due later comes up, and no deadline is kept, also
	// where services fetch the jobs.
	NoWorker Cause = "no_worker"
	// NoJobThreads means the same, because no worker that runs has threads for jobs.
	NoJobThreads Cause = "no_job_threads"
	// CausePaused means that the type is paused.
	CausePaused Cause = "paused"
	// HeldType means that the service has asked for time.
	HeldType Cause = "held_type"
	// ConcurrencyReached means that as many jobs are in progress as may be.
	ConcurrencyReached Cause = "concurrency"
	// AwaitingFetch means that jobs are due that no service has fetched.
	AwaitingFetch Cause = "awaiting_fetch"
	// NotDue means that all wait for their time.
	NotDue Cause = "not_due"
)

// Causes says why jobs of a type with such counts are not in progress, or stay there. It says
// nothing if all have ended. Unserved is [NoWorker] or [NoJobThreads] if no worker may run them,
// else empty.
func (c Counts) Causes(t Type, unserved Cause, now time.Time) []Cause {
	causes := []Cause{}
	add := func(is bool, cause Cause) {
		if is {
			causes = append(causes, cause)
		}
	}
	isDue, isFull := !c.Oldest.IsZero(), c.InProgress >= int64(t.Concurrency)
	add(unserved != "" && c.Queued+c.InProgress > 0, unserved)
	add(t.Paused && c.Queued > 0, CausePaused)
	add(c.HeldUntil.After(now) && isDue, HeldType)
	add(isFull && isDue && !t.Paused, ConcurrencyReached)
	add(t.Pull && isDue && !isFull && !t.Paused, AwaitingFetch)
	add(c.Queued > 0 && !isDue && unserved == "", NotDue)
	return causes
}

// CountedType is a type, and how many of its jobs have not ended.
type CountedType struct {
	Type
	Counts
}

// Errors that callers branch on.
var (
	// ErrUnknownType means that there is no such type.
	ErrUnknownType = errors.New("there is no such job type")
	// ErrTypeExists means that there is a type of that name.
	ErrTypeExists = errors.New("there is a job type of that name")
	// ErrNotOwner means that the type is another client's.
	ErrNotOwner = errors.New("the job type is another client's")
	// ErrNotClient means that the type has [Type].Clients, and the client is not one of them.
	ErrNotClient = errors.New("the job type is for other clients")
	// ErrTypeHasJobs means that jobs of the type are queued or in progress.
	ErrTypeHasJobs = errors.New("jobs of the type have not ended")
	// ErrNotPull means that the type's jobs are not fetched, but POSTed to their service.
	ErrNotPull = errors.New("the jobs of the type are not fetched")
	// ErrTooManyTypes means that there are as many types as [TypeLimits] allow for the bus.
	ErrTooManyTypes = errors.New("there are too many job types")
	// ErrTooManyClientTypes means the same for the client that makes the type.
	ErrTooManyClientTypes = errors.New("the client has too many job types")
)
