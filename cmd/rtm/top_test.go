package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/client"
	"routemaster/client/jobs"
	"routemaster/client/machines"
	"routemaster/internal/app"
	"routemaster/internal/overview"
	"routemaster/internal/rdb/rdbtest"
)

// TestTopOfABus publishes to a bus with a subscriber that accepts and one that refuses, and looks
// at it.
func TestTopOfABus(t *testing.T) {
	redis := rdbtest.Real(t)
	config, err := app.LoadConfig(func(name string) string {
		return map[string]string{
			"ROUTEMASTER_ROOT_KEY": rootKey, "ROUTEMASTER_REDIS_URL": redis.URL, "FORCE_SSL": "no", "ROUTEMASTER_SSL_VERIFY": "no",
			"ROUTEMASTER_CALLBACK_DENY": "none", "ROUTEMASTER_ACQUIRE_TIMEOUT": "1", "ROUTEMASTER_WORKER_THREADS": "4",
			"ROUTEMASTER_COUNTER_FLUSH_INTERVAL": "1",
			// The failing subscriber is retried often, so that each sample includes a failed delivery,
			// even on a slow host.
			"MAX_BACKOFF_MS": "100",
		}[name]
	})
	require.NoError(t, err)
	bus := &testBus{url: "http://" + serveWeb(t, config)}
	runDaemon(t, func(ctx context.Context, log *slog.Logger) error { return app.RunWorker(ctx, config, log) })

	publisher := bus.connect(t, bus.addClient(t, "warehouse"))
	subscribe := func(name string, status int) {
		callback := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(callback.Close)
		var atOnce time.Duration
		require.NoError(t, bus.connect(t, bus.addClient(t, name)).Subscribe(t.Context(), client.Subscription{
			Topics: []string{"widgets"}, Callback: callback.URL, UUID: "demo", Timeout: &atOnce,
		}))
	}
	subscribe("shop", http.StatusOK)
	subscribe("broken", http.StatusInternalServerError)
	publish := func() {
		events := make([]client.Event, 10)
		for i := range events {
			events[i] = client.Event{Type: client.Update, URL: fmt.Sprintf("https://warehouse.example/%d", i)}
		}
		assert.NoError(t, publisher.PublishAll(t.Context(), "widgets", events))
	}
	publish() // or the topic is unknown to the first look
	work := jobs.New(publisher)
	_, err = work.AddType(t.Context(), jobs.Type{Name: "ship", Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 5, Paused: true})
	require.NoError(t, err)
	_, err = work.Enqueue(t.Context(), "ship", jobs.NewJob{Data: json.RawMessage("1")})
	require.NoError(t, err)

	_, err = machines.Apply(t.Context(), bus.connect(t, rootKey), []byte("state_machines: {trial: {states: [{gate: start, exit_condition: false}]}}"))
	require.NoError(t, err)
	_, err = machines.Of(publisher, "trial").Create(t.Context(), "ann", nil)
	require.NoError(t, err)

	look := func(who string, more ...string) (figures overview.Figures) {
		publish()
		var stdout, stderr bytes.Buffer
		args := append([]string{"top", "-b", bus.url, "-t", who, "--once", "--json", "--interval", "500ms"}, more...)
		require.Equal(t, app.ExitOK, run(t.Context(), args, &stdout, &stderr), stderr.String())
		assert.NotContains(t, stdout.String(), "--1", "no token")
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &figures))
		return figures
	}
	complete := func(f overview.Figures) bool { // workers report every second, and samples are 3 s old at most
		return len(f.Subscribers) == 2 && f.Subscribers[0].Failed != nil && f.Subscribers[1].Failed != nil &&
			f.Delivered != nil && *f.Delivered > 10 && f.Published != nil && *f.Published > 10 && len(f.JobTypes) == 1 &&
			f.JobTypes[0].Succeeded != nil && len(f.Machines) == 1 && f.Machines[0].Moves != nil
	}
	for _, who := range []string{rootKey, "warehouse--1", "broken--1"} {
		var figures overview.Figures
		for deadline := time.Now().Add(soon); !complete(figures) && time.Now().Before(deadline); {
			figures = look(who, "--sort", "health")
		}
		require.True(t, complete(figures), "%+v", figures)
		broken, shop, widgets := figures.Subscribers[0], figures.Subscribers[1], figures.Topics[0]
		assert.Equal(t, []string{"broken", "shop", "widgets", "warehouse"}, []string{broken.Name, shop.Name, widgets.Name, widgets.Publisher})
		assert.Greater(t, *widgets.Rate, 10.0)
		assert.Greater(t, *shop.Rate, 10.0)
		assert.Zero(t, *broken.Rate)
		assert.Equal(t, []float64{1, 0}, []float64{*broken.Failed, *shop.Failed})
		assert.Equal(t, []int64{0, 0, 0}, []int64{*broken.Dropped, *shop.Dropped, *figures.Dropped})
		assert.Less(t, broken.Health, 100)
		assert.Equal(t, 100, shop.Health)
		assert.GreaterOrEqual(t, broken.Queued, int64(20))
		assert.Positive(t, *broken.OldestAge)
		assert.Equal(t, 2, widgets.Subscribers)
		assert.Positive(t, figures.Memory.Used)
		assert.Greater(t, figures.Memory.High, figures.Memory.Low)
		assert.Len(t, figures.Queues, 4, "queues")
		require.Len(t, figures.JobTypes, 1)
		ship := figures.JobTypes[0]
		assert.Positive(t, *ship.OldestAge)
		ship.OldestAge = nil
		var zero float64
		assert.Equal(t, overview.JobType{
			Name: "ship", Queued: 1, Waiting: 1, Concurrency: 5, Paused: true, Succeeded: &zero, Failed: &zero, Expired: &zero,
		}, ship)
		assert.Equal(t, []overview.Machine{{Name: "trial", Labels: 1, Moves: &zero, Failed: &zero}}, figures.Machines)
		assert.Empty(t, figures.Warnings)
	}
	figures := look("shop--1", "--filter", "^shop$")
	require.Len(t, figures.Subscribers, 1)
	assert.Equal(t, "shop", figures.Subscribers[0].Name)
}

func TestWrongUsageOfTop(t *testing.T) {
	for want, args := range map[string][]string{
		"the output is not a terminal; --once prints": {},
		"--json needs --once":                         {"--json"},
		"--verbose needs --once":                      {"-v"},
		"an interval is from 500ms to 1h":             {"--once", "--interval", "1ms"},
		`no column "size" to sort by`:                 {"--once", "--sort", "size"},
		"got 1 arguments":                             {"x"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, app.ExitUsage, run(t.Context(), append([]string{"top", "-b", "http://127.0.0.1:1", "-t", "x"}, args...), &stdout, &stderr))
		assert.Contains(t, stderr.String(), want)
		assert.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, app.ExitUsage, run(t.Context(), []string{"top", "--once"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "no bus given")
}
