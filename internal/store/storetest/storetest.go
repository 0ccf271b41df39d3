// Package storetest opens a store on a test's own Redis, and requires its data to be sound.
package storetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/inspect"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// Open opens a store on a server. It is closed with the test.
func Open(t testing.TB, server *rdbtest.Server, adjust ...func(*store.Options)) *store.Store {
	return OpenOn(server.Open(t).Partition(""), adjust...)
}

// OpenOn makes a store on a partition.
func OpenOn(partition *rdb.Partition, adjust ...func(*store.Options)) *store.Store {
	var options store.Options
	for _, f := range adjust {
		f(&options)
	}
	return store.New(partition, options)
}

// NewQueue returns the queue of a store's batches, with maxInFlight per subscriber in flight.
func NewQueue(st *store.Store, maxInFlight int) *queue.Queue {
	return NewQueueAhead(st, maxInFlight, 0)
}

// NewQueueAhead is [NewQueue], with up to maxAhead batches taken ahead.
func NewQueueAhead(st *store.Store, maxInFlight, maxAhead int) *queue.Queue {
	return queue.New(st.Partition(), st.Batches(store.BatchOptions{MaxInFlight: maxInFlight, MaxAhead: maxAhead}))
}

// RequireSound fails the test unless the data layout's invariants hold.
func RequireSound(t testing.TB, st *store.Store) {
	t.Helper()
	findings, err := Check(t.Context(), st)
	require.NoError(t, err)
	require.Empty(t, findings)
}

// RequireAllSound is [RequireSound] for all stores of a bus, and checks what must hold between
// them.
func RequireAllSound(t testing.TB, all *store.Bus) {
	t.Helper()
	_, err := doctor.Of(all, 0).Examine(t.Context(), false, func(f doctor.Finding) {
		t.Errorf("%s %s: %s", f.Partition, f.Key, f.Problem)
	})
	require.NoError(t, err)
}

// Check returns the findings in a store, in order.
func Check(ctx context.Context, st *store.Store) (found []doctor.Finding, err error) {
	d := doctor.New(st.Partition(), 0)
	_, err = d.Examine(ctx, false, func(f doctor.Finding) { found = append(found, f) })
	slices.SortFunc(found, func(a, b doctor.Finding) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Problem, b.Problem))
	})
	return found, err
}

// Lists are the lists of a store's [inspect.Inspector], and of the whole bus's [inspect.Bus].
type Lists interface {
	EachTopics(ctx context.Context, p inspect.Page, each func([]bus.Topic) error) (damaged []string, err error)
	EachSubscribers(ctx context.Context, p inspect.Page, each func([]bus.Subscriber) error) (damaged []string, err error)
}

// Topics is [inspect.Inspector.EachTopics] in one list.
func Topics(ctx context.Context, of Lists) (topics []bus.Topic, damaged []string, err error) {
	damaged, err = of.EachTopics(ctx, inspect.Page{}, func(some []bus.Topic) error {
		topics = append(topics, some...)
		return nil
	})
	return topics, damaged, err
}

// Subscribers is [inspect.Inspector.EachSubscribers] in one list.
func Subscribers(ctx context.Context, of Lists) (subscribers []bus.Subscriber, damaged []string, err error) {
	damaged, err = of.EachSubscribers(ctx, inspect.Page{}, func(some []bus.Subscriber) error {
		subscribers = append(subscribers, some...)
		return nil
	})
	return subscribers, damaged, err
}
