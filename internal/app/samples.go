package app

import (
	"context"
	"log/slog"
	"math"
	"time"

	"routemaster/internal/jobs"
	"routemaster/internal/machines/engine"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
	"routemaster/internal/web/rest"
	"routemaster/internal/worker"
)

// newCollector makes the collector of the bus's samples, which all their readers in a process
// share.
func newCollector(c Config, all *store.Bus, labels *engine.Bus) *samples.Collector {
	return samples.NewCollector(samples.Config{
		Stores: all, Memory: c.Memory, ScalingDeadline: c.ScalingDeadline,
		CountJobs: jobs.CountsOf(jobs.NewBus(all.Partitions())), CountLabels: labels.CountAll,
	}, c.clock.Now)
}

// newHeartbeat makes the heartbeat of a process. Process has its kind and threads, and update sets
// the changing fields.
func newHeartbeat(c Config, all *store.Bus, process overview.Process, update func(*overview.Process)) *samples.Heartbeat {
	process.Version = Version()
	partitions := all.Partitions()
	return samples.NewHeartbeat(partitions[0], process, update, c.clock, partitions[1:]...)
}

// refusalsOf returns a function that sets how many requests web has refused a second since its last
// call.
func refusalsOf(refusals *rest.Refusals) func(*overview.Process) {
	refused, throttled, at := refusals.Credentials.Load(), refusals.Requests.Load(), time.Now()
	return func(p *overview.Process) {
		nowRefused, nowThrottled := refusals.Credentials.Load(), refusals.Requests.Load()
		seconds := max(time.Since(at).Seconds(), 1)
		p.Refused = math.Round(float64(nowRefused-refused)/seconds*10) / 10
		p.Throttled = math.Round(float64(nowThrottled-throttled)/seconds*10) / 10
		refused, throttled, at = nowRefused, nowThrottled, time.Now()
	}
}

// runSamples takes samples for their readers, until the context is done. If run panics, as over
// data that another program has written to Redis, runSamples reports the panic and runs it again:
// samples must not end the publishes of this process.
func runSamples(ctx context.Context, run func(context.Context), reporter *vendors.Reporter, log *slog.Logger) {
	for ctx.Err() == nil {
		func() {
			defer func() {
				if reason := recover(); reason != nil {
					reporter.Panic(log, "a sample panicked; the next one is tried", reason)
				}
			}()
			run(ctx)
		}()
	}
}

// historyTickers write the history of the bus; there are none if the console is off.
func historyTickers(c Config, collector *samples.Collector, counts *telemetry.Recorder) []worker.Ticker {
	if c.Console == "off" {
		return nil
	}
	return []worker.Ticker{{Interval: samples.SeriesInterval, Work: samples.NewRecorder(collector, counts.Flush).Tick}}
}
