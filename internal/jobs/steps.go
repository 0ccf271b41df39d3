package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// jobFields are the fields of a job's record that show_job of lua/lib/steps.lua reads.
type jobFields struct {
	Type, Status, Attempts, Sequence, RunAfter, ExpiresAt, CreatedAt, UpdatedAt, Deadline, ArchivedAt, Reason, Data, Started any
}

// readJob reads a job as show_job of lua/lib/steps.lua and lists return it.
func readJob(shown any) (job Job, ok bool) {
	parts, _ := shown.([]any)
	if len(parts) < 3 {
		return job, false
	}
	fields, _ := parts[1].([]any)
	data, there := parts[2].(string)
	if len(fields) != 13 || !there || rdb.Text(fields[0]) == "" {
		return job, false
	}
	f := jobFields{
		fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7], fields[8], fields[9],
		fields[10], fields[11], fields[12],
	}
	number := func(field any) int64 { return rdb.Integer(rdb.Text(field), 0) }
	job = Job{
		ID: ID(rdb.Text(parts[0])), Type: TypeName(rdb.Text(f.Type)), Status: Status(rdb.Text(f.Status)),
		Attempts: int(number(f.Attempts)), Sequence: number(f.Sequence), Data: []byte(data),
		RunAfter: fromMicros(f.RunAfter), ExpiresAt: fromMicros(f.ExpiresAt),
		CreatedAt: fromMicros(f.CreatedAt), UpdatedAt: fromMicros(f.UpdatedAt),
		Deadline: fromMicros(f.Deadline), Reason: rdb.Text(f.Reason),
		EnqueuedAt: fromMicros(f.CreatedAt), StartedAt: fromMicros(f.Started),
	}
	// A new record has no other time than this.
	if job.RunAfter.IsZero() {
		job.RunAfter = job.CreatedAt
	}
	if job.UpdatedAt.IsZero() {
		job.UpdatedAt = job.CreatedAt
	}
	if job.Status.IsArchived() {
		job.CreatedAt = fromMicros(f.ArchivedAt)
		job.EndedAt = job.CreatedAt
	}
	return job, true
}

func readJobs(shown []any) []Job {
	list := make([]Job, 0, len(shown))
	for _, one := range shown {
		if job, ok := readJob(one); ok {
			list = append(list, job)
		}
	}
	return list
}

// Enqueue adds jobs to a type, all or none, in one round trip, and returns them. A job that is
// queued or in progress already is returned as it is, whatever its new fields, unless the data of
// all these is larger than the data of the list by more than [MaxPageBytes]. Traceparent, if given,
// is the request's. It fails with [ErrUnknownType], a [BulkError], an [account.FullError] or
// [bus.ErrUnavailable].
func (s *Store) Enqueue(
	ctx context.Context, name TypeName, list []NewJob, traceparent string, now time.Time,
) ([]Job, error) {
	size := MaxPageBytes
	for _, job := range list {
		size += len(job.Data)
	}
	args := append(make([]any, 0, 5+4*len(list)), string(name), micros(now), traceparent, size, string(s.client))
	for _, job := range list {
		args = append(args, string(job.ID), job.Data, micros(job.RunAfter), micros(job.ExpiresAt))
	}
	rest, err := replied("enqueue jobs", s.group.Change(ctx, scriptJobEnqueue, args...))
	if err != nil && len(rest) == 1 {
		return nil, &BulkError{Index: int(rest[0].(int64)), Err: err}
	}
	if err != nil {
		return nil, err
	}
	enqueued := make([]Job, 0, len(rest))
	for i, one := range rest {
		job, ok := readEnqueued(name, list[i], one.([]any), now)
		if !ok {
			return nil, fmt.Errorf("enqueue jobs: the record of %s has fields missing", list[i].ID)
		}
		enqueued = append(enqueued, job)
	}
	return enqueued, nil
}

// readEnqueued reads the reply of job_enqueue.lua for a job.
func readEnqueued(name TypeName, n NewJob, reply []any, now time.Time) (job Job, ok bool) {
	if len(reply) != 2 { // it was there already
		return readJob(reply)
	}
	now = toMicros(now)
	job = Job{
		ID: n.ID, Type: name, Status: Queued, Attempts: int(reply[0].(int64)), Sequence: rdb.Integer(rdb.Text(reply[1]), 0),
		Data: n.Data, RunAfter: now, ExpiresAt: toMicros(n.ExpiresAt), CreatedAt: now, UpdatedAt: now, EnqueuedAt: now,
	}
	if !n.RunAfter.IsZero() {
		job.RunAfter = toMicros(n.RunAfter)
	}
	return job, true
}

// Job returns a job, queued or archived; name may be empty. It fails with [ErrUnknownJob],
// also if the job is of another type, or [bus.ErrUnavailable].
func (s *Store) Job(ctx context.Context, name TypeName, id ID) (Job, error) {
	shown, err := s.redis.Run(ctx, scriptJobShow, string(id)).List()
	if err != nil {
		return Job{}, rdb.Wrap("read job", err)
	}
	job, ok := readJob(shown)
	if !ok || name != "" && job.Type != name {
		return Job{}, ErrUnknownJob
	}
	return job, nil
}

