package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// pull stands in the place of a URL where services fetch the jobs.
const pull = "pull"

// errChanged means that a type has changed since it was read.
var errChanged = errors.New("the job type was changed meanwhile")

// fieldsOf are the fields of a type's hash that clients set.
func fieldsOf(t Type) []any {
	url := t.URL
	if t.Pull {
		url = pull
	}
	return []any{
		"strategy", string(t.Strategy), "attempts", t.Attempts, "concurrency", t.Concurrency, "url", url,
		"timeout", t.Timeout.Milliseconds(), "retention", int64(t.Retention / time.Second), "paused", t.Paused,
		"schedule", t.Schedule, "timezone", t.Timezone, "schedule_data", t.ScheduleData, "clients", joinClients(t.Clients), "owner", string(t.Owner),
		"created_at", micros(t.CreatedAt), "updated_at", micros(t.UpdatedAt),
	}
}

// joinClients is a list of clients as the scripts read it, and splitClients the other way round.
func joinClients(clients bus.Clients) string {
	var text strings.Builder
	for i, name := range clients {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(string(name))
	}
	return text.String()
}

func splitClients(text string) (clients bus.Clients) {
	for name := range strings.FieldsSeq(text) {
		clients = append(clients, bus.ClientName(name))
	}
	return clients
}

// parseType reads the hash of a type. It reports whether there is one that is not being deleted.
func parseType(name TypeName, hash map[string]string) (t Type, ok bool) {
	number := func(field string) int64 { return rdb.Integer(hash[field], 0) }
	t = Type{
		Name: name, Strategy: Strategy(hash["strategy"]), Attempts: int(number("attempts")),
		Concurrency: int(number("concurrency")), URL: hash["url"], Pull: hash["url"] == pull,
		Timeout:   time.Duration(number("timeout")) * time.Millisecond,
		Retention: time.Duration(number("retention")) * time.Second,
		Paused:    hash["paused"] == "1", Schedule: hash["schedule"], Timezone: hash["timezone"],
		Owner: bus.ClientName(hash["owner"]), CreatedAt: fromMicros(hash["created_at"]), UpdatedAt: fromMicros(hash["updated_at"]),
		SkippedAt: fromMicros(hash["skipped_at"]), SkipReason: SkipReason(hash["skip_reason"]),
		Clients: splitClients(hash["clients"]),
	}
	if t.Pull {
		t.URL = ""
	}
	if data := hash["schedule_data"]; data != "" {
		t.ScheduleData = []byte(data)
	}
	return t, hash["strategy"] != "" && hash["deleted"] != "1"
}

// CreateType is [Store.CreateTypeWithin] the default limits.
func (s *Store) CreateType(ctx context.Context, t Type) error {
	return s.CreateTypeWithin(ctx, t, DefaultTypeLimits)
}

// CreateTypeWithin makes a type, within limits. It fails with [ErrTypeExists],
// [ErrTooManyTypes], [ErrTooManyClientTypes], an [account.FullError] or
// [bus.ErrUnavailable].
func (s *Store) CreateTypeWithin(ctx context.Context, t Type, limits TypeLimits) error {
	return s.putType(ctx, t, "0", scheduleChange(Type{}, t), limits)
}

// scheduleChange returns the argument of type_put.lua for a schedule.
func scheduleChange(before, after Type) string {
	switch {
	case after.Schedule == "":
		return "none"
	case before.Schedule != after.Schedule || before.Timezone != after.Timezone:
		return "set"
	}
	return "kept"
}

func (s *Store) putType(ctx context.Context, t Type, revision, schedule string, limits TypeLimits) error {
	args := typeArgs{
		Name: string(t.Name), Revision: revision, MaxTypes: limits.Bus, Now: micros(t.UpdatedAt), Schedule: schedule,
		Owner: string(t.Owner), MaxOwned: limits.Client,
	}.list()
	_, err := replied("store job type", s.redis.Change(ctx, scriptTypePut, append(args, fieldsOf(t)...)...))
	return orUnknownType(err)
}

// typeArgs are the first arguments of lua/type_put.lua, under the same names there.
type typeArgs struct {
	Name     string
	Revision string // that is to be changed; 0 for a type that is to be made
	MaxTypes int
	Now      int64 // µs
	// Schedule says whether the type has one that was set now ("set"), has none ("none"), or has the
	// one that it had ("kept").
	Schedule string
	Owner    string // empty for root
	MaxOwned int    // types of the owner
}

func (a typeArgs) list() []any {
	return []any{a.Name, a.Revision, a.MaxTypes, a.Now, a.Schedule, a.Owner, a.MaxOwned}
}

// orUnknownType is an error of a script that speaks of types only.
func orUnknownType(err error) error {
	if errors.Is(err, ErrUnknownJob) {
		return ErrUnknownType
	}
	return err
}

// maxChanges is how often a change is tried while others change the same type.
const maxChanges = 10

