package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"routemaster/internal/machines/labelstore/labelstores"
	"routemaster/internal/rdb"
	"routemaster/internal/store/stores"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/exceptions"
	"routemaster/internal/telemetry/metrics"
	"routemaster/internal/telemetry/tracing"
	"routemaster/internal/web/server"
)

// observability is what makes the state of a daemon visible from outside.
type observability struct {
	metrics  *metrics.Registry
	recorder *telemetry.Recorder
	reporter *exceptions.Reporter
	tracer   *tracing.Tracer
	// listener serves the metrics; nil if they are not served.
	listener net.Listener
	// connections bound those of all listeners.
	connections *server.Connections
	stores      *stores.Stores
	// identities notice that Redis has lost data, by number of the partitions.
	identities []*rdb.Identity
	// stop sends what is not sent yet, and ends what runs in the background.
	stop func()
}

// startObservability has a daemon flush its counters, report exceptions, trace and serve its
// metrics, as far as the configuration says so. It does not end with the context: the caller stops
// it once the daemon has stopped.
func startObservability(
	ctx context.Context, c Config, daemon string, all *stores.Stores, labels *labelstores.Stores, log *slog.Logger,
) (*observability, error) {
	reporter, err := newReporter(c, log)
	if err != nil {
		return nil, err
	}
	o := &observability{
		metrics: metrics.NewRegistry(), reporter: reporter, stores: all,
		connections: server.NewConnections(openFileLimit(), c.AddressConnections, log),
	}
	if err := o.open(c, daemon, log); err != nil {
		o.closeReports()
		return nil, err
	}
	o.metrics.AddBus(all, metrics.BusOptions{Memory: c.Memory, ScalingDeadline: c.ScalingDeadline}, c.clock.Now)
	o.metrics.AddJobs(jobTypesOf(all), c.clock.Now)
	o.metrics.AddAccounts(all.Partitions())
	o.metrics.AddClock(c.clock.Ahead)
	o.metrics.AddMachines(machinesOf(all, labels))
	for _, st := range all.All() {
		o.identities = append(o.identities, rdb.NewIdentity(st.Partition(), log, c.clock.Now))
	}
	o.metrics.AddLoss(o.isLost)
	o.metrics.AddBuild(daemon, Version())
	o.recorder = telemetry.NewRecorder(o.metrics, all.First(), log)
	o.start(context.WithoutCancel(ctx), daemon, c, all.RequireServing, log)
	return o, nil
}

// open prepares the tracer and the metrics listener, as configured.
func (o *observability) open(c Config, daemon string, log *slog.Logger) (err error) {
	if c.Tracing {
		if o.tracer, err = tracing.New(c.AppName+"-"+daemon, Version(), log); err != nil {
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

func (o *observability) start(ctx context.Context, daemon string, c Config, ready func(context.Context) error, log *slog.Logger) {
	o.recorder.Started(daemon)
	running, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { o.recorder.Run(running, c.CounterFlushInterval) })
	for _, identity := range o.identities {
		loops.Go(func() { identity.Run(running) })
	}
	loops.Go(func() { runSubscriberSeries(running, o.stores, o.recorder) })
	if o.listener != nil {
		options := metrics.ServeOptions{Program: daemon, Ready: ready, Profiles: c.Profiles, ConnState: o.connections.Changed}
		loops.Go(func() {
			if err := o.metrics.Serve(running, o.listener, options, log); err != nil {
				log.Error("the metrics listener failed", "error", err)
			}
		})
	}
	o.stop = func() {
		cancel()
		loops.Wait()
		o.recorder.Stopped(daemon)
		o.recorder.Flush(ctx)
		o.closeReports() // last, because all before may report
	}
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

func newReporter(c Config, log *slog.Logger) (*exceptions.Reporter, error) {
	reporter, err := exceptions.NewReporter(exceptions.Options{
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
