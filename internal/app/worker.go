package app

import (
	"context"
	"log/slog"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/delivery"
	"routemaster/internal/maintenance"
	"routemaster/internal/worker"
)

// otherCalls is how many calls to Redis a worker may have under way besides its threads' own.
const otherCalls = 8

// How often the housekeeping is asked for.
const (
	scrubQueuesEvery  = 10 * time.Second
	scrubWorkersEvery = time.Minute
)

// RunWorker runs jobs until the context is done.
func RunWorker(ctx context.Context, c Config, log *slog.Logger) error {
	st, err := openStore(c, log, c.WorkerThreads+otherCalls)
	if err != nil {
		return err
	}
	defer st.Close()
	deliverer := delivery.New(delivery.Config{
		ConnectTimeout: c.ConnectTimeout,
		Timeout:        c.Timeout,
		VerifyTLS:      c.VerifyTLS,
		Deny:           c.CallbackDeny,
		HealRate:       c.HealRate,
		DamageRate:     c.DamageRate,
		MaxBackoff:     c.MaxBackoff,
		UserAgent:      "routemaster/" + Version(),
		Connections:    c.WorkerThreads,
	}, log, time.Now)
	defer deliverer.Close()
	keeper := maintenance.New(st, log, time.Now)
	w := worker.New(st, worker.Config{
		Threads:        c.WorkerThreads,
		AcquireTimeout: c.AcquireTimeout,
		RetryAfter:     c.MaxBackoff,
		Handlers: map[bus.JobName]worker.Handler{
			bus.JobBatch:        deliverer.Deliver,
			bus.JobScrubQueues:  keeper.ScrubQueues,
			bus.JobScrubWorkers: keeper.ScrubWorkers,
		},
		Tickers: []worker.Ticker{
			{Job: bus.JobScrubQueues, Every: scrubQueuesEvery},
			{Job: bus.JobScrubWorkers, Every: scrubWorkersEvery},
		},
	}, log, time.Now)

	log.Info("worker started", "version", Version(), "threads", c.WorkerThreads)
	w.Run(ctx)
	log.Info("worker stopped")
	return nil
}
