// Package stores is the top over the stores of a bus: one, or one for each of its partitions. Which
// of them has what is decided here:
//
//   - A topic has a home, where its events are published. What is kept of them is there.
//   - A subscriber is in the partition of its token, with all that is queued for it.
//   - Tokens are in every partition.
//   - A job type is in the partition of its name, with its jobs: package jobstores goes over these.
//   - What there is once, such as counters, is in the first.
//   - Lists are merged from all.
//
// Each step of a change to several partitions can be repeated, and a crash between two of them
// loses no event and leaves nothing that the next try does not end. On a bus without partitions
// each call is one of its store.
package stores

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/fence"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/store/relays"
)

// Stores are all of a bus. They are safe for concurrent use.
type Stores struct {
	partitions rdb.Partitions
	all        []*store.Store
	relays     []*relays.Relays
}

// New is the top over some stores: one, or one for each partition in the order of their numbers.
func New(all ...*store.Store) *Stores {
	s := &Stores{all: all}
	for _, st := range all {
		s.partitions = append(s.partitions, st.Partition())
		s.relays = append(s.relays, relays.New(st))
	}
	return s
}

// All are the stores, by number of their partitions.
func (s *Stores) All() []*store.Store { return s.all }

// Partitions are those of the stores.
func (s *Stores) Partitions() rdb.Partitions { return s.partitions }

// First has what there is once.
func (s *Stores) First() *store.Store { return s.all[0] }

// Home is where the events of a topic are published.
func (s *Stores) Home(topic bus.TopicName) *store.Store {
	return s.all[s.partitions.Home(topic).Number()]
}

// Of is where a subscriber is.
func (s *Stores) Of(token bus.Token) *store.Store { return s.all[s.partitions.Of(token).Number()] }

// Ping returns [bus.ErrUnavailable] unless all partitions are there.
func (s *Stores) Ping(ctx context.Context) error {
	return each(s.all, func(st *store.Store) error { return rdb.Wrap("ping", st.Partition().Ping(ctx).Err()) })
}

// Relays are those of each partition, by number.
func (s *Stores) Relays() []*relays.Relays { return s.relays }

// PingAny returns [bus.ErrUnavailable] unless some partition is there.
func (s *Stores) PingAny(ctx context.Context) error {
	_, err := askFrom(ctx, s, s.First(), func(ctx context.Context, st *store.Store) (struct{}, error) {
		return struct{}{}, rdb.Wrap("ping", st.Partition().Ping(ctx).Err())
	})
	return err
}

// RequireServing returns [bus.ErrUnavailable] unless some partition is there and runs scripts, and
// [bus.ErrMoving] if the bus is closed, because it moves to another Redis.
func (s *Stores) RequireServing(ctx context.Context) error {
	mark, err := askFrom(ctx, s, s.First(), func(ctx context.Context, st *store.Store) (string, error) {
		plans := store.Keys{Namespace: st.Partition().Namespace()}.Plans()
		mark, err := st.Partition().HGet(ctx, plans, fence.Field).Result()
		if err = rdb.Wrap("look whether the bus moves", err); err == nil {
			err = st.Partition().RequireScripts(ctx)
		}
		return mark, err
	})
	if err == nil && fence.IsClosed(mark) {
		return bus.ErrMoving
	}
	return err
}

// each calls a function for some stores at once, and returns the first error.
func each(stores []*store.Store, do func(*store.Store) error) error {
	if len(stores) == 1 {
		return do(stores[0])
	}
	var group errgroup.Group
	for _, st := range stores {
		group.Go(func() error { return do(st) })
	}
	return group.Wait()
}

// others are all stores but one.
func (s *Stores) others(but *store.Store) (others []*store.Store) {
	for _, st := range s.all {
		if st != but {
			others = append(others, st)
		}
	}
	return others
}

// patience is how long a store is waited for before another one is asked too.
const patience = 200 * time.Millisecond

// askFrom asks stores that all know the same, one after the other from one of them on, and returns
// the first answer.
func askFrom[T any](ctx context.Context, s *Stores, first *store.Store, question func(context.Context, *store.Store) (T, error)) (T, error) {
	if len(s.all) == 1 {
		return question(ctx, s.all[0])
	}
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // those that are not needed any more
	order := append([]*store.Store{first}, s.others(first)...)
	answers := make(chan answer, len(order))
	for asked, failed := 0, 0; ; {
		if asked < len(order) {
			st := order[asked]
			asked++
			go func() {
				a := answer{err: st.Partition().RequireOpen(ctx)}
				if a.err == nil {
					a.value, a.err = question(ctx, st)
				}
				answers <- a
			}()
		}
		select {
		case a := <-answers:
			if a.err != nil {
				failed++
			}
			if a.err == nil || failed == len(order) {
				return a.value, a.err
			}
		case <-time.After(patience):
		}
	}
}
