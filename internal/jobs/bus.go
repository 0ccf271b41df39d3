package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Bus is the jobs of all partitions. It is safe for concurrent use.
//
// A type and its jobs are in the partition of the type's name. An id names one job in a partition,
// so types of different partitions may each have a job of the same id. Calls about all types ask
// every partition.
type Bus struct {
	// Limits are for new types. They are [DefaultTypeLimits] unless they are set before any call.
	Limits TypeLimits

	partitions rdb.Partitions
	all        []*Store
}

// NewBus is the top over the jobs of all partitions of a bus, by number.
func NewBus(partitions rdb.Partitions) *Bus {
	s := &Bus{Limits: DefaultTypeLimits, partitions: partitions}
	for _, p := range partitions {
		s.all = append(s.all, NewStore(p))
	}
	return s
}

// All are the jobs of each partition, by number.
func (s *Bus) All() []*Store { return s.all }

// Number names the partition that has all of a type.
func (s *Bus) Number(name TypeName) rdb.Number {
	return s.partitions.OfJobs(string(name)).Number()
}

// Of has all of a type.
func (s *Bus) Of(name TypeName) *Store { return s.all[s.Number(name)] }

// For returns the bus for requests of a client; see [Store.For].
func (s *Bus) For(client bus.ClientName) *Bus {
	own := *s
	own.all = make([]*Store, len(s.all))
	for i, st := range s.all {
		own.all[i] = st.For(client)
	}
	return &own
}

// Queues hold the jobs' entries, by number of their partitions.
func (s *Bus) Queues() (queues []*queue.Queue) {
	for _, st := range s.all {
		queues = append(queues, st.Queue())
	}
	return queues
}

// Each calls a function for all partitions at once, with their numbers, and returns its errors, by
// number.
func (s *Bus) Each(do func(number int, st *Store) error) []error {
	errs := make([]error, len(s.all))
	if len(s.all) == 1 {
		errs[0] = do(0, s.all[0])
		return errs
	}
	var calls sync.WaitGroup
	for i, st := range s.all {
		calls.Go(func() { errs[i] = do(i, st) })
	}
	calls.Wait()
	return errs
}

// Job is [Store.Job]. Without a name it asks all partitions, and fails with
// [ErrManyTypes] if several have a job of the id.
func (s *Bus) Job(ctx context.Context, name TypeName, id ID) (Job, error) {
	if name != "" || len(s.all) == 1 {
		return s.Of(name).Job(ctx, name, id)
	}
	found := make([]Job, len(s.all))
	errs := s.Each(func(i int, st *Store) (err error) {
		found[i], err = st.Job(ctx, "", id)
		return err
	})
	var job Job
	failure := ErrUnknownJob
	for i, err := range errs {
		switch {
		case err == nil && failure == nil:
			failure = ErrManyTypes
		case err == nil && errors.Is(failure, ErrUnknownJob):
			job, failure = found[i], nil
		case err != nil && !errors.Is(err, ErrUnknownJob): // it may have the job, too
			return Job{}, err
		}
	}
	return job, failure
}

// Replay is [Store.Replay]. Without a name it looks for the job first, as [Bus.Job].
func (s *Bus) Replay(ctx context.Context, name TypeName, id, copied ID, now time.Time) (Job, error) {
	if name == "" && len(s.all) > 1 {
		job, err := s.Job(ctx, "", id)
		if errors.Is(err, ErrUnknownJob) { // it may have gone since the copy was made
			job, err = s.Job(ctx, "", copied)
		}
		if err != nil {
			return Job{}, err
		}
		name = job.Type
	}
	return s.Of(name).Replay(ctx, name, id, copied, now)
}

// Confirm is [Store.Confirm].
func (s *Bus) Confirm(ctx context.Context, name TypeName, id ID, worker bus.WorkerID) error {
	return s.Of(name).Confirm(ctx, name, id, worker)
}

// Type is [Store.Type].
func (s *Bus) Type(ctx context.Context, name TypeName) (Type, error) {
	t, err := s.Of(name).Type(ctx, name)
	return t, s.orClosed(ctx, name, err)
}

// orClosed is an error of a call that is about a type: a partition that has lost its keys does not
// know whether there is the type.
func (s *Bus) orClosed(ctx context.Context, name TypeName, err error) error {
	if errors.Is(err, ErrUnknownType) {
		return cmp.Or(s.partitions.OfJobs(string(name)).RequireOpen(ctx), err)
	}
	return err
}

// ChangeType is [Store.ChangeType].
func (s *Bus) ChangeType(ctx context.Context, name TypeName, change func(*Type) error) (Type, error) {
	t, err := s.Of(name).ChangeType(ctx, name, change)
	return t, s.orClosed(ctx, name, err)
}