// ChangeType changes a type by a function; if that fails, ChangeType returns its error and changes
// nothing. The function is called again if the type was changed meanwhile. From then on, the change
// holds on all workers. ChangeType fails with [ErrUnknownType], an [account.FullError] (the data of
// its schedule has grown) or [bus.ErrUnavailable].
func (s *Store) ChangeType(ctx context.Context, name TypeName, change func(*Type) error) (t Type, err error) {
	for range maxChanges {
		hash, err := s.redis.HGetAll(ctx, s.keys.JobType(string(name))).Result()
		if err != nil {
			return t, rdb.Wrap("read job type", err)
		}
		before, ok := parseType(name, hash)
		if !ok {
			return t, ErrUnknownType
		}
		t = before
		if err := change(&t); err != nil {
			return t, err
		}
		err = s.putType(ctx, t, hash["revision"], scheduleChange(before, t), TypeLimits{})
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

// Type returns a type. It fails with [ErrUnknownType] or [bus.ErrUnavailable].
func (s *Store) Type(ctx context.Context, name TypeName) (Type, error) {
	hash, err := s.redis.HGetAll(ctx, s.keys.JobType(string(name))).Result()
	if err != nil {
		return Type{}, rdb.Wrap("read job type", err)
	}
	t, ok := parseType(name, hash)
	if !ok {
		return t, ErrUnknownType
	}
	return t, nil
}

// Admit fails with [ErrNotClient] if a type is not for the store's client, or with
// [bus.ErrUnavailable]. It returns nil for an unknown type.
func (s *Store) Admit(ctx context.Context, name TypeName) error {
	clients, err := s.redis.HGet(ctx, s.keys.JobType(string(name)), "clients").Result()
	switch {
	case err != nil && !errors.Is(err, rdb.Nil):
		return rdb.Wrap("read job type", err)
	case !splitClients(clients).Allow(s.client):
		return ErrNotClient
	}
	return nil
}

// Types returns all types without the data of their schedules, the newest first. It fails with
// [bus.ErrUnavailable].
func (s *Store) Types(ctx context.Context) ([]Type, error) {
	names, err := s.TypeNames(ctx)
	if err != nil {
		return nil, err
	}
	types, err := s.readTypes(ctx, names...)
	slices.SortFunc(types, CompareTypes)
	return types, err
}

// TypeNames returns the names of all types in order, including types that are being deleted. It
// fails with [bus.ErrUnavailable].
func (s *Store) TypeNames(ctx context.Context) ([]string, error) {
	names, err := s.redis.SMembers(ctx, s.keys.JobTypes()).Result()
	slices.Sort(names)
	return names, rdb.Wrap("list job types", err)
}

// CountTypes returns how many types there are, and how many of them are a client's, including types
// that are being deleted. It fails with [bus.ErrUnavailable].
func (s *Store) CountTypes(ctx context.Context, owner bus.ClientName) (all, owned int, err error) {
	var ofBus, ofOwner rdb.Reply[int64]
	err = s.redis.Pipelined(ctx, "count job types", func(pipe rdb.Commands) {
		ofBus, ofOwner = pipe.SCard(ctx, s.keys.JobTypes()), pipe.SCard(ctx, s.keys.JobTypesOf(owner))
	})
	return int(ofBus.Val()), int(ofOwner.Val()), err
}

// listedFields are the fields of a type's hash that lists of types have: all but the data of its
// schedule.
var listedFields = []string{
	"strategy", "attempts", "concurrency", "url", "timeout", "retention", "paused", "schedule", "timezone",
	"clients", "owner", "created_at", "updated_at", "skipped_at", "skip_reason", "deleted",
}

// typesPerRead is how many types one round trip reads.
const typesPerRead = 500

// readTypes reads types by name, without the data of their schedules. It skips types that do not
// exist or are being deleted.
func (s *Store) readTypes(ctx context.Context, names ...string) (types []Type, err error) {
	for some := range slices.Chunk(names, typesPerRead) {
		hashes := make([]rdb.Reply[[]any], len(some))
		err = s.redis.Pipelined(ctx, "read job types", func(pipe rdb.Commands) {
			for i, name := range some {
				hashes[i] = pipe.HMGet(ctx, s.keys.JobType(name), listedFields...)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, name := range some {
			hash := make(map[string]string, len(listedFields))
			for j, value := range hashes[i].Val() {
				hash[listedFields[j]] = rdb.Text(value)
			}
			if t, ok := parseType(TypeName(name), hash); ok {
				types = append(types, t)
			}
		}
	}
	return types, nil
}

// typesPerCount is how many types one script counts the jobs of.
const typesPerCount = 20

// Counts returns how many jobs of some types have not ended, in their order, in one round trip:
// of a type that is not there, or damaged, none. It fails with [bus.ErrUnavailable].
func (s *Store) Counts(ctx context.Context, types ...Type) ([]Counts, error) {
	var calls []rdb.Call
	for some := range slices.Chunk(types, typesPerCount) {
		args := make([]any, len(some))
		for i, t := range some {
			args[i] = string(t.Name)
		}
		calls = append(calls, scriptTypeCounts.Call(args...))
	}
	counts := make([]Counts, 0, len(types))
	for _, result := range s.redis.RunAll(ctx, calls...) {
		reply, err := result.List()
		if err != nil {
			return nil, rdb.Wrap("count jobs", err)
		}
		for _, one := range reply {
			of := one.([]any)
			counts = append(counts, Counts{
				Queued: of[0].(int64), Waiting: of[1].(int64), InProgress: of[2].(int64), Oldest: fromMicros(of[3]),
				HeldUntil: fromMicros(of[4]),
			})
		}
	}
	return counts, nil
}

// deletionTime is how long a client waits at most while the jobs of a type are cancelled.
const deletionTime = 5 * time.Second

// DeleteType deletes a type: from then on nothing of it is taken or enqueued, and its archived
// jobs are kept as long as before. If forced, its jobs that have not ended are archived as
// cancelled, here or, if they are too many, by [Store.Purge]. Allowed is given the type
// first; its error is returned, and then nothing is changed. It fails with [ErrUnknownType],
// [ErrTypeHasJobs] or [bus.ErrUnavailable].
func (s *Store) DeleteType(
	ctx context.Context, name TypeName, force bool, now time.Time, allowed func(Type) error,
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
