package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"routemaster/internal/bus"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
	"routemaster/internal/web/rest"
)

// observability makes the state of a daemon visible from outside.
type observability struct {
	metrics *telemetry.Registry
	scraper *samples.Scraper
	// recorder is there once it was started.
	recorder *telemetry.Recorder
	daemon   string
	reporter *vendors.Reporter
	tracer   *telemetry.Tracer
	// listener serves the metrics; nil if they are not served.
	listener net.Listener
	// connections bound the connections of all listeners together.
	connections *rest.Connections
	// stores has the stores of the bus, nil until it is there.
	stores atomic.Pointer[store.Bus]
	log    *slog.Logger
	loops  sync.WaitGroup
	// running is the context of the background loops; cancel ends it.
	running context.Context
	cancel  context.CancelFunc
	// identities notice that Redis has lost data, by number of the partitions.
	identities []*rdb.Identity
}

// openObservability has a daemon report exceptions, trace and serve its metrics and its health, as
// far as the configuration says so: from the start, because a probe must not take a process for
// dead that waits for the bus. It does not end with the context: the caller stops it once the
// daemon has stopped.
func openObservability(ctx context.Context, c Config, daemon string, log *slog.Logger) (*observability, error) {
	reporter, err := newReporter(c, log)
	if err != nil {
		return nil, err
	}
	o := &observability{
		daemon: daemon, metrics: telemetry.NewRegistry(), reporter: reporter, log: log,
		connections: rest.NewConnections(openFileLimit(), c.AddressConnections, log),
	}
	if err := o.open(c); err != nil {
		o.closeReports()
		return nil, err
	}
	o.running, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	o.metrics.AddBuild(daemon, Version())
	o.scraper = samples.NewScraper(o.metrics)
	if o.listener != nil {
		o.loops.Go(func() { o.serve(c.Profiles) })
	}
	return o, nil
}

// start has it observe the bus, flush the counters and watch for a loss of data, until it is
// stopped.
func (o *observability) start(c Config, all *store.Bus, collector *samples.Collector) {
	o.scraper.Open(collector)
	o.metrics.AddGauge("clock_ahead_seconds",
		"How far the clock of this process's host is ahead of Redis' clock, as measured last; negative if it is behind.",
		func() float64 { return c.clock.Ahead().Seconds() })
	for _, st := range all.All() {
		o.identities = append(o.identities, rdb.NewIdentity(st.Partition(), o.log, c.clock.Now))
	}
	o.metrics.AddGauge("redis_data_lost",
		"1 if Redis has lost data of the bus, until an operator acknowledges it, else 0.",
		func() float64 {
			if o.isLost() {
				return 1
			}
			return 0
		})
	o.recorder = telemetry.NewRecorder(o.metrics, all.First(), o.log)
	o.recorder.Count(telemetry.Processes, 1, o.daemon, "start")
	o.loops.Go(func() { o.recorder.Run(o.running, c.CounterFlushInterval) })
	for _, identity := range o.identities {
		o.loops.Go(func() { identity.Run(o.running) })
	}
	o.loops.Go(func() { runSubscriberSeries(o.running, all, o.recorder) })
	o.stores.Store(all)
}

// open prepares the tracer and the metrics listener, as configured.
func (o *observability) open(c Config) (err error) {
	if c.Tracing {
		if o.tracer, err = telemetry.NewTracer(c.AppName+"-"+o.daemon, Version(), o.log); err != nil {
			return err
		}
	}
	if c.MetricsAddr != "" {
		if o.listener, err = net.Listen("tcp", c.MetricsAddr); err != nil {
			return fmt.Errorf("ROUTEMASTER_METRICS_ADDR: %w", err)
		}
	}
	return nil
}

// serve serves the metrics and the health of the daemon until it is stopped.
func (o *observability) serve(profiles bool) {
	options := telemetry.ServeOptions{Program: o.daemon, Ready: o.ready, Profiles: profiles, ConnState: o.connections.Changed}
	if err := o.metrics.Serve(o.running, o.listener, options, o.log); err != nil {
		o.log.Error("the metrics listener failed", "error", err)
	}
}

// ready fails while the daemon cannot do its work.
func (o *observability) ready(ctx context.Context) error {
	all := o.stores.Load()
	if all == nil {
		return bus.ErrUnavailable
	}
	return all.RequireServing(ctx)
}

// stop ends the background loops, and sends the telemetry not sent yet.
func (o *observability) stop() {
	o.cancel()
	o.loops.Wait()
	if o.recorder != nil {
		o.recorder.Count(telemetry.Processes, 1, o.daemon, "stop")
		o.recorder.Flush(context.WithoutCancel(o.running))
	}
	o.closeReports() // last, because all before may report
}

// isLost reports whether some partition has lost data.
func (o *observability) isLost() bool {
	return slices.ContainsFunc(o.identities, (*rdb.Identity).IsLost)
}

// closeReports sends the spans and exceptions that are not sent yet.
func (o *observability) closeReports() {
	o.tracer.Close()
	o.reporter.Close()
}

// address is where the metrics are served, for the log; empty if they are not.
func (o *observability) address() slog.Attr {
	if o.listener == nil {
		return slog.Attr{}
	}
	return slog.String("metrics_address", o.listener.Addr().String())
}

func newReporter(c Config, log *slog.Logger) (*vendors.Reporter, error) {
	reporter, err := vendors.NewReporter(vendors.Options{
		Service: c.Exceptions, Program: c.AppName, Version: Version(), Secrets: c.secrets(),
	}, log)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("EXCEPTION_SERVICE_URL=%s is not allowed: it must be %w", notShown, err)}
	}
	return reporter, nil
}

// secrets are the secrets of the configuration that a report must not contain.
func (c *Config) secrets() []string {
	secrets := []string{c.RootKey, c.DownstreamAuth}
	for _, token := range c.Clients {
		secrets = append(secrets, string(token))
	}
	return append(secrets, rdb.Passwords(c.RedisURL)...)
}
