package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/machines"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
)

// Bus is the machines and labels of all partitions. It is safe for concurrent use.
//
// A label is in the partition of its name and its machine's, and no step of it needs another one.
// The definitions are in all, and the first one decides which: see busdefinitions.go.
type Bus struct {
	partitions rdb.Partitions
	all        []*Store
}

// NewBus is the top over the machines and labels of all partitions of a bus, by number.
func NewBus(partitions rdb.Partitions) *Bus {
	return &Bus{partitions, NewStores(partitions)}
}

// All are the machines and labels of each partition, by number.
func (s *Bus) All() []*Store { return s.all }

// Of has a label, if there is one of that name.
func (s *Bus) Of(machine machines.Name, label machines.LabelName) *Store {
	return s.all[s.partitions.OfLabel(string(machine)+"/"+string(label)).Number()]
}

// Queues returns the queues of the labels' entries, by number of their partitions.
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

// firstTimeout is how long the first partition is waited for before all are asked.
const firstTimeout = 300 * time.Millisecond

// Definitions returns the current definitions, from any partition if the first is away. It fails
// with [bus.ErrUnavailable].
func (s *Bus) Definitions(ctx context.Context) (*machines.Definitions, error) {
	if len(s.all) == 1 {
		return s.all[0].Definitions(ctx)
	}
	first, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	d, err := s.all[0].Definitions(first)
	if !errors.Is(err, bus.ErrUnavailable) || ctx.Err() != nil {
		return d, err
	}
	return s.anyDefinitions(ctx)
}

// anyDefinitions returns the definitions of the partition that answers first. A partition without
// definitions may have lost its keys, so anyDefinitions then waits for the others.
func (s *Bus) anyDefinitions(ctx context.Context) (none *machines.Definitions, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		d   *machines.Definitions
		err error
	}
	answers := make(chan answer, len(s.all))
	for _, st := range s.all {
		go func() {
			d, err := st.Definitions(ctx)
			answers <- answer{d, err}
		}()
	}
	for range s.all {
		switch a := <-answers; {
		case a.err != nil:
			err = a.err
		case a.d.Version > 0:
			return a.d, nil
		default:
			none = a.d
		}
	}
	if none != nil {
		return none, nil
	}
	return nil, err
}

// MachineNames returns the names of all machines. It fails with [bus.ErrUnavailable].
func (s *Bus) MachineNames(ctx context.Context) (map[string]bool, error) {
	definitions, err := s.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(definitions.Machines))
	for _, m := range definitions.Machines {
		names[string(m.Name)] = true
	}
	return names, nil
}

// List is [Store.List]. It fails with [bus.ErrUnavailable] while a partition is away or
// held.
func (s *Bus) List(
	ctx context.Context, machine machines.Name, f Filter,
) (list []Listed, next machines.LabelName, err error) {
	pages, ends := make([][]Listed, len(s.all)), make([]machines.LabelName, len(s.all))
	errs := s.Each(func(i int, st *Store) (err error) {
		if pages[i], ends[i], err = st.List(ctx, machine, f); err == nil {
			err = s.partitions[i].RequireOpen(ctx)
		}
		return err
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, "", err
	}
	// Behind the end of a page that has another one after it, not all names are known.
	for _, end := range ends {
		if end != "" && (next == "" || end < next) {
			next = end
		}
	}
	list = slices.Concat(pages...)
	if next != "" {
		list = slices.DeleteFunc(list, func(l Listed) bool { return l.Name > next })
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
	if len(list) > f.Limit {
		list = list[:f.Limit]
		next = list[f.Limit-1].Name
	}
	return list, next, nil
}

// Counts is [Store.Counts] of all partitions. It fails with [bus.ErrUnavailable] while
// one of them is away or held.
func (s *Bus) Counts(
	ctx context.Context, d *machines.Definitions, machine machines.Name,
) (counts []machines.StateCount, errored int64, err error) {
	all, numbers := make([][]machines.StateCount, len(s.all)), make([]int64, len(s.all))
	errs := s.Each(func(i int, st *Store) (err error) {
		if all[i], numbers[i], err = st.Counts(ctx, d, machine); err == nil {
			err = s.partitions[i].RequireOpen(ctx)
		}
		return err
	})
	if err := cmp.Or(errs...); err != nil {
		return nil, 0, err
	}
	for i, some := range all {
		counts = addStates(counts, some)
		errored += numbers[i]
	}
	return counts, errored, nil
}

// addStates adds how many labels are in states of a machine to how many others are.
func addStates(sum, counts []machines.StateCount) []machines.StateCount {
	for number, c := range counts {
		same := func(other machines.StateCount) bool { return other.Machine == c.Machine && other.State == c.State }
		i := number // mostly they are in the same order
		if i >= len(sum) || !same(sum[i]) {
			i = slices.IndexFunc(sum, same)
		}
		if i >= 0 {
			sum[i].Labels += c.Labels
		} else {
			sum = append(sum, c)
		}
	}
	return sum
}

// countTimeout is how long a partition is waited for whose labels are counted.
const countTimeout = 500 * time.Millisecond

// CountAll is [Store.CountAll] of all partitions. It skips partitions that cannot be read, and
// fails with [bus.ErrUnavailable] if none can.
func (s *Bus) CountAll(ctx context.Context) (counts []machines.Count, err error) {
	if len(s.all) == 1 {
		return s.all[0].CountAll(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	all := make([][]machines.Count, len(s.all))
	errs := s.Each(func(i int, st *Store) (err error) {
		all[i], err = st.CountAll(ctx)
		return err
	})
	if !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	for _, c := range slices.Concat(all...) {
		i := slices.IndexFunc(counts, func(other machines.Count) bool { return other.Machine == c.Machine })
		if i < 0 {
			counts = append(counts, c)
			continue
		}
		sum := &counts[i]
		sum.States = addStates(sum.States, c.States)
		sum.Errored += c.Errored
		sum.Unpublished += c.Unpublished
	}
	slices.SortFunc(counts, func(a, b machines.Count) int { return cmp.Compare(a.Machine, b.Machine) })
	return counts, nil
}
