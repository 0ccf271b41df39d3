package app

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/store/relays"
	"routemaster/internal/store/stores"
	"routemaster/internal/worker"
)

// relayThreads run nothing but relays, so that slow subscribers hold up none.
const relayThreads = 8

// relayScheduleInterval is how often relays that gather events are looked after: these wait for
// [relays.Interval].
const relayScheduleInterval = relays.Interval / 2

// newRelayQueues are the queues of relays, by number of the partitions they leave from.
func newRelayQueues(all *stores.Stores) (queues []*queue.Queue) {
	for _, st := range all.All() {
		queues = append(queues, queue.New(st.Partition(), relays.Kind()))
	}
	return queues
}

// How often the housekeeping is done.
const (
	autodropInterval     = 10 * time.Second
	scrubQueuesInterval  = 2 * time.Second
	scrubAuxInterval     = 5 * time.Second
	scrubWorkersInterval = time.Minute
)

// keepers do the housekeeping, by number of their partitions.
type keepers []*maintenance.Maintenance

// newKeepers makes them. The spares are in the first partition.
func newKeepers(
	c Config, all *stores.Stores, queues []*queue.Queue, obs *observability, log *slog.Logger, spares ...maintenance.Spare,
) (k keepers) {
	for i, st := range all.All() {
		k = append(k, maintenance.New(all, st, queues[i], c.Memory, obs.recorder, log, time.Now, spares...))
		spares = nil
	}
	return k
}

// run makes the handler of a job that there is in each partition.
func (k keepers) run(job func(*maintenance.Maintenance, context.Context, *queue.Task) queue.Result) worker.Handler {
	return func(ctx context.Context, task *queue.Task) queue.Result { return job(k[task.Partition], ctx, task) }
}

// tickers are what has the housekeeping done in each partition.
func (k keepers) tickers() (all []worker.Ticker) {
	for _, keeper := range k {
		all = append(all,
			worker.Ticker{Interval: autodropInterval, Work: keeper.Enqueue(bus.JobAutodrop)},
			worker.Ticker{Interval: scrubQueuesInterval, Work: keeper.Enqueue(bus.JobScrubQueues)},
			worker.Ticker{Interval: scrubAuxInterval, Work: keeper.ScrubAux},
			worker.Ticker{Interval: scrubWorkersInterval, Work: keeper.Enqueue(bus.JobScrubWorkers)},
		)
	}
	return all
}
