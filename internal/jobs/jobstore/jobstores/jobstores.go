// Package jobstores is the top over the jobs of all partitions of a bus: of one, or of several.
// All that is about one type, and so about its jobs, is in the partition of the type's name, and
// nothing of it goes to another one: so an id is that of one job in a partition, and types of
// different partitions may have a job each of the same id. What is about all types asks every
// partition. On a bus without partitions each call is one of its store.
package jobstores

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
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Stores are all jobs of a bus. They are safe for concurrent use.
type Stores struct {
	// Limits are for new types. They are [jobs.DefaultTypeLimits] unless they are set before any call.
	Limits jobs.TypeLimits

	partitions rdb.Partitions
	all        []*jobstore.Store
}

// New is the top over the jobs of all partitions of a bus, by number.
func New(partitions rdb.Partitions) *Stores {
	s := &Stores{Limits: jobs.DefaultTypeLimits, partitions: partitions}
	for _, p := range partitions {
		s.all = append(s.all, jobstore.New(p))
	}
	return s
}

// All are the jobs of each partition, by number.
func (s *Stores) All() []*jobstore.Store { return s.all }

// Number is that of the partition that has all of a type.
func (s *Stores) Number(name jobs.TypeName) rdb.Number {
	return s.partitions.OfJobs(string(name)).Number()
}

// Of has all of a type.
func (s *Stores) Of(name jobs.TypeName) *jobstore.Store { return s.all[s.Number(name)] }

// For is the top for what a client asks for; see [jobstore.Store.For].
func (s *Stores) For(client bus.ClientName) *Stores {
	own := *s
	own.all = make([]*jobstore.Store, len(s.all))
	for i, st := range s.all {
		own.all[i] = st.For(client)
	}
	return &own
}

// Queues are those of the jobs' entries, by number of their partitions.
func (s *Stores) Queues() (queues []*queue.Queue) {
	for _, st := range s.all {
		queues = append(queues, st.Queue())
	}
	return queues
}

