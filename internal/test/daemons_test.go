package test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
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
	assert.ErrorIs(t, <-ran, context.Canceled)
}

// TestWebWaitsForTheBusOfACluster stops it while it waits, and starts it again. Meanwhile it
// answers probes, on the port that serves the bus afterwards.
func TestWebWaitsForTheBusOfACluster(t *testing.T) {
	t.Parallel()
	_, url := clusterOfOneNode(t)
	address := rdbtest.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
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
	createBus(t, url)
	require.Eventually(t, func() bool { return strings.Contains(logged.String(), "web started") }, bustest.WaitTimeout, time.Millisecond)
	web.Call("", "GET", "/health/ready", "", 200)
	assert.NoError(t, stop())
	assert.Equal(t, 1, strings.Count(logged.String(), "rtm cluster create"), "it says so once")
}

// clusterOfOneNode has all slots on a node, and returns the URL of the cluster.
func clusterOfOneNode(t *testing.T) (node *rdbtest.Server, url string) {
	t.Helper()
	node = rdbtest.ClusterNode(t)
	require.NoError(t, node.Raw.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(node.Raw.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, bustest.WaitTimeout, time.Millisecond)
	return node, strings.Replace(node.URL, "redis:", "redis+cluster:", 1)
}

// createBus makes a bus of three partitions on a cluster.
func createBus(t *testing.T, url string) *store.Bus {
	t.Helper()
	client, err := rdb.Open(rdb.Options{URL: url, Connections: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, store.CreateBus(t.Context(), client, "", 3))
	all, err := store.OpenBus(t.Context(), client, "", store.Options{})
	require.NoError(t, err)
	return all
}

// TestDaemonsHaveHealthWhileTheyWaitForTheBus on their own address for it, which they keep.
func TestDaemonsHaveHealthWhileTheyWaitForTheBus(t *testing.T) {
	t.Parallel()
	_, url := clusterOfOneNode(t)
	daemons := map[*bustest.Bus]func(context.Context, app.Config, *slog.Logger) error{}
	for _, run := range []func(context.Context, app.Config, *slog.Logger) error{app.RunWorker, app.RunWeb} {
		address, own := rdbtest.FreeAddress(t), rdbtest.FreeAddress(t)
		_, port, err := net.SplitHostPort(own)
		require.NoError(t, err)
		config := bustest.LoadConfig(t, map[string]string{
			"ROUTEMASTER_ROOT_KEY": bustest.RootKey, "ROUTEMASTER_REDIS_URL": url, "PORT": port, "ROUTEMASTER_METRICS_ADDR": address,
		})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- run(ctx, config, slog.New(slog.DiscardHandler)) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ran; !errors.Is(err, context.Canceled) { // it had not begun
				assert.NoError(t, err)
			}
		})
		daemons[bustest.Connect(t, "http://"+address)] = run
	}
	statusOf := func(daemon *bustest.Bus, path string) int {
		answer, err := daemon.Client.Get(daemon.API + path)
		if err != nil {
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for daemon := range daemons {
		require.Eventually(t, func() bool { return statusOf(daemon, "/health") == 200 }, bustest.WaitTimeout, time.Millisecond)
		assert.Contains(t, daemon.Call("", "GET", "/health/ready", "", 503), "cannot reach its storage")
		page := daemon.Call("", "GET", "/metrics", "", 200)
		assert.Contains(t, page, "routemaster_build_info")
		assert.Contains(t, page, "\nroutemaster_redis_up 0\n")
	}
	createBus(t, url)
	for daemon := range daemons {
		for status := 503; status != 200; status = statusOf(daemon, "/health/ready") {
			require.Equal(t, 200, statusOf(daemon, "/health"), "it never stops to listen")
			require.Equal(t, 503, status)
		}
		require.Eventually(t, func() bool { // a scrape waits for Redis for half a second only
			return strings.Contains(daemon.Call("", "GET", "/metrics", "", 200), `routemaster_partition_up{partition="00"} 1`)
		}, bustest.WaitTimeout, time.Millisecond)
	}
}

// TestANodeOfAClusterComesBackEmpty with the number of partitions, while no daemon ran: the bus is
// found by its other partitions, and says that it has lost data.
func TestANodeOfAClusterComesBackEmpty(t *testing.T) {
	t.Parallel()
	node, url := clusterOfOneNode(t)
	all := createBus(t, url)
	for _, key := range []string{"partitions", all.First().Partition().Namespace() + rdb.PartitionKey} {
		require.NoError(t, node.Raw.Del(t.Context(), key).Err())
	}
	b := bustest.Connect(t, "")
	b.Config = bustest.LoadConfig(t, map[string]string{"ROUTEMASTER_ROOT_KEY": bustest.RootKey, "FORCE_SSL": "no", "ROUTEMASTER_REDIS_URL": url})
	var logged rdbtest.Buffer
	b.Log = slog.NewTextHandler(&logged, nil)
	b.StartWeb()
	t.Cleanup(b.StopWeb)
	require.Eventually(t, func() bool {
		return strings.Contains(b.Call(bustest.RootKey, "GET", "/overview", "", 200), `"data-lost"`)
	}, bustest.WaitTimeout, time.Millisecond)
	assert.Contains(t, logged.String(), `partition=00 loss=empty`)
	assert.Equal(t, "3", node.Raw.Get(t.Context(), "partitions").Val())

	var findings []string
	_, err := doctor.Of(all, 0).Examine(t.Context(), false, func(f doctor.Finding) { findings = append(findings, f.Problem) })
	require.NoError(t, err)
	require.NotEmpty(t, findings)
	assert.Contains(t, findings[0], "Redis came back without the data of the bus.")
}

// TestATopicIsNotDeletedWithoutAWorker deletes a topic on a cluster, while events are on their way.
// The response says so, and not that Redis is down.
func TestATopicIsNotDeletedWithoutAWorker(t *testing.T) {
	t.Parallel()
	_, url := clusterOfOneNode(t)
	all := createBus(t, url)
	b := bustest.Connect(t, "")
	b.Config = bustest.LoadConfig(t, map[string]string{
		"ROUTEMASTER_ROOT_KEY": bustest.RootKey, "FORCE_SSL": "no", "ROUTEMASTER_REDIS_URL": url,
		"ROUTEMASTER_SSL_VERIFY": "no", "ROUTEMASTER_CALLBACK_DENY": "none", "ROUTEMASTER_ACQUIRE_TIMEOUT": "1",
	})
	b.Log = slog.DiscardHandler
	b.StartWeb()
	t.Cleanup(b.StopWeb)
	publisher, reader := b.AddClient("publisher"), bustest.NewSubscriber(t, b.AddClient("reader"))
	topic := "a"
	for all.Home(bus.TopicName(topic)) == all.Of(bus.Token(reader.Token)) {
		topic += "a"
	}
	reader.Subscribe(b, 0, 1, topic)
	b.Publish(publisher, topic, 1)
	assert.Contains(t, b.Call(publisher, "DELETE", "/topics/"+topic, "", 503), "on their way to other partitions, and the topic was not deleted")
	b.StartWorker()
	t.Cleanup(b.StopWorker)
	reader.WaitFor(t, 1)
	b.Call(publisher, "DELETE", "/topics/"+topic, "", 204)
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
