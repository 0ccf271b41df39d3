package storetest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
)

// clusterPartitions is the number of partitions of a bus on a cluster: so many that the topics
// called "widgets" and "gadgets" in tests have different homes, with neither their subscribers nor
// "alice" and "bob" in them. So all of their events have to be relayed.
const clusterPartitions = 7

// MainWithCluster is [rdbtest.MainWithCluster], where clusters have a bus with partitions.
func MainWithCluster(m *testing.M, ignore ...goleak.Option) {
	rdbtest.MainWithCluster(m, func(t testing.TB, redis *rdb.Client) {
		require.NoError(t, store.CreateBus(t.Context(), redis, "", clusterPartitions))
	}, ignore...)
}

// OpenAll opens the stores of the bus on a server: one, or on a cluster one for each partition.
func OpenAll(t testing.TB, server *rdbtest.Server, adjust ...func(*store.Options)) *store.Bus {
	t.Helper()
	if !server.IsCluster() {
		return store.NewBus(Open(t, server, adjust...))
	}
	var options store.Options
	for _, f := range adjust {
		f(&options)
	}
	all, err := store.OpenBus(t.Context(), server.Open(t), "", options)
	require.NoError(t, err)
	return all
}

// Worker takes the batches of a bus, and carries events between its partitions, when it is told to.
type Worker struct {
	batches, relays []*queue.Queue // by number of their partitions
	relayer         *store.Relayer
	// relaying is held until nothing is on its way any more, also by another call.
	relaying sync.Mutex
}

// NewWorker makes a worker of a bus with a clock.
func NewWorker(all *store.Bus, now func() time.Time) *Worker {
	w := &Worker{relayer: store.NewRelayer(all.Relays(), slog.New(slog.DiscardHandler), now)}
	for _, st := range all.All() {
		w.batches = append(w.batches, NewQueue(st, 1))
		w.relays = append(w.relays, queue.New(st.Partition(), store.RelayKind()))
	}
	return w
}

// Acquire is [queue.Queue.Acquire] in the first partition that has a job.
func (w *Worker) Acquire(
	ctx context.Context, name bus.Queue, worker bus.WorkerID, atLeast bus.Standing, now time.Time,
) (taken queue.Taken, err error) {
	for _, q := range w.batches {
		taken, err = q.Acquire(ctx, name, worker, atLeast, now)
		if taken.Task != nil || err != nil {
			break
		}
	}
	return taken, err
}

// Heartbeat is [queue.Queue.Heartbeat] in all partitions.
func (w *Worker) Heartbeat(ctx context.Context, now time.Time, workers ...bus.WorkerID) error {
	for _, q := range w.batches {
		if err := q.Heartbeat(ctx, now, workers...); err != nil {
			return err
		}
	}
	return nil
}

// Relay carries the events in outboxes at a time to their partitions, except from or to partitions
// that are away. On a bus without partitions it does nothing.
func (w *Worker) Relay(ctx context.Context, now time.Time) error {
	if len(w.relays) == 1 {
		return nil
	}
	w.relaying.Lock()
	defer w.relaying.Unlock()
	for _, q := range w.relays {
		if err := w.relayFrom(ctx, q, now); err != nil && !errors.Is(err, bus.ErrUnavailable) {
			return err
		}
	}
	return nil
}

func (w *Worker) relayFrom(ctx context.Context, q *queue.Queue, now time.Time) error {
	worker, soon := bus.NewWorkerID(), now.Add(store.RelayInterval) // when busy outboxes are due
	for {
		if _, err := q.Schedule(ctx, bus.QueueRelay, soon, 100); err != nil {
			return err
		}
		taken, err := q.Acquire(ctx, bus.QueueRelay, worker, bus.Failing, now)
		if err != nil || taken.Task == nil {
			return err
		}
		if _, err := q.Complete(ctx, taken.Task, w.relayer.Relay(ctx, taken.Task), now); err != nil {
			return err
		}
	}
}