// reportArgs are the arguments of lua/job_report.lua, under the same names there.
type reportArgs struct {
	ID, TypeName string
	Attempt      int
	Status       string
	Final        bool
	Now          int64   // µs
	Chance       float64 // from 0 to below 1
	// Client is empty for root. Message is the error that the service reports, if it does.
	Client, Message string
}

func (a reportArgs) list() []any {
	return []any{a.ID, a.TypeName, a.Attempt, a.Status, a.Final, a.Now, a.Chance, a.Client, a.Message}
}

// Report applies a service's report on an attempt. Repeating it changes nothing. A success counts
// even if the deadline has ended the attempt, or its worker has died, as long as no other attempt
// has begun. Report returns the job's status, empty if it changed nothing. It fails with
// [ErrUnknownJob], [ErrStaleAttempt], [ErrReported], [ErrCancelled], [ErrArchived] (it expired) or
// [bus.ErrUnavailable].
func (s *Store) Report(
	ctx context.Context, name TypeName, id ID, r Report, now time.Time,
) (Status, error) {
	args := reportArgs{
		ID: string(id), TypeName: string(name), Attempt: r.Attempt, Status: string(r.Status), Final: r.Final,
		Now: micros(now), Chance: rand.Float64(), Client: string(s.client), Message: r.Error,
	}
	rest, err := replied("report job", s.group.Change(ctx, scriptJobReport, args.list()...))
	if err != nil {
		return "", err
	}
	return Status(rdb.Text(rest[0])), nil
}

// Extend moves the deadline of a job that its service has, and returns the new one: a timeout from
// now. It fails with [ErrUnknownJob], [ErrStaleAttempt], [ErrNotInProgress] or
// [bus.ErrUnavailable].
func (s *Store) Extend(
	ctx context.Context, name TypeName, id ID, attempt int, timeout time.Duration, now time.Time,
) (time.Time, error) {
	deadline := now.Add(timeout)
	_, err := replied("extend job", s.group.Change(ctx, scriptJobExtend,
		string(id), string(name), attempt, micros(deadline), micros(now), string(s.client)))
	return toMicros(deadline), err
}

// Replay enqueues a copy of a job that is in progress or archived, with another id, which shares
// its data; name may be empty. A copy that is there already is returned as it is. It fails with
// [ErrUnknownJob], [ErrQueued], [ErrUnknownType] (it was deleted), [ErrRemoved]
// (the copy was), an [account.FullError] or [bus.ErrUnavailable].
func (s *Store) Replay(ctx context.Context, name TypeName, id, copied ID, now time.Time) (Job, error) {
	rest, err := replied("replay job", s.group.Change(ctx, scriptJobReplay,
		string(id), string(name), string(copied), micros(now), string(s.client)))
	if err != nil {
		return Job{}, err
	}
	job, ok := readJob(rest[0])
	if !ok {
		return job, errors.New("replay job: the copy is not there")
	}
	return job, nil
}

// Cancel archives a job as cancelled. It returns the status that the job had: [Cancelled] if
// it was cancelled before. It fails with [ErrUnknownJob], [ErrArchived] if it ended
// otherwise, or [bus.ErrUnavailable].
func (s *Store) Cancel(ctx context.Context, name TypeName, id ID, now time.Time) (was Status, err error) {
	rest, err := replied("cancel job", s.group.Change(ctx, scriptJobCancel, string(id), string(name), micros(now), string(s.client)))
	if err != nil {
		return "", err
	}
	return Status(rdb.Text(rest[0])), nil
}

// Confirm makes replicas confirm that a worker has taken a job, if they must confirm changes. It
// fails with [ErrNotInProgress] if the worker does not have the job any more, or with
// [bus.ErrUnavailable].
func (s *Store) Confirm(ctx context.Context, name TypeName, id ID, worker bus.WorkerID) error {
	if !s.redis.HasConfirmation() {
		return nil
	}
	_, err := replied("confirm job", s.group.Change(ctx, scriptJobConfirm, string(id), string(name), string(worker)))
	return err
}

// Fetch takes up to limit jobs of a type whose services fetch them, the oldest first: none, if
// there is none to take. Their deadline begins. It returns also how many others it found that have
// expired, and archived. It fails with [ErrUnknownType], [ErrNotPull] or
// [bus.ErrUnavailable].
func (s *Store) Fetch(
	ctx context.Context, name TypeName, limit int, now time.Time,
) (list []Job, expired int, err error) {
	// Replicas need not confirm it: jobs that are taken but not returned would wait for their
	// deadline.
	rest, err := replied("fetch jobs", s.redis.Run(ctx, scriptJobFetch, string(name), limit, micros(now), string(s.client)).Change())
	if err != nil {
		return nil, 0, err
	}
	return readJobs(rest[1:]), int(rest[0].(int64)), nil
}

// Return puts a job back that was fetched and could not be handed out, as if it had not been
// fetched. It fails with [ErrUnknownJob], [ErrNotInProgress], [ErrStaleAttempt] or
// [bus.ErrUnavailable].
func (s *Store) Return(ctx context.Context, fetched Job, now time.Time) error {
	_, err := replied("return job", s.redis.Run(ctx, scriptJobReturn,
		string(fetched.ID), string(fetched.Type), fetched.Attempts, micros(fetched.Deadline), micros(now)).Change())
	return err
}
