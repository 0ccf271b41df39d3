package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/overview"
	"routemaster/internal/overview/samples"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/web"
	"routemaster/internal/web/rest"
)

// webConnections is how many calls to Redis a web process may have under way at once.
const webConnections = 32

// clockTimeout bounds how long web waits for Redis before it serves, and for its time. While Redis
// is away nothing is stored, so that a time does not matter.
const clockTimeout = time.Second

// minRootKey is how many characters the root key should have.
const minRootKey = 16

// RunWeb serves the API on the configured port until the context is done.
func RunWeb(ctx context.Context, c Config, log *slog.Logger) error {
	if c.RootKey == "" {
		return &ConfigError{errors.New("ROUTEMASTER_ROOT_KEY is not set: it must be the operator's key, any string that nobody guesses")}
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", c.Port))
	if err != nil {
		return err
	}
	return ServeWeb(ctx, c, log, listener)
}

// ServeWeb serves the API on a listener until the context is done, and closes the listener.
func ServeWeb(ctx context.Context, c Config, log *slog.Logger, listener net.Listener) error {
	defer listener.Close() // when it is not served
	certificate, err := loadCertificate(c, log)
	if err != nil {
		return err
	}
	definitions, err := loadMachines(c.Machines, log)
	if err != nil {
		return err
	}
	redis, err := openRedis(c, log, webConnections)
	if err != nil {
		return err
	}
	defer redis.Close()
	obs, err := openObservability(ctx, c, "web", log)
	if err != nil {
		return err
	}
	defer obs.stop()
	all, err := openStoresOfWeb(ctx, redis, c, log, listener, certificate)
	if err != nil {
		return err
	}
	st := all.First()
	c.clock = newClock(c, log)
	labels := newLabelStores(all)
	collector := newCollector(c, all, labels)
	obs.start(c, all, collector)
	if len(c.RootKey) < minRootKey {
		log.Warn(fmt.Sprintf("ROUTEMASTER_ROOT_KEY has fewer than %d characters, and may be guessed: set a longer one, "+
			"such as openssl rand -hex 32 prints", minRootKey))
	}
	refusals := &rest.Refusals{}
	in := ingest.New(all, ingest.Options{Recorder: obs.recorder, Tracer: obs.tracer, Now: c.clock.Now})
	feeds := newClient(c, c.CallbackDeny, 0)
	defer feeds.Close()
	consoleListener, err := listenForConsole(c)
	if err != nil {
		return err
	}
	live := samples.NewLive(collector)
	config := web.Config{
		RootKey:        c.RootKey,
		Guesses:        rest.NewGuesses(),
		NonceTTL:       c.NonceTTL,
		IdempotencyTTL: c.IdempotencyTTL,
		MaxEventData:   c.MaxEventData,
		ForceTLS:       c.ForceTLS,
		Certificate:    certificate,
		Connections:    obs.connections,
		Subscriber: web.SubscriberConfig{
			Deny: c.CallbackDeny, MaxTopics: c.MaxSubscriptionTopics, Secrets: c.Secrets, Recorder: obs.recorder,
		},
		Jobs: web.JobsConfig{
			Deny: c.CallbackDeny, Downstream: c.DownstreamURL != "", Types: c.JobTypes, Recorder: obs.recorder,
			Processes: func(ctx context.Context) ([]overview.Process, error) {
				return samples.Processes(ctx, st.Partition(), c.clock.Now())
			},
		},
		Machines: web.MachinesConfig{Labels: labels, Client: feeds, Recorder: obs.recorder},
		Queues:   web.QueuesConfig{ScalingThreshold: int64(c.ScalingThreshold), ScalingDeadline: c.ScalingDeadline},
		Version:  Version(),
		Reporter: obs.reporter,
		Tracer:   obs.tracer,
		Recorder: obs.recorder,
		Refusals: refusals,
		Live:     live,
	}
	addConsole(&config, c, st, live, log)
	config.ConsoleListener = consoleListener
	api := web.New(config, all, in, obs.metrics.Handler(), log, c.clock.Now)

	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { registerClients(ctx, redis, all, c.Clients) })
	background.Go(func() { runSamples(ctx, live.Run, obs.reporter, log) })
	heartbeat := newHeartbeat(c, all, overview.Process{Kind: "web"}, refusalsOf(refusals))
	soon, stopWaiting := context.WithTimeout(ctx, clockTimeout)
	heartbeat.Await(soon)
	stopWaiting()
	background.Go(func() { heartbeat.Run(ctx, samples.WebInterval) })
	if definitions != nil {
		background.Go(func() { applyMachines(ctx, newTopics(c, all, labels, obs, log), definitions, log) })
	}
	defer background.Wait()
	defer cancel()

	log.Info("web started", "version", Version(), "address", listener.Addr().String(), slog.Int("open_files", openFileLimit()), obs.address(), consoleAddress(consoleListener))
	background.Go(func() { warnOfRisks(ctx, all.Partitions(), log) })
	err = api.Run(ctx, listener)
	log.Info("web stopped")
	return err
}

// openStoresOfWeb is openStores. If that may take long it serves meanwhile on a listener, which it
// leaves open: a probe must not take a process for dead that waits for Redis.
func openStoresOfWeb(
	ctx context.Context, redis *rdb.Client, c Config, log *slog.Logger, listener net.Listener, certificate *rest.Certificate,
) (*store.Bus, error) {
	if !rdb.IsClusterURL(c.RedisURL) {
		looking, cancel := context.WithTimeout(ctx, clockTimeout)
		defer cancel()
		all, err := store.OpenOne(looking, redis, c.RedisNamespace, storeOptions(c))
		if looking.Err() == nil && !errors.Is(err, bus.ErrUnavailable) {
			return all, err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		defer stop() // if it has failed
		served <- web.RunWaiting(ctx, listener, certificate, log)
	}()
	log.Info("web waits for the bus", "address", listener.Addr().String())
	all, err := openStores(ctx, redis, c, log)
	stop()
	return all, errors.Join(err, <-served)
}

// loadCertificate loads the configured certificate; nil if there is none.
func loadCertificate(c Config, log *slog.Logger) (*rest.Certificate, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	certificate, err := rest.LoadCertificate(c.TLSCert, c.TLSKey, log, time.Now)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf(
			"ROUTEMASTER_TLS_CERT and ROUTEMASTER_TLS_KEY must name a certificate and its key, in PEM: %w", err)}
	}
	return certificate, nil
}

// registerClients registers the configured tokens as soon as Redis is available. If it is not, the
// first ping logs that at the start, and not only with the first request.
func registerClients(ctx context.Context, redis *rdb.Client, all *store.Bus, tokens []bus.Token) {
	retryUntilAccepted(ctx, redis.Ping)
	for _, token := range tokens {
		retryUntilAccepted(ctx, func(ctx context.Context) error {
			return all.AddToken(ctx, token, bus.LegacyClientName(token))
		})
	}
}
