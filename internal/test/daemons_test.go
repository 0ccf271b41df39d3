package test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// TestWebLogsAtStartThatRedisIsUnavailable sends no request.
func TestWebLogsAtStartThatRedisIsUnavailable(t *testing.T) {
	config := bustest.LoadConfig(t, map[string]string{"ROUTEMASTER_ROOT_KEY": bustest.RootKey, "ROUTEMASTER_REDIS_URL": "redis://" + rdbtest.FreeAddress(t)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var logged rdbtest.Buffer
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- app.ServeWeb(ctx, config, slog.New(slog.NewTextHandler(&logged, nil)), listener) }()
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "level=ERROR msg=\"redis") }, bustest.WaitTimeout, time.Millisecond)
	stop()
	assert.NoError(t, <-ran)
}

func TestLogsContainNoSecrets(t *testing.T) {
	redis := rdbtest.Real(t)
	b := bustest.Start(t, redis)
	b.StopWeb()
	b.StopWorker()
	require.NoError(t, redis.Raw.ConfigSet(t.Context(), "requirepass", "redis-password").Err())
	b.Config.RedisURL = strings.Replace(redis.URL, "redis://", "redis://:redis-password@", 1)
	b.Log = slog.NewTextHandler(b.Logged, &slog.HandlerOptions{Level: slog.LevelDebug})
	b.StartWeb()
	b.StartWorker()

	publisher := b.AddClient("publisher")
	sub := bustest.NewSubscriber(t, b.AddClient("subscriber"))
	sub.Refuse = func(deliveries int) bool { return deliveries == 1 }
	sub.Subscribe(b, 0, 10, "widgets")
	b.Publish(publisher, "widgets", 1)
	sub.WaitFor(t, 1)
	b.Call("wrong-secret", "GET", "/topics", "", 401)
	b.Call(publisher, "GET", "/api_tokens", "", 403)
	b.Call(bustest.RootKey, "DELETE", "/api_tokens/"+publisher, "", 204)
	redis.Kill(t)
	b.Call(bustest.RootKey, "GET", "/pulse", "", 503)
	b.Call(sub.Token, "GET", "/topics", "", 503)
	b.StopWeb()
	b.StopWorker()

	text := b.Logged.String()
	for _, said := range []string{"web started", "worker started", "failed to deliver", "msg=delivered", "redis unavailable, retrying"} {
		assert.Contains(t, text, said)
	}
	for _, secret := range []string{bustest.RootKey, publisher, sub.Token, "uuid of", "wrong-secret", "redis-password"} {
		assert.NotContains(t, text, secret)
	}
}

func TestConfiguredClientsAreRegistered(t *testing.T) {
	redis := rdbtest.Embedded(t)
	b := bustest.Start(t, redis)
	b.StopWeb()
	b.Config.Clients = append(b.Config.Clients, "orders--17", "secret")
	b.StartWeb()
	require.Eventually(t, func() bool {
		return redis.Raw.HLen(t.Context(), "api_tokens:by_token").Val() == 2
	}, bustest.WaitTimeout, time.Millisecond)
	names := redis.Raw.HGetAll(t.Context(), "api_tokens:by_token").Val()
	for token, name := range names {
		assert.Regexp(t, `^client-[0-9a-f]{8}$`, name, "a name must not reveal any of %s", token)
	}
	b.Publish("secret", "widgets", 1)
}

func TestAMetricsAddressInUseStopsADaemon(t *testing.T) {
	redis := rdbtest.Embedded(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c := bustest.LoadConfig(t, map[string]string{"ROUTEMASTER_REDIS_URL": redis.URL, "ROUTEMASTER_METRICS_ADDR": listener.Addr().String()})
	assert.ErrorContains(t, app.RunWorker(context.Background(), c, slog.New(slog.DiscardHandler)), "ROUTEMASTER_METRICS_ADDR: ")
}