// DeleteType is [Store.DeleteType].
func (s *Bus) DeleteType(
	ctx context.Context, name TypeName, force bool, now time.Time, allowed func(Type) error,
) error {
	return s.orClosed(ctx, name, s.Of(name).DeleteType(ctx, name, force, now, allowed))
}

// typesCountTimeout is how long a partition is waited for that is asked how many types it has.
const typesCountTimeout = 500 * time.Millisecond

// CreateType is [Store.CreateTypeWithin]. The limits are for all partitions; types of one
// that is away are not counted, and two that are made at once may be one too many.
func (s *Bus) CreateType(ctx context.Context, t Type) error {
	own := s.Of(t.Name)
	if len(s.all) == 1 {
		return own.CreateTypeWithin(ctx, t, s.Limits)
	}
	var elsewhere, owned atomic.Int64
	counting, cancel := context.WithTimeout(ctx, typesCountTimeout)
	defer cancel()
	s.Each(func(_ int, st *Store) error {
		if st != own {
			all, ofOwner, _ := st.CountTypes(counting, t.Owner)
			elsewhere.Add(int64(all))
			owned.Add(int64(ofOwner))
		}
		return nil
	})
	return own.CreateTypeWithin(ctx, t, TypeLimits{
		Client: s.Limits.Client - int(owned.Load()), Bus: s.Limits.Bus - int(elsewhere.Load()),
	})
}

// HasWorker reports whether any worker of the bus was active lately. Without one no job that is due
// later comes up, and no deadline is kept. It fails with [bus.ErrUnavailable].
func (s *Bus) HasWorker(ctx context.Context, now time.Time) (bool, error) {
	// All workers are known in all partitions.
	active, _, err := queue.NewLook(s.partitions[0]).Workers(ctx, now.Add(-bus.DeadAfter))
	return active > 0, err
}

// Page returns up to limit of all types, as [Bus.Types], from behind a cursor, which is empty for
// the newest. Next is the cursor of the next page, empty if there is none. It fails with
// [bus.ErrUnavailable], or a [bus.Invalid] for a malformed cursor.
func (s *Bus) Page(ctx context.Context, after string, limit int) (page []Type, next string, err error) {
	last, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	page, err = s.Types(ctx)
	if err != nil {
		return nil, "", err
	}
	page = slices.DeleteFunc(page, func(t Type) bool { return after != "" && CompareTypes(t, last) <= 0 })
	if len(page) > limit {
		page = page[:limit]
		next = fmt.Sprintf("%d-%s", page[limit-1].CreatedAt.UnixMicro(), page[limit-1].Name)
	}
	return page, next, nil
}

// parseCursor returns the last type before a page, as far as the cursor says.
func parseCursor(cursor string) (t Type, err error) {
	if cursor == "" {
		return t, nil
	}
	created, name, found := strings.Cut(cursor, "-")
	us, err := strconv.ParseInt(created, 10, 64)
	if err != nil || !found {
		return t, bus.Invalidf("", "the query's after must be that of the Link of the page before")
	}
	return Type{Name: TypeName(name), CreatedAt: time.UnixMicro(us)}, nil
}

// Types is [Store.Types] of all partitions. It fails with [bus.ErrUnavailable] while one
// of them is away or held.
func (s *Bus) Types(ctx context.Context) ([]Type, error) {
	found := make([][]Type, len(s.all))
	errs := s.Each(func(i int, st *Store) (err error) {
		if found[i], err = st.Types(ctx); err == nil {
			err = s.partitions[i].RequireOpen(ctx)
		}
		return err
	})
	types := slices.Concat(found...)
	slices.SortFunc(types, CompareTypes)
	return types, cmp.Or(errs...)
}

// Counts is [Store.Counts].
func (s *Bus) Counts(ctx context.Context, types ...Type) ([]Counts, error) {
	if len(s.all) == 1 {
		return s.all[0].Counts(ctx, types...)
	}
	of, at := make([][]Type, len(s.all)), make([][]int, len(s.all))
	for i, t := range types {
		number := s.Number(t.Name)
		of[number], at[number] = append(of[number], t), append(at[number], i)
	}
	all := make([]Counts, len(types))
	errs := s.Each(func(number int, st *Store) error {
		if len(of[number]) == 0 {
			return nil
		}
		counts, err := st.Counts(ctx, of[number]...)
		for i, n := range counts {
			all[at[number][i]] = n
		}
		return err
	})
	return all, cmp.Or(errs...)
}
