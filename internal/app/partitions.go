package app

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/maintenance"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/worker"
)

// newRelayPool is the pool of relays, whose queues are in the partitions they leave from. Its
// threads run nothing else, so that slow subscribers hold up none. Only workers put relays off; the
// lookahead finds the relays of a process that has been killed.
func newRelayPool(all *store.Bus, recorder *telemetry.Recorder) worker.Pool {
	pool := worker.Pool{
		Name: bus.QueueRelay, Kind: bus.JobRelay, Threads: 8,
		ScheduleInterval: store.RelayInterval / 2, Lookahead: 100 * time.Millisecond,
		Completed: func(_ *queue.Task, r queue.Result) {
			for token, events := range store.ReceivedByRelay(r) {
				recorder.CountFor(telemetry.EnqueuedEvents, events, bus.Tokens(token))
			}
		},
	}
	for _, st := range all.All() {
		pool.Queues = append(pool.Queues, queue.New(st.Partition(), store.RelayKind()))
	}
	return pool
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

// newKeepers makes them, with the archives of jobs to make room.
func newKeepers(
	c Config, all *store.Bus, queues []*queue.Queue, archives []*jobs.Archive, obs *observability, log *slog.Logger,
) (k keepers) {
	for i, st := range all.All() {
		keeper := maintenance.New(all, st, queues[i], c.Memory, obs.recorder, log, c.clock.Now, archives[i])
		keeper.ScrubWhile(c.clock.Agrees)
		keeper.LimitClients(c.ClientMemory)
		k = append(k, keeper)
	}
	return k
}

// run makes the handler of a job that there is in each partition.
func (k keepers) run(job func(*maintenance.Maintenance, context.Context, *queue.Task) queue.Result) worker.Handler {
	return func(ctx context.Context, task *queue.Task) queue.Result { return job(k[task.Partition], ctx, task) }
}

// tickers run the housekeeping of each partition, including the jobs'.
func (k keepers) tickers(ofJobs []jobs.SpareTask) (all []worker.Ticker) {
	for _, task := range ofJobs {
		all = append(all, worker.Ticker(task))
	}
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
