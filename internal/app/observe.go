package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/metrics"
	"routemaster/internal/telemetry/tracing"
)

// observed is what shows the state of a daemon.
type observed struct {
	metrics  *metrics.Registry
	recorder *telemetry.Recorder
	reporter *exceptions.Reporter
	tracer   *tracing.Tracer
	listener net.Listener // nil if there is none
	// close notes that the daemon has stopped, sends what still waits, and ends the metrics listener.
	close func()
}

// observe makes a daemon's state visible: it flushes counters, reports exceptions, traces, and serves the metrics, all
// where the configuration says. It goes on while the daemon stops, until it is closed.
func observe(ctx context.Context, c Config, process string, st *store.Store, log *slog.Logger) (seen *observed, err error) {
	seen = &observed{metrics: metrics.NewRegistry()}
	if seen.reporter, err = newReporter(c, log); err != nil {
		return nil, err
	}
	if seen.tracer, err = newTracer(c, process, log); err == nil && c.MetricsAddr != "" {
		if seen.listener, err = net.Listen("tcp", c.MetricsAddr); err != nil {
			err = fmt.Errorf("ROUTEMASTER_METRICS_ADDR: %w", err)
		}
	}
	if err != nil {
		seen.tracer.Close()
		seen.reporter.Close()
		return nil, err
	}
	seen.metrics.AddBus(st, metrics.BusOptions{Memory: c.Memory, ScalingDeadline: c.ScalingDeadline}, time.Now)
	seen.recorder = telemetry.NewRecorder(seen.metrics, st, log)
	seen.start(context.WithoutCancel(ctx), process, c.CounterFlushInterval, log)
	return seen, nil
}

func (o *observed) start(ctx context.Context, process string, flushEvery time.Duration, log *slog.Logger) {
	o.recorder.Started(process)
	running, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { o.recorder.Run(running, flushEvery) })
	if o.listener != nil {
		loops.Go(func() {
			if err := o.metrics.Serve(running, o.listener, log); err != nil {
				log.Error("the metrics listener failed", "error", err)
			}
		})
	}
	o.close = func() {
		stop()
		loops.Wait()
		o.recorder.Stopped(process)
		o.recorder.Flush(ctx)
		o.tracer.Close()
		o.reporter.Close()
	}
}

// address is where the metrics are served, for the log; nothing if they are not.
func (o *observed) address() slog.Attr {
	if o.listener == nil {
		return slog.Attr{}
	}
	return slog.String("metrics_address", o.listener.Addr().String())
}
