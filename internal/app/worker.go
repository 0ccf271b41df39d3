package app

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/delivery"
	"routemaster/internal/maintenance"
	"routemaster/internal/outbound"
	"routemaster/internal/telemetry/metricservice"
	"routemaster/internal/worker"
)

// How many calls to Redis a worker may have under way at once. Its threads share at most
// maxThreadConnections: a call takes some 0.1 ms, and each connection costs both sides memory.
const (
	maxThreadConnections = 32
	otherConnections     = 8 // for all but the threads
)

// spareConnections is how many idle connections to callbacks a worker keeps, besides one for each
// thread.
const spareConnections = 32

// How often due entries are made instant. Those of the main queue wait for as little as a
// millisecond. On the aux queue, only retries are scheduled.
const (
	mainScheduleInterval = 5 * time.Millisecond
	auxScheduleInterval  = time.Second
)

// How often the housekeeping is done.
const (
	autodropInterval     = 10 * time.Second
	scrubQueuesInterval  = 2 * time.Second
	scrubAuxInterval     = 5 * time.Second
	scrubWorkersInterval = time.Minute
)

// RunWorker delivers batches and runs the housekeeping jobs until the context is done.
func RunWorker(ctx context.Context, c Config, log *slog.Logger) error {
	redis, err := openRedis(c, log, min(c.WorkerThreads, maxThreadConnections)+otherConnections)
	if err != nil {
		return err
	}
	defer redis.Close()
	st, q := newStore(redis, c)
	obs, err := startObservability(ctx, c, "worker", st, log)
	if err != nil {
		return err
	}
	defer obs.stop()
	client := outbound.New(outbound.Config{
		ConnectTimeout: c.ConnectTimeout,
		Timeout:        c.Timeout,
		VerifyTLS:      c.VerifyTLS,
		Deny:           c.CallbackDeny,
		MaxIdle:        c.WorkerThreads + spareConnections,
		UserAgent:      "routemaster/" + Version(),
	}, time.Now)
	defer client.Close()
	deliverer := delivery.New(delivery.Config{
		Client:   client,
		Policy:   delivery.Policy{HealRate: c.HealRate, DamageRate: c.DamageRate, MaxBackoff: c.MaxBackoff},
		Reporter: obs.reporter,
		Tracer:   obs.tracer,
		Recorder: obs.recorder,
		Options:  st.Options,
		Keyring:  c.Secrets,

		AttemptsKept: c.AttemptsKept, Excerpt: c.AttemptExcerpt,
	}, log, time.Now)
	keeper := maintenance.New(st, q, c.Memory, obs.recorder, log, time.Now)
	monitor := maintenance.NewMonitor(st, c.Memory, metricservice.New(metricservice.Config{
		Service: c.MetricService, Agent: c.DatadogAgent, App: c.AppName, Env: c.Env,
	}, log), log, time.Now)
	w := worker.New(q, worker.Config{
		Pools: []worker.Pool{
			{
				Queue: q, Name: bus.QueueMain, Kind: bus.JobBatch, Threads: c.WorkerThreads,
				ScheduleInterval: mainScheduleInterval, Discarded: deliverer.Discarded, Completed: deliverer.Completed,
			},
			{Queue: q, Name: bus.QueueAux, Threads: 1, ScheduleInterval: auxScheduleInterval},
		},
		AcquireTimeout: c.AcquireTimeout,
		RetryAfter:     c.MaxBackoff,
		Handlers: map[bus.JobName]worker.Handler{
			bus.JobBatch:        deliverer.Deliver,
			bus.JobAutodrop:     keeper.Autodrop,
			bus.JobMonitor:      monitor.Monitor,
			bus.JobScrubQueues:  keeper.ScrubQueues,
			bus.JobScrubWorkers: keeper.ScrubWorkers,
		},
		Tickers: []worker.Ticker{
			{Interval: autodropInterval, Work: keeper.Enqueue(bus.JobAutodrop)},
			{Interval: c.MonitorInterval, Work: keeper.Enqueue(bus.JobMonitor)},
			{Interval: scrubQueuesInterval, Work: keeper.Enqueue(bus.JobScrubQueues)},
			{Interval: scrubAuxInterval, Work: keeper.ScrubAux},
			{Interval: scrubWorkersInterval, Work: keeper.Enqueue(bus.JobScrubWorkers)},
			{Interval: delivery.ExpiredInterval, Work: deliverer.LogExpired},
		},
		Stopping: func(busy map[bus.Queue]int64) {
			log.Info("worker stopping, waiting for deliveries in flight", "deliveries", busy[bus.QueueMain])
		},
		Reporter: obs.reporter,
		Recorder: obs.recorder,
	}, log, time.Now)

	log.Info("worker started", "version", Version(), "threads", c.WorkerThreads, openFiles(), obs.address())
	w.Run(ctx)
	_ = deliverer.LogExpired(ctx)
	log.Info("worker stopped")
	return nil
}
