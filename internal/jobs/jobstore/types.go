package jobstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb"
)

// pull stands in the place of a URL where services fetch the jobs.
const pull = "pull"

// errChanged means that somebody else has changed a type since it was read.
var errChanged = errors.New("the job type was changed meanwhile")

// fieldsOf are the fields of a type's hash that clients set.
func fieldsOf(t jobs.Type) []any {
	url := t.URL
	if t.Pull {
		url = pull
	}
	return []any{
		"strategy", string(t.Strategy), "attempts", t.Attempts, "concurrency", t.Concurrency, "url", url,
		"timeout", t.Timeout.Milliseconds(), "retention", int64(t.Retention / time.Second), "paused", t.Paused,
		"schedule", t.Schedule, "timezone", t.Timezone, "schedule_data", t.ScheduleData, "owner", string(t.Owner),
		"created_at", micros(t.CreatedAt), "updated_at", micros(t.UpdatedAt),
	}
}

// parseType reads the hash of a type. It reports whether there is one that is not being deleted.
func parseType(name jobs.TypeName, hash map[string]string) (t jobs.Type, ok bool) {
	number := func(field string) int64 { return rdb.Integer(hash[field], 0) }
	t = jobs.Type{
		Name: name, Strategy: jobs.Strategy(hash["strategy"]), Attempts: int(number("attempts")),
		Concurrency: int(number("concurrency")), URL: hash["url"], Pull: hash["url"] == pull,
		Timeout:   time.Duration(number("timeout")) * time.Millisecond,
		Retention: time.Duration(number("retention")) * time.Second,
		Paused:    hash["paused"] == "1", Schedule: hash["schedule"], Timezone: hash["timezone"],
		Owner: bus.ClientName(hash["owner"]), CreatedAt: fromMicros(hash["created_at"]), UpdatedAt: fromMicros(hash["updated_at"]),
	}
	if t.Pull {
		t.URL = ""
	}
	if data := hash["schedule_data"]; data != "" {
		t.ScheduleData = []byte(data)
	}
	return t, hash["strategy"] != "" && hash["deleted"] != "1"
}

// CreateType makes a type. It fails with [jobs.ErrTypeExists], [jobs.ErrTooManyTypes] or
// [bus.ErrUnavailable].
func (s *Store) CreateType(ctx context.Context, t jobs.Type) error {
	return s.CreateTypeBeside(ctx, t, 0)
}

// CreateTypeBeside is [Store.CreateType] where other partitions have so many types already.
func (s *Store) CreateTypeBeside(ctx context.Context, t jobs.Type, elsewhere int) error {
	return s.putType(ctx, t, "0", scheduleChange(jobs.Type{}, t), jobs.MaxTypes-elsewhere)
}

// scheduleChange is what type_put.lua is told of a schedule.
func scheduleChange(before, after jobs.Type) string {
	switch {
	case after.Schedule == "":
		return "none"
	case before.Schedule != after.Schedule || before.Timezone != after.Timezone:
		return "set"
	}
	return "kept"
}

func (s *Store) putType(ctx context.Context, t jobs.Type, revision, schedule string, max int) error {
	args := append([]any{string(t.Name), revision, max, micros(t.UpdatedAt), schedule}, fieldsOf(t)...)
	_, err := replied("store job type", scriptTypePut.Change(ctx, s.redis, "", args...))
	return orUnknownType(err)
}

// orUnknownType is an error of a script that speaks of types only.
func orUnknownType(err error) error {
	if errors.Is(err, jobs.ErrUnknownJob) {
		return jobs.ErrUnknownType
	}
	return err
}

// maxChanges is how often a change is tried while others change the same type.
const maxChanges = 10

// ChangeType has a function change a type; its error is returned, and then nothing is changed. It
// is called again if somebody else has changed the type meanwhile. From then on, the change holds
// on all workers. It fails with [jobs.ErrUnknownType] or [bus.ErrUnavailable].
func (s *Store) ChangeType(ctx context.Context, name jobs.TypeName, change func(*jobs.Type) error) (t jobs.Type, err error) {
	for range maxChanges {
		hash, err := s.redis.HGetAll(ctx, s.keys.Type(name)).Result()
		if err != nil {
			return t, rdb.Wrap("read job type", err)
		}
		before, ok := parseType(name, hash)
		if !ok {
			return t, jobs.ErrUnknownType
		}
		t = before
		if err := change(&t); err != nil {
			return t, err
		}
		err = s.putType(ctx, t, hash["revision"], scheduleChange(before, t), jobs.MaxTypes)
		if err == nil {
			err = s.wake(ctx, string(name), true)
		}
		if !errors.Is(err, errChanged) {
			return t, err
		}
	}
	return t, errChanged
}

