package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
)

// healthChecks are the commands by which a container's health is checked: the image's, and by
// service the ones in the compose file.
func healthChecks(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^HEALTHCHECK .*CMD (\[.*\])$`).FindSubmatch(text)
	require.NotNil(t, found, "the Dockerfile has no health check")
	var image []string
	require.NoError(t, json.Unmarshal(found[1], &image))
	checks := map[string][]string{"image": image}
	text, err = os.ReadFile("../../examples/compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Build       string
			Environment map[string]string
			Healthcheck struct{ Test []string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	for name, service := range compose.Services {
		if service.Build != "" {
			require.NotEmpty(t, service.Healthcheck.Test, name)
			require.Equal(t, "CMD", service.Healthcheck.Test[0])
			checks[name] = service.Healthcheck.Test[1:]
		}
	}
	require.NotEmpty(t, compose.Services["worker"].Environment["ROUTEMASTER_METRICS_ADDR"])
	return checks
}

// startHealthWorker starts a worker that serves its metrics on an address until the test ends.
func startHealthWorker(t *testing.T, redisURL, address string) {
	t.Helper()
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{"ROUTEMASTER_REDIS_URL": redisURL, "ROUTEMASTER_METRICS_ADDR": address}[name]
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- app.RunWorker(ctx, config, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, soon, time.Millisecond)
}

func TestHealthChecksOfContainers(t *testing.T) {
	checks := healthChecks(t)
	redis, worker := rdbtest.Real(t), rdbtest.FreeAddress(t)
	startHealthWorker(t, redis.URL, worker)
	web, err := app.LoadConfig(func(name string) string {
		return map[string]string{"ROUTEMASTER_REDIS_URL": redis.URL, "ROUTEMASTER_ROOT_KEY": rootKey}[name]
	})
	require.NoError(t, err)
	bothMetrics := rdbtest.FreeAddress(t)
	web.MetricsAddr = bothMetrics
	_, webPort, err := net.SplitHostPort(serveWeb(t, web)) // FORCE_SSL is on, as in production
	require.NoError(t, err)
	_, workerPort, err := net.SplitHostPort(worker)
	require.NoError(t, err)
	_, nonePort, err := net.SplitHostPort(rdbtest.FreeAddress(t))
	require.NoError(t, err)
	check := func(command []string, port, metrics string) (status int, output string) {
		t.Setenv("PORT", port)
		t.Setenv("ROUTEMASTER_METRICS_ADDR", metrics)
		var stdout, stderr bytes.Buffer
		require.Equal(t, "/rtm", command[0])
		status = run(t.Context(), command[1:], &stdout, &stderr)
		assert.Empty(t, stdout.String())
		return status, stderr.String()
	}
	live := func(command []string) {
		t.Helper()
		for _, c := range [][2]string{{webPort, ""}, {webPort, bothMetrics}, {webPort, worker}, {nonePort, ":" + workerPort}, {nonePort, worker}} {
			status, output := check(command, c[0], c[1])
			assert.Equal(t, app.ExitOK, status, "%v %v: %s", command, c, output)
		}
	}
	for _, command := range checks {
		live(command)
		status, output := check(command, nonePort, "")
		assert.Equal(t, app.ExitFailed, status)
		assert.Contains(t, output, "needs ROUTEMASTER_METRICS_ADDR")
		for _, c := range [][2]string{{nonePort, ":" + nonePort}, {webPort, ":" + nonePort}, {nonePort, bothMetrics}} {
			status, _ = check(command, c[0], c[1])
			assert.Equal(t, app.ExitFailed, status, "a web without its port, or a dead worker beside web: %v", c)
		}
	}
	redis.Kill(t)
	live(checks["image"])
	for _, name := range []string{"web", "worker"} {
		for _, c := range [][2]string{{webPort, ""}, {nonePort, worker}} {
			status, output := check(checks[name], c[0], c[1])
			assert.Equal(t, app.ExitFailed, status)
			assert.Contains(t, output, "answered 503 Service Unavailable: {")
			assert.Contains(t, output, "the bus cannot reach its storage")
		}
	}
}