// Each calls a function for all partitions at once, with their numbers, and returns its errors, by
// number.
func (s *Stores) Each(do func(number int, st *jobstore.Store) error) []error {
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

// Job is [jobstore.Store.Job]. Without a name it asks all partitions, and fails with
// [jobs.ErrManyTypes] if several have a job of the id.
func (s *Stores) Job(ctx context.Context, name jobs.TypeName, id jobs.ID) (jobs.Job, error) {
	if name != "" || len(s.all) == 1 {
		return s.Of(name).Job(ctx, name, id)
	}
	found := make([]jobs.Job, len(s.all))
	errs := s.Each(func(i int, st *jobstore.Store) (err error) {
		found[i], err = st.Job(ctx, "", id)
		return err
	})
	var job jobs.Job
	failure := jobs.ErrUnknownJob
	for i, err := range errs {
		switch {
		case err == nil && failure == nil:
			failure = jobs.ErrManyTypes
		case err == nil && errors.Is(failure, jobs.ErrUnknownJob):
			job, failure = found[i], nil
		case err != nil && !errors.Is(err, jobs.ErrUnknownJob): // it may have the job, too
			return jobs.Job{}, err
		}
	}
	return job, failure
}

// Replay is [jobstore.Store.Replay]. Without a name it looks for the job first, as [Stores.Job].
func (s *Stores) Replay(ctx context.Context, name jobs.TypeName, id, copied jobs.ID, now time.Time) (jobs.Job, error) {
	if name == "" && len(s.all) > 1 {
		job, err := s.Job(ctx, "", id)
		if errors.Is(err, jobs.ErrUnknownJob) { // it may have gone since the copy was made
			job, err = s.Job(ctx, "", copied)
		}
		if err != nil {
			return jobs.Job{}, err
		}
		name = job.Type
	}
	return s.Of(name).Replay(ctx, name, id, copied, now)
}

// Confirm is [jobstore.Store.Confirm].
func (s *Stores) Confirm(ctx context.Context, name jobs.TypeName, id jobs.ID, worker bus.WorkerID) error {
	return s.Of(name).Confirm(ctx, name, id, worker)
}

// Type is [jobstore.Store.Type].
func (s *Stores) Type(ctx context.Context, name jobs.TypeName) (jobs.Type, error) {
	t, err := s.Of(name).Type(ctx, name)
	return t, s.orClosed(ctx, name, err)
}

// orClosed is an error of a call that is about a type: a partition that has lost its keys does not
// know whether there is the type.
func (s *Stores) orClosed(ctx context.Context, name jobs.TypeName, err error) error {
	if errors.Is(err, jobs.ErrUnknownType) {
		return cmp.Or(s.partitions.OfJobs(string(name)).RequireOpen(ctx), err)
	}
	return err
}

// ChangeType is [jobstore.Store.ChangeType].
func (s *Stores) ChangeType(ctx context.Context, name jobs.TypeName, change func(*jobs.Type) error) (jobs.Type, error) {
	t, err := s.Of(name).ChangeType(ctx, name, change)
	return t, s.orClosed(ctx, name, err)
}

// DeleteType is [jobstore.Store.DeleteType].
func (s *Stores) DeleteType(
	ctx context.Context, name jobs.TypeName, force bool, now time.Time, allowed func(jobs.Type) error,
) error {
	return s.orClosed(ctx, name, s.Of(name).DeleteType(ctx, name, force, now, allowed))
}

// countTimeout is how long a partition is waited for that is asked how many types it has.
const countTimeout = 500 * time.Millisecond

// CreateType is [jobstore.Store.CreateTypeWithin]. The limits are for all partitions; types of one
// that is away are not counted, and two that are made at once may be one too many.
func (s *Stores) CreateType(ctx context.Context, t jobs.Type) error {
	own := s.Of(t.Name)
	if len(s.all) == 1 {
		return own.CreateTypeWithin(ctx, t, s.Limits)
	}
	var elsewhere, owned atomic.Int64
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	s.Each(func(_ int, st *jobstore.Store) error {
		if st != own {
			all, ofOwner, _ := st.CountTypes(counting, t.Owner)
			elsewhere.Add(int64(all))
			owned.Add(int64(ofOwner))
		}
		return nil
	})
	return own.CreateTypeWithin(ctx, t, jobs.TypeLimits{
		Client: s.Limits.Client - int(owned.Load()), Bus: s.Limits.Bus - int(elsewhere.Load()),
	})
}

// HasWorker reports whether any worker of the bus was active lately. Without one no job that is due
// later comes up, and no deadline is kept. It fails with [bus.ErrUnavailable].
func (s *Stores) HasWorker(ctx context.Context, now time.Time) (bool, error) {
	// All workers are known in all partitions.
	active, _, err := queue.NewLook(s.partitions[0]).Workers(ctx, now.Add(-bus.DeadAfter))
	return active > 0, err
}

// Page returns up to max of all types, as [Stores.Types], from behind a cursor, which is empty for
// the newest. Next is the cursor of the next page, empty if there is none. It fails with
// [bus.ErrUnavailable], or a [bus.Invalid] for a cursor that is none.
func (s *Stores) Page(ctx context.Context, after string, max int) (page []jobs.Type, next string, err error) {
	last, err := parseCursor(after)
	if err != nil {
		return nil, "", err
	}
	page, err = s.Types(ctx)
	if err != nil {
		return nil, "", err
	}
	page = slices.DeleteFunc(page, func(t jobs.Type) bool { return after != "" && jobs.CompareTypes(t, last) <= 0 })
	if len(page) > max {
		page = page[:max]
		next = fmt.Sprintf("%d-%s", page[max-1].CreatedAt.UnixMicro(), page[max-1].Name)
	}
	return page, next, nil
}

// parseCursor returns what is known of the last type before a page.
func parseCursor(cursor string) (t jobs.Type, err error) {
	if cursor == "" {
		return t, nil
	}
	created, name, found := strings.Cut(cursor, "-")
	us, err := strconv.ParseInt(created, 10, 64)
	if err != nil || !found {
		return t, bus.Invalidf("", "the query's after must be that of the Link of the page before")
	}
	return jobs.Type{Name: jobs.TypeName(name), CreatedAt: time.UnixMicro(us)}, nil
}

// Types is [jobstore.Store.Types] of all partitions. It fails with [bus.ErrUnavailable] while one
// of them is away or held.
func (s *Stores) Types(ctx context.Context) ([]jobs.Type, error) {
	found := make([][]jobs.Type, len(s.all))
	errs := s.Each(func(i int, st *jobstore.Store) (err error) {
		if found[i], err = st.Types(ctx); err == nil {
			err = s.partitions[i].RequireOpen(ctx)
		}
		return err
	})
	types := slices.Concat(found...)
	slices.SortFunc(types, jobs.CompareTypes)
	return types, cmp.Or(errs...)
}

// Counts is [jobstore.Store.Counts].
func (s *Stores) Counts(ctx context.Context, types ...jobs.Type) ([]jobs.Counts, error) {
	if len(s.all) == 1 {
		return s.all[0].Counts(ctx, types...)
	}
	of, at := make([][]jobs.Type, len(s.all)), make([][]int, len(s.all))
	for i, t := range types {
		number := s.Number(t.Name)
		of[number], at[number] = append(of[number], t), append(at[number], i)
	}
	all := make([]jobs.Counts, len(types))
	errs := s.Each(func(number int, st *jobstore.Store) error {
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