// wake wakes the jobs of a type that wait although they have their turn, step by step: all, or the
// rest of them.
func (s *Store) wake(ctx context.Context, name string, all bool) error {
	for more := 1; more == 1; all = false {
		var err error
		if more, err = s.redis.Run(ctx, scriptTypeWake, name, all).Int(); err != nil {
			return rdb.Wrap("wake jobs", err)
		}
	}
	return nil
}

// Type returns a type. It fails with [jobs.ErrUnknownType] or [bus.ErrUnavailable].
func (s *Store) Type(ctx context.Context, name jobs.TypeName) (jobs.Type, error) {
	found, err := s.readTypes(ctx, string(name))
	if err == nil && len(found) == 0 {
		err = jobs.ErrUnknownType
	}
	if err != nil {
		return jobs.Type{}, err
	}
	return found[0], nil
}

// Types returns all types, the newest first. It fails with [bus.ErrUnavailable].
func (s *Store) Types(ctx context.Context) ([]jobs.Type, error) {
	names, err := s.TypeNames(ctx)
	if err != nil {
		return nil, err
	}
	types, err := s.readTypes(ctx, names...)
	slices.SortFunc(types, jobs.CompareTypes)
	return types, err
}

// TypeNames returns the names of all types, those included that are being deleted, in order. It
// fails with [bus.ErrUnavailable].
func (s *Store) TypeNames(ctx context.Context) ([]string, error) {
	names, err := s.redis.SMembers(ctx, s.keys.Types()).Result()
	slices.Sort(names)
	return names, rdb.Wrap("list job types", err)
}

// CountTypes returns how many types there are, those included that are being deleted. It fails with
// [bus.ErrUnavailable].
func (s *Store) CountTypes(ctx context.Context) (int, error) {
	n, err := s.redis.SCard(ctx, s.keys.Types()).Result()
	return int(n), rdb.Wrap("count job types", err)
}

// readTypes returns those of some types that are there and are not being deleted.
func (s *Store) readTypes(ctx context.Context, names ...string) (types []jobs.Type, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	hashes := make([]rdb.Reply[map[string]string], len(names))
	err = s.redis.Pipelined(ctx, "read job types", func(pipe rdb.Commands) {
		for i, name := range names {
			hashes[i] = pipe.HGetAll(ctx, s.keys.Type(jobs.TypeName(name)))
		}
	})
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if t, ok := parseType(jobs.TypeName(name), hashes[i].Val()); ok {
			types = append(types, t)
		}
	}
	return types, nil
}

// Counts returns how many jobs of some types have not ended, in their order, in one round trip:
// of a type that is not there, or damaged, none. It fails with [bus.ErrUnavailable].
func (s *Store) Counts(ctx context.Context, types ...jobs.Type) ([]jobs.Counts, error) {
	counts, args := make([]jobs.Counts, len(types)), make([]any, len(types))
	for i, t := range types {
		args[i] = string(t.Name)
	}
	reply, err := s.redis.Run(ctx, scriptTypeCounts, args...).List()
	for i := range reply {
		of := reply[i].([]any)
		counts[i] = jobs.Counts{
			Queued: of[0].(int64), Waiting: of[1].(int64), InProgress: of[2].(int64), Oldest: fromMicros(of[3]),
			HeldUntil: fromMicros(of[4]),
		}
	}
	return counts, rdb.Wrap("count jobs", err)
}

// deletionTime is how long a client waits at most while the jobs of a type are cancelled.
const deletionTime = 5 * time.Second

// DeleteType deletes a type: from then on nothing of it is taken or enqueued, and its archived
// jobs are kept as long as before. If forced, its jobs that have not ended are archived as
// cancelled, here or, if they are too many, by [Store.Purge]. Allowed is given the type
// first; its error is returned, and then nothing is changed. It fails with [jobs.ErrUnknownType],
// [jobs.ErrTypeHasJobs] or [bus.ErrUnavailable].
func (s *Store) DeleteType(
	ctx context.Context, name jobs.TypeName, force bool, now time.Time, allowed func(jobs.Type) error,
) error {
	t, err := s.Type(ctx, name)
	if err == nil {
		err = allowed(t)
	}
	if err != nil {
		return err
	}
	_, err = replied("delete job type", s.redis.Change(ctx, scriptTypeDelete, string(name), force))
	begun := time.Now()
	for left := true; err == nil && left && time.Since(begun) < deletionTime; {
		var done tended
		done, err = readTended(s.redis.Run(ctx, scriptTypeTend, tendArgs(string(name), now)...))
		left = done.open > 0
	}
	return orUnknownType(err)
}
