package jobs

import (
	"cmp"
	"context"
)

// Open is [Store.Open] of all partitions, or of the one that has the type. It fails with
// [bus.ErrUnavailable] while a partition that it needs is away or held. A page has more jobs than
// asked for if the next have the id and the moment of its last, as jobs of several types may.
func (s *Bus) Open(ctx context.Context, f Filter) (list []Job, next string, err error) {
	if f.Type != "" || len(s.all) == 1 {
		return s.Of(f.Type).Open(ctx, f)
	}
	return s.merge(ctx, ListOpen, f)
}

// Archived is [Bus.Open] for jobs that have ended.
func (s *Bus) Archived(ctx context.Context, f Filter) (list []Job, next string, err error) {
	if f.Type != "" || len(s.all) == 1 {
		return s.Of(f.Type).Archived(ctx, f)
	}
	return s.merge(ctx, ListArchived, f)
}

// merge takes a page from the lists of all partitions.
func (s *Bus) merge(ctx context.Context, which Which, f Filter) (list []Job, next string, err error) {
	lists, limit := make([]*listing, len(s.all)), f.Limit
	f.Limit = limit/len(s.all) + 1 // entries that are read and not needed may be large
	errs := s.Each(func(i int, st *Store) error {
		lists[i] = &listing{store: st, which: which, filter: f}
		return lists[i].read(ctx)
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, "", err
	}
	size := 0
	for last := (Place{}); ; {
		head := lists[0]
		for _, l := range lists {
			if err := l.fill(ctx); err != nil {
				return nil, "", err
			}
			if l.isAhead(head) {
				head = l
			}
		}
		switch {
		case len(head.page) == 0: // its unread rest may have the next job
			return list, head.next, nil
		case (len(list) >= limit || size >= MaxPageBytes) && head.page[0].Place != last:
			return list, last.String(), nil
		}
		last, list = head.page[0].Place, append(list, head.page[0].Job)
		size += len(head.page[0].Data)
		head.page = head.page[1:]
	}
}

// listing is the list of a partition, read as far as it is needed.
type listing struct {
	store  *Store
	which  Which
	filter Filter
	// page holds the entries read and not taken yet, next the cursor of the rest, empty if there is
	// none.
	page []Placed
	next string
	// behind is the place of next.
	behind Place
	// stuck: the last call found nothing that is wanted. The next page goes on from there, so that
	// one costs no more than on a bus without partitions.
	stuck bool
}

// fill reads the next entries, if none are left.
func (l *listing) fill(ctx context.Context) error {
	if len(l.page) > 0 || l.next == "" || l.stuck {
		return nil
	}
	l.filter.Before, l.filter.Limit = l.next, 2*l.filter.Limit
	return l.read(ctx)
}

func (l *listing) read(ctx context.Context) (err error) {
	l.page, l.next, err = l.store.Page(ctx, l.which, l.filter)
	if err != nil {
		return err
	}
	l.stuck, l.behind = len(l.page) == 0, Place{}
	if l.next != "" {
		l.behind, err = ParsePlace(l.next)
	}
	return err
}

// isAhead reports whether the next entry of the list comes before the next one of another.
func (l *listing) isAhead(than *listing) bool {
	order := l.place().Compare(than.place())
	return order > 0 || order == 0 && len(l.page) > 0 // the rest of a list is behind its place
}

func (l *listing) place() Place {
	if len(l.page) > 0 {
		return l.page[0].Place
	}
	return l.behind
}
