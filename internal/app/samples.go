package app

import (
	"context"
	"log/slog"
	"math"
	"time"

	"routemaster/internal/jobs/housekeeping"
	"routemaster/internal/jobs/jobstore/jobstores"
	"routemaster/internal/machines/labelstore/labelstores"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/store/stats"
	"routemaster/internal/store/stores"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/worker"
)

// newCollector makes what takes samples of the bus.
func newCollector(c Config, all *stores.Stores, labels *labelstores.Stores) *samples.Collector {
	return samples.NewCollector(samples.Config{
		Stores: all, JobTypes: jobTypesOf(all), Machines: machinesOf(all, labels),
		Memory: c.Memory, ScalingDeadline: c.ScalingDeadline,
	}, c.clock.Now)
}

// jobTypesOf reads the state of job types, for metrics and samples.
func jobTypesOf(all *stores.Stores) telemetry.JobTypes {
	return telemetry.JobTypes{
		Count: housekeeping.CountsOf(jobstores.New(all.Partitions())), Counters: stats.Of(all.First()).ReadCounters,
	}
}

// machinesOf reads the state of state machines, for metrics and samples.
func machinesOf(all *stores.Stores, labels *labelstores.Stores) telemetry.Machines {
	return telemetry.Machines{Count: labels.CountAll, Counters: stats.Of(all.First()).ReadCounters}
}

// newHeartbeat makes what says that a process lives. Process has its kind and threads, and update
// sets what changes.
func newHeartbeat(c Config, all *stores.Stores, process overview.Process, update func(*overview.Process)) *samples.Heartbeat {
	process.Version = Version()
	partitions := all.Partitions()
	return samples.NewHeartbeat(partitions[0], process, update, c.clock, partitions[1:]...)
}

// refusalsOf returns what says how many requests web has refused a second since it was last called.
func refusalsOf(recorder *telemetry.Recorder) func(*overview.Process) {
	refused, throttled := recorder.Refusals()
	at := time.Now()
	return func(p *overview.Process) {
		nowRefused, nowThrottled := recorder.Refusals()
		seconds := max(time.Since(at).Seconds(), 1)
		p.Refused = math.Round(float64(nowRefused-refused)/seconds*10) / 10
		p.Throttled = math.Round(float64(nowThrottled-throttled)/seconds*10) / 10
		refused, throttled, at = nowRefused, nowThrottled, time.Now()
	}
}

// runSamples runs what takes samples for those who look, until the context is done. If that panics,
// as over what another program has written to Redis, it is reported and run again: what somebody
// looks at must not end the publishes of this process.
func runSamples(ctx context.Context, run func(context.Context), reporter *exceptions.Reporter, log *slog.Logger) {
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

// historyTickers are what writes the history of the bus: nothing if the console is off.
func historyTickers(c Config, all *stores.Stores, labels *labelstores.Stores) []worker.Ticker {
	if c.Console == "off" {
		return nil
	}
	return []worker.Ticker{{Interval: samples.SeriesInterval, Work: samples.NewRecorder(newCollector(c, all, labels)).Tick}}
}
