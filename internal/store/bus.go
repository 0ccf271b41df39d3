package store

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

// Bus routes calls to the stores of a bus: one, or one for each of its partitions. It decides which
// partition keeps a datum:
//
//   - A topic has a home, where its events are published and all its data is kept.
//   - A subscriber is in the partition of its token, with everything queued for it.
//   - Tokens are in every partition.
//   - A job type is in the partition of its name, with its jobs: [jobs.Bus] routes these.
//   - Data that exists once, such as counters, is in the first partition.
//   - Package inspect merges lists from all partitions.
//
// Each step of a change to several partitions can be repeated. A crash between two steps loses no
// event, and the next try completes the change. On a bus without partitions each call goes to its
// one store. Bus is safe for concurrent use.
type Bus struct {
	partitions rdb.Partitions
	all        []*Store
	relays     []*Relays
}

// NewBus is the top over some stores: one, or one for each partition in the order of their numbers.
func NewBus(all ...*Store) *Bus {
	s := &Bus{all: all}
	for _, st := range all {
		s.partitions = append(s.partitions, st.Partition())
		s.relays = append(s.relays, NewRelays(st))
	}
	return s
}

// All are the stores, by number of their partitions.
func (s *Bus) All() []*Store { return s.all }

// Partitions returns the partitions of the stores.
func (s *Bus) Partitions() rdb.Partitions { return s.partitions }

// First returns the store of the first partition, which keeps the data that exists once.
func (s *Bus) First() *Store { return s.all[0] }

// Home returns the store where the events of a topic are published.
func (s *Bus) Home(topic bus.TopicName) *Store {
	return s.all[s.partitions.Home(topic).Number()]
}

// Of returns the store of a subscriber.
func (s *Bus) Of(token bus.Token) *Store { return s.all[s.partitions.Of(token).Number()] }

// Ping returns [bus.ErrUnavailable] unless all partitions are there.
func (s *Bus) Ping(ctx context.Context) error {
	return eachStore(s.all, func(st *Store) error { return rdb.Wrap("ping", st.Partition().Ping(ctx).Err()) })
}

// Relays returns the relays of each partition, by number.
func (s *Bus) Relays() []*Relays { return s.relays }

// PingAny returns [bus.ErrUnavailable] unless some partition is there.
func (s *Bus) PingAny(ctx context.Context) error {
	_, err := askFrom(ctx, s, s.First(), func(ctx context.Context, st *Store) (struct{}, error) {
		return struct{}{}, rdb.Wrap("ping", st.Partition().Ping(ctx).Err())
	})
	return err
}

// RequireServing returns [bus.ErrUnavailable] unless some partition is there and runs scripts.
func (s *Bus) RequireServing(ctx context.Context) error {
	_, err := askFrom(ctx, s, s.First(), func(ctx context.Context, st *Store) (struct{}, error) {
		return struct{}{}, st.Partition().RequireScripts(ctx)
	})
	return err
}

// eachStore calls a function for some stores at once, and returns the first error.
func eachStore(stores []*Store, do func(*Store) error) error {
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
func (s *Bus) others(but *Store) (others []*Store) {
	for _, st := range s.all {
		if st != but {
			others = append(others, st)
		}
	}
	return others
}

// patience is how long a call waits for one store before it asks another one too.
const patience = 200 * time.Millisecond

// askFrom asks stores that all know the same, one after the other from one of them on, and returns
// the first answer.
func askFrom[T any](ctx context.Context, s *Bus, first *Store, question func(context.Context, *Store) (T, error)) (T, error) {
	if len(s.all) == 1 {
		return question(ctx, s.all[0])
	}
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops calls whose results are no longer needed
	order := append([]*Store{first}, s.others(first)...)
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
