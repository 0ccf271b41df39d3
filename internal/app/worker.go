package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/delivery"
	"routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/maintenance"
	"routemaster/internal/outbound"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/queue"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
	"routemaster/internal/worker"
)

// workerConnections is how many calls to Redis a worker may have under way at once. Its threads
// share two for each queue.
const workerConnections = 16

// spareConnections is how many idle connections to callbacks a worker keeps, besides one for each
// thread.
const spareConnections = 32

// auxThreads is how many threads a worker has for the housekeeping.
const auxThreads = 1

// How often due entries are made instant. Entries of the main queue wait for as little as a
// millisecond; if they wait for less than mainLookahead, they may be late by it on a bus with
// partitions. On the aux queue, only retries are scheduled. Jobs that are put off wait for half a
// second at least, unless a client enqueues one to run sooner than that.
const (
	mainScheduleInterval = 5 * time.Millisecond
	mainLookahead        = 20 * time.Millisecond
	auxScheduleInterval  = time.Second
	jobsLookahead        = 100 * time.Millisecond
	// Nothing of a label is due at less than some seconds' notice.
	machinesScheduleInterval = 20 * time.Millisecond
	machinesLookahead        = time.Second
)

// RunWorker delivers batches and runs the housekeeping jobs until the context is done.
func RunWorker(ctx context.Context, c Config, log *slog.Logger) error {
	redis, err := openRedis(c, log, workerConnections)
	if err != nil {
		return err
	}
	defer redis.Close()
	obs, err := openObservability(ctx, c, "worker", log)
	if err != nil {
		return err
	}
	defer obs.stop()
	all, err := openStores(ctx, redis, c, log)
	if err != nil {
		return err
	}
	queues := newQueues(all, c)
	c.clock = newClock(c, log)
	labels := newLabelStores(all)
	collector := newCollector(c, all, labels)
	obs.start(c, all, collector)
	client, downstream := newClient(c, c.CallbackDeny, c.WorkerThreads+c.JobThreads+c.MachineThreads), newClient(c, bus.DenyList{}, c.JobThreads)
	defer client.Close()
	defer downstream.Close()
	machineTopics := newTopics(c, all, labels, obs, log)
	deliverer := newDeliverer(c, all, obs, client, machineTopics, log)
	jobStores := jobs.NewBus(all.Partitions())
	jobRunner := newRunner(c, jobStores, obs, client, downstream, log)
	labelRunner := engine.NewRunner(labels, engine.RunnerConfig{
		Client: client, Tracer: obs.tracer, Recorder: obs.recorder,
	}, log, c.clock.Now)
	archives, jobTasks := jobs.SpareTasksOf(jobStores, obs.recorder, log, c.clock.Now)
	keepers := newKeepers(c, all, queues, archives, obs, log)
	keepers[0].Tidy(maintenance.Named{Tag: telemetry.JobType, Names: jobs.NamesOf(jobStores)})
	keepers[0].Tidy(maintenance.Named{Tag: "machine", Names: labels.MachineNames})
	monitor := maintenance.NewMonitor(all, collector, vendors.NewMetricService(vendors.MetricConfig{
		Service: c.MetricService, Agent: c.DatadogAgent, App: c.AppName, Env: c.Env,
	}, log), log)
	var w *worker.Worker
	heartbeat := newHeartbeat(c, all, overview.Process{
		Kind: "worker", Threads: c.WorkerThreads, Others: auxThreads + c.JobThreads + c.MachineThreads,
		JobThreads: &c.JobThreads, MachineThreads: &c.MachineThreads,
	}, func(p *overview.Process) { p.Busy = w.Busy(bus.QueueMain) })
	w = worker.New(queues, worker.Config{
		Pools:          newPools(c, queues, all, obs, jobStores.Queues(), labels.Queues(), deliverer, jobRunner),
		AcquireTimeout: c.AcquireTimeout,
		RetryAfter:     c.MaxBackoff,
		Handlers: map[bus.JobName]worker.Handler{
			bus.JobBatch:        deliverer.Deliver,
			bus.JobJob:          jobRunner.Run,
			bus.JobLabel:        labelRunner.Run,
			bus.JobWalk:         labelRunner.Walk,
			bus.JobMoves:        machineTopics.Tell,
			bus.JobRelay:        store.NewRelayer(all.Relays(), log, c.clock.Now).Relay,
			bus.JobAutodrop:     keepers.run((*maintenance.Maintenance).Autodrop),
			bus.JobMonitor:      monitor.Monitor,
			bus.JobScrubQueues:  keepers.run((*maintenance.Maintenance).ScrubQueues),
			bus.JobScrubWorkers: keepers.run((*maintenance.Maintenance).ScrubWorkers),
		},
		Tickers: slices.Concat(historyTickers(c, collector, obs.recorder), keepers.tickers(jobTasks), []worker.Ticker{
			{Interval: samples.WorkerInterval, Work: heartbeat.Beat},
			{Interval: c.MonitorInterval, Work: keepers[0].Enqueue(bus.JobMonitor)},
			{Interval: delivery.ExpiredInterval, Work: deliverer.LogExpired},
			{Interval: engine.TenderInterval, Work: engine.NewTender(labels, c.clock.Now).Tick},
			{Interval: engine.TidyInterval, Work: machineTopics.Tidy},
			{Interval: jobs.SeriesInterval, Work: machineSeries(labels, obs.recorder)},
		}),
		Stopping: func(busy map[bus.Queue]int64) {
			log.Info("worker stopping, waiting for deliveries in flight", "deliveries", busy[bus.QueueMain],
				"jobs", busy[bus.QueueJobs], "labels", busy[bus.QueueMachines])
		},
		Reporter: obs.reporter,
		Recorder: obs.recorder,
	}, log, c.clock.Now)

	log.Info("worker started", "version", Version(), "threads", c.WorkerThreads, "job_threads", c.JobThreads,
		"machine_threads", c.MachineThreads, slog.Int("open_files", openFileLimit()), obs.address())
	var warning sync.WaitGroup
	defer warning.Wait()
	warning.Go(func() { warnOfRisks(ctx, all.Partitions(), log) })
	heartbeat.Await(ctx) // before anything is taken to be due
	w.Run(ctx)
	heartbeat.Leave()
	_ = deliverer.LogExpired(ctx)
	log.Info("worker stopped")
	return nil
}

