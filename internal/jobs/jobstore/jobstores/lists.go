package jobstores

import (
	"cmp"
	"context"

	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
)

// Open is [jobstore.Store.Open] of all partitions, or of the one that has the type. It fails with
// [bus.ErrUnavailable] while a partition that it needs is away or held. A page has more jobs than
// asked for if the next have the id and the moment of its last, as jobs of several types may.
func (s *Stores) Open(ctx context.Context, f jobstore.Filter) (list []jobs.Job, next string, err error) {
	if f.Type != "" || len(s.all) == 1 {
		return s.Of(f.Type).Open(ctx, f)
	}
	return s.merge(ctx, jobstore.Open, f)
}

// Archived is [Stores.Open] for jobs that have ended.
func (s *Stores) Archived(ctx context.Context, f jobstore.Filter) (list []jobs.Job, next string, err error) {
	if f.Type != "" || len(s.all) == 1 {
		return s.Of(f.Type).Archived(ctx, f)
	}
	return s.merge(ctx, jobstore.Archived, f)
}

// merge takes a page from the lists of all partitions.
func (s *Stores) merge(ctx context.Context, which jobstore.Which, f jobstore.Filter) (list []jobs.Job, next string, err error) {
	sources, limit := make([]*source, len(s.all)), f.Limit
	f.Limit = limit/len(s.all) + 1 // what is read and not needed may be large
	errs := s.Each(func(i int, st *jobstore.Store) error {
		sources[i] = &source{store: st, which: which, filter: f}
		return sources[i].read(ctx)
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, "", err
	}
	for last := (jobstore.Place{}); ; {
		head := sources[0]
		for _, s := range sources {
			if err := s.fill(ctx); err != nil {
				return nil, "", err
			}
			if s.isAhead(head) {
				head = s
			}
		}
		switch {
		case len(head.page) == 0: // the rest of it may have what comes next
			return list, head.next, nil
		case len(list) >= limit && head.page[0].Place != last:
			return list, last.String(), nil
		}
		last, list = head.page[0].Place, append(list, head.page[0].Job)
		head.page = head.page[1:]
	}
}

// source is the list of a partition, read as far as it is needed.
type source struct {
	store  *jobstore.Store
	which  jobstore.Which
	filter jobstore.Filter
	// page is what was read and not taken yet, next the cursor of the rest, empty if there is none.
	page []jobstore.Placed
	next string
	// behind is the place of next.
	behind jobstore.Place
	// stuck: the last call found nothing that is wanted. The next page goes on from there, so that
	// one costs no more than on a bus without partitions.
	stuck bool
}

// fill reads what comes next, unless it was read.
func (s *source) fill(ctx context.Context) error {
	if len(s.page) > 0 || s.next == "" || s.stuck {
		return nil
	}
	s.filter.Before, s.filter.Limit = s.next, 2*s.filter.Limit
	return s.read(ctx)
}

func (s *source) read(ctx context.Context) (err error) {
	s.page, s.next, err = s.store.Page(ctx, s.which, s.filter)
	if err != nil {
		return err
	}
	s.stuck, s.behind = len(s.page) == 0, jobstore.Place{}
	if s.next != "" {
		s.behind, err = jobstore.ParsePlace(s.next)
	}
	return err
}

// isAhead reports whether what the source has next comes before what another one has.
func (s *source) isAhead(than *source) bool {
	order := s.place().Compare(than.place())
	return order > 0 || order == 0 && len(s.page) > 0 // the rest of a list is behind its place
}

func (s *source) place() jobstore.Place {
	if len(s.page) > 0 {
		return s.page[0].Place
	}
	return s.behind
}
