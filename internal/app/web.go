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
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/web"
	"routemaster/internal/web/server"
)

// webConnections is how many calls to Redis one web process may have under way.
const webConnections = 32

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

// ServeWeb serves the API on a listener until the context is done, and closes it.
func ServeWeb(ctx context.Context, c Config, log *slog.Logger, listener net.Listener) error {
	defer listener.Close() // should it not come to serving
	var certificate *server.Certificate
	if c.TLSCert != "" {
		var err error
		if certificate, err = server.LoadCertificate(c.TLSCert, c.TLSKey, log, time.Now); err != nil {
			return &ConfigError{fmt.Errorf("ROUTEMASTER_TLS_CERT and ROUTEMASTER_TLS_KEY must name a certificate and its key, in PEM: %w", err)}
		}
	}
	redis, err := openRedis(c, log, webConnections)
	if err != nil {
		return err
	}
	defer redis.Close()
	st := newStore(redis, c, nil)
	seen, err := observe(ctx, c, "web", st, log)
	if err != nil {
		return err
	}
	defer seen.close()
	in := ingest.New(st, ingest.Options{Recorder: seen.recorder, Tracer: seen.tracer})
	api := web.New(web.Config{
		RootKey:               c.RootKey,
		NonceTTL:              c.NonceTTL,
		IdempotencyTTL:        c.IdempotencyTTL,
		MaxEventData:          c.MaxEventData,
		ForceTLS:              c.ForceTLS,
		Certificate:           certificate,
		Deny:                  c.CallbackDeny,
		MaxSubscriptionTopics: c.MaxSubscriptionTopics,
		ScalingThreshold:      int64(c.ScalingThreshold),
		ScalingDeadline:       c.ScalingDeadline,
		Reporter:              seen.reporter,
		Tracer:                seen.tracer,
	}, st, in, seen.metrics.Handler(), log, time.Now)

	ctx, cancel := context.WithCancel(ctx)
	var registering sync.WaitGroup
	registering.Go(func() {
		untilRedisTakes(ctx, redis.Ping) // logs at once if it is unavailable
		registerClients(ctx, st, c.Clients)
	})
	defer registering.Wait()
	defer cancel()

	log.Info("web started", "version", Version(), "address", listener.Addr().String(), openFiles(), seen.address())
	err = api.Run(ctx, listener)
	log.Info("web stopped")
	return err
}

// askRedisEvery is the pause before Redis is asked again for what is to be done at the start.
const askRedisEvery = time.Second

// registerClients registers the configured tokens, as soon as Redis can be reached.
func registerClients(ctx context.Context, st *store.Store, tokens []bus.Token) {
	for _, token := range tokens {
		untilRedisTakes(ctx, func(ctx context.Context) error {
			return st.AddToken(ctx, token, bus.LegacyClientName(token))
		})
	}
}

// untilRedisTakes repeats a call until it succeeds, or the context is done.
func untilRedisTakes(ctx context.Context, call func(context.Context) error) {
	for ctx.Err() == nil && call(ctx) != nil {
		select {
		case <-time.After(askRedisEvery):
		case <-ctx.Done():
		}
	}
}

func openRedis(c Config, log *slog.Logger, connections int) (*rdb.Client, error) {
	return rdb.Open(rdb.Options{
		URL: c.RedisURL, Connections: connections, MinReplicas: c.MinReplicas, Log: log,
	})
}

func newStore(redis *rdb.Client, c Config, onGone func(store.DroppedBatch)) *store.Store {
	return store.New(redis.Partition(c.RedisNamespace), store.Options{
		Abreast:         c.SubscriberDeliveries,
		Origins:         c.Tracing,
		IdempotencyKeys: c.IdempotencyKeys,
		MaxClientTopics: c.MaxClientTopics,
		MaxTopics:       c.MaxTopics,
		OnGone:          onGone,
	})
}