// newClient makes a client for as many requests at once as there are threads.
func newClient(c Config, deny bus.DenyList, threads int) *outbound.Client {
	return outbound.New(outbound.Config{
		ConnectTimeout: c.ConnectTimeout,
		Timeout:        c.Timeout,
		VerifyTLS:      c.VerifyTLS,
		Deny:           deny,
		Trusted:        c.TrustedNetworks,
		MaxIdle:        threads + spareConnections,
		UserAgent:      "routemaster/" + Version(),
	}, c.clock.Now)
}

// newDeliverer makes the deliverer of batches, which passes the machines' batches to them directly.
func newDeliverer(
	c Config, all *store.Bus, obs *observability, client *outbound.Client, machines *engine.Client, log *slog.Logger,
) *delivery.Deliverer {
	return delivery.New(delivery.Config{
		Client:   client,
		Local:    map[string]func(context.Context, outbound.Request) outbound.Attempt{engine.Callback: machines.Hear},
		Policy:   delivery.Policy{HealRate: c.HealRate, DamageRate: c.DamageRate, MaxBackoff: c.MaxBackoff},
		Reporter: obs.reporter,
		Tracer:   obs.tracer,
		Recorder: obs.recorder,
		Options: func(ctx context.Context, token bus.Token) (store.OptionsRecord, error) {
			return all.Of(token).Options(ctx, token)
		},
		Keyring: c.Secrets,

		AttemptsKept: c.AttemptsKept, Excerpt: c.AttemptExcerpt,
	}, log, c.clock.Now)
}

// newRunner makes the runner that hands jobs to their services: through the client to URLs that
// clients chose, and through downstream, which denies no address, to the operator's.
func newRunner(c Config, stores *jobs.Bus, obs *observability, client, downstream *outbound.Client, log *slog.Logger) *jobs.Runner {
	if c.JobThreads > 0 && c.DownstreamURL != "" && c.DownstreamAuth == "" {
		log.Warn("DOWNSTREAM_WORKER_AUTH is not set: the service at DOWNSTREAM_URL cannot tell who calls it")
	}
	return jobs.NewRunner(jobs.RunnerConfig{
		Client: client, Downstream: downstream,
		DownstreamURL: c.DownstreamURL,
		Password:      c.DownstreamAuth,
		Confirm:       stores.Confirm,
		Tracer:        obs.tracer,
		Recorder:      obs.recorder,
	}, log, c.clock.Now)
}

// newPools makes the pools: for batches, for the housekeeping, for relays if there are several
// partitions and, if wanted, for jobs and labels.
func newPools(
	c Config, queues []*queue.Queue, all *store.Bus, obs *observability, jobQueues []*queue.Queue, labelQueues []*queue.Queue, deliverer *delivery.Deliverer, jobRunner *jobs.Runner,
) []worker.Pool {
	pools := []worker.Pool{
		{
			Queues: queues, Name: bus.QueueMain, Kind: bus.JobBatch, Threads: c.WorkerThreads,
			ScheduleInterval: mainScheduleInterval, Discarded: deliverer.Discarded, Completed: deliverer.Completed,
		},
		{Queues: queues, Name: bus.QueueAux, Threads: auxThreads, ScheduleInterval: auxScheduleInterval},
	}
	if len(queues) > 1 {
		pools[0].Lookahead = mainLookahead
		pools = append(pools, newRelayPool(all, obs.recorder))
	}
	if c.JobThreads > 0 {
		pools = append(pools, worker.Pool{
			Queues: jobQueues, Name: bus.QueueJobs, Kind: bus.JobJob, Threads: c.JobThreads,
			ScheduleInterval: mainScheduleInterval, Lookahead: jobsLookahead,
			Discarded: jobRunner.Discarded, EndedElsewhere: true,
		})
	}
	if c.MachineThreads > 0 {
		pools = append(pools, worker.Pool{
			Queues: labelQueues, Name: bus.QueueMachines, Kind: bus.JobLabel, Threads: c.MachineThreads,
			ScheduleInterval: machinesScheduleInterval, Lookahead: machinesLookahead,
		})
	}
	return pools
}
