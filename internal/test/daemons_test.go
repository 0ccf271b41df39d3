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
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/stores"
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

// TestWebWaitsForTheBusOfACluster stops it while it waits, and starts it again. Meanwhile it
// answers probes, on the port that serves the bus afterwards.
func TestWebWaitsForTheBusOfACluster(t *testing.T) {
	redis, address := rdbtest.ClusterNode(t), rdbtest.FreeAddress(t)
	require.NoError(t, redis.Raw.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	url := strings.Replace(redis.URL, "redis:", "redis+cluster:", 1)
	config := bustest.LoadConfig(t, map[string]string{"ROUTEMASTER_ROOT_KEY": bustest.RootKey, "FORCE_SSL": "no", "ROUTEMASTER_REDIS_URL": url, "PORT": port})
	start := func() (logged *rdbtest.Buffer, stop func() error) {
		logged = &rdbtest.Buffer{}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- app.RunWeb(ctx, config, slog.New(slog.NewTextHandler(logged, nil))) }()
		require.Eventually(t, func() bool { return strings.Contains(logged.String(), "`rtm cluster create` makes one") }, bustest.WaitTimeout, time.Millisecond)
		return logged, func() error {
			cancel()
			return <-ran
		}
	}
	web := bustest.Connect(t, "http://"+address)
	requireHealthyOnly := func() {
		t.Helper()
		assert.Equal(t, "{}\n", web.Call("", "GET", "/health", "", 200))
		web.Call("", "GET", "/health/ping", "", 200)
		for _, request := range [][2]string{{"GET", "/"}, {"GET", "/health/ready"}, {"GET", "/pulse"}, {"POST", "/topics/widgets"}, {"DELETE", "/health"}, {"GET", "/nowhere"}} {
			web.Call(bustest.RootKey, request[0], request[1], "", 503)
		}
		answer, err := web.Client.Get("http://" + address + "/topics")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.NotEmpty(t, answer.Header.Get("Retry-After"))
		assert.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"))
	}
	_, stop := start()
	requireHealthyOnly()
	assert.ErrorIs(t, stop(), context.Canceled)

	logged, stop := start()
	requireHealthyOnly()
	client, err := rdb.Open(rdb.Options{URL: url, Connections: 1})
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, stores.Create(t.Context(), client, "", 3))
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "web started") }, bustest.WaitTimeout, time.Millisecond)
	web.Call("", "GET", "/health/ready", "", 200)
	assert.NoError(t, stop())
	assert.Equal(t, 1, strings.Count(logged.String(), "rtm cluster create"), "it says so once")
}

// TestDaemonsRefuseANodeOfACluster by itself: it has only a part of the keys.
func TestDaemonsRefuseANodeOfACluster(t *testing.T) {
	redis, log := rdbtest.ClusterNode(t), slog.New(slog.DiscardHandler)
	config := bustest.LoadConfig(t, map[string]string{"ROUTEMASTER_ROOT_KEY": bustest.RootKey, "ROUTEMASTER_REDIS_URL": redis.URL})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	const refused = "this Redis is a node of a Redis Cluster: give the URL of the cluster"
	assert.ErrorContains(t, app.ServeWeb(t.Context(), config, log, listener), refused)
	assert.ErrorContains(t, app.RunWorker(t.Context(), config, log), refused)
}

func TestLogsContainNoSecrets(t *testing.T) {
	redis := rdbtest.Real(t)
	b := bustest.Start(t, redis)
	b.StopWeb()
	b.StopWorker()
	require.NoError(t, redis.Raw.ConfigSet(t.Context(), "requirepass", "redis-password").Err())
	b.Config.RedisURL = strings.Replace(redis.URL, "://", "://:redis-password@", 1)
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
	b := bustest.Start(t, rdbtest.Embedded(t))
	b.StopWeb()
	b.Config.Clients = append(b.Config.Clients, "orders--17", "secret")
	b.StartWeb()
	require.Eventually(t, func() bool {
		names, err := b.Stores.Tokens(t.Context())
		return err == nil && len(names) == 2
	}, bustest.WaitTimeout, time.Millisecond)
	names, err := b.Stores.Tokens(t.Context())
	require.NoError(t, err)
	for token, name := range names {
		assert.Regexp(t, `^client-[0-9a-f]{8}$`, string(name), "a name must not reveal any of %s", token)
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
