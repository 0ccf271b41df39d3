package bustest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// RootKey is the root key of every bus for tests.
const RootKey = "the-root-key-of-tests"

// WaitTimeout bounds how long a test waits for an expected event. Only a failing test waits that
// long.
const WaitTimeout = 2 * time.Minute

// Bus is a bus whose daemons run in this process and can be restarted one by one.
type Bus struct {
	Redis  *rdbtest.Server
	Stores *store.Bus
	Client *http.Client
	// API is the URL of web. It changes with each StartWeb.
	API string
	// Config is the configuration of the daemons that are started from now on.
	Config app.Config
	// Log is where the daemons that are started from now on log to: at first, to Logged.
	Log    slog.Handler
	Logged *rdbtest.Buffer

	t                   testing.TB
	stopWeb, stopWorker func()
}

// Start starts a bus on a Redis. It ends with the test.
func Start(t testing.TB, redis *rdbtest.Server, adjust ...func(*app.Config)) *Bus {
	t.Helper()
	b := &Bus{Redis: redis, Stores: storetest.OpenAll(t, redis)}
	b.start(t, redis.URL, adjust...)
	return b
}

// StartOnCluster starts a bus with partitions on a Redis Cluster, which has neither Redis nor
// Stores. It ends with the test.
func StartOnCluster(t testing.TB, cluster *rdbtest.Cluster, partitions int, adjust ...func(*app.Config)) *Bus {
	t.Helper()
	require.NoError(t, store.CreateBus(t.Context(), cluster.Open(t), "", partitions))
	b := &Bus{}
	b.start(t, cluster.URL, adjust...)
	return b
}

func (b *Bus) start(t testing.TB, url string, adjust ...func(*app.Config)) {
	config := LoadConfig(t, map[string]string{
		"ROUTEMASTER_ROOT_KEY": RootKey, "FORCE_SSL": "no",
		"ROUTEMASTER_SSL_VERIFY": "no", "ROUTEMASTER_CALLBACK_DENY": "none",
		"ROUTEMASTER_ACQUIRE_TIMEOUT": "1", "ROUTEMASTER_WORKER_THREADS": "8", "ROUTEMASTER_JOB_THREADS": "4", "ROUTEMASTER_MACHINE_THREADS": "4",
	})
	config.RedisURL = url
	for _, f := range adjust {
		f(&config)
	}
	b.t, b.Config, b.Client, b.Logged = t, config, NewClient(t), &rdbtest.Buffer{}
	b.Log = slog.NewTextHandler(b.Logged, nil)
	b.StartWeb()
	b.StartWorker()
	t.Cleanup(func() {
		b.StopWeb()
		b.StopWorker()
	})
}

// Connect returns a bus whose daemons run elsewhere: it can be called, and has neither Redis nor
// Stores.
func Connect(t testing.TB, api string) *Bus {
	return &Bus{t: t, API: api, Client: NewClient(t)}
}

// LoadConfig reads a configuration from variables.
func LoadConfig(t testing.TB, variables map[string]string) app.Config {
	t.Helper()
	config, err := app.LoadConfig(func(name string) string { return variables[name] })
	require.NoError(t, err)
	return config
}

// NewClient returns an HTTP client whose connections are closed with the test.
func NewClient(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: WaitTimeout}
}

// StartWeb starts web on a new port, and waits until it serves more than probes: on a cluster it
// begins with these.
func (b *Bus) StartWeb() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b.t, err)
	b.API = "http://" + listener.Addr().String()
	config := b.Config
	b.stopWeb = b.run(func(ctx context.Context, log *slog.Logger) error {
		return app.ServeWeb(ctx, config, log, listener)
	})
	require.Eventually(b.t, func() bool {
		status, _, err := Send(b.Client, b.API, "", "GET", "/openapi.json", "") // which asks no Redis
		return err == nil && status != http.StatusServiceUnavailable
	}, WaitTimeout, time.Millisecond)
}

// StartWorker starts a worker.
func (b *Bus) StartWorker() {
	config := b.Config
	b.stopWorker = b.run(func(ctx context.Context, log *slog.Logger) error {
		return app.RunWorker(ctx, config, log)
	})
}

// StopWeb stops web, if it runs, and waits for it.
func (b *Bus) StopWeb() { b.stopWeb() }

// StopWorker stops the worker, if it runs, and waits for it.
func (b *Bus) StopWorker() { b.stopWorker() }

// run runs a daemon until the function that it returns is called.
func (b *Bus) run(daemon func(context.Context, *slog.Logger) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended, log := make(chan error, 1), b.Log
	go func() { ended <- daemon(ctx, slog.New(log)) }()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) { // it had not begun
				require.NoError(b.t, err)
			}
		case <-time.After(WaitTimeout):
			b.t.Error("a daemon does not stop")
		}
	})
}

// Call sends a request with a token or the root key, requires a status, and returns the body.
func (b *Bus) Call(token, method, path, body string, status int) string {
	b.t.Helper()
	got, text, err := Send(b.Client, b.API, token, method, path, body)
	require.NoError(b.t, err)
	require.Equal(b.t, status, got, "%s %s: %s", method, path, text)
	return text
}

// Send sends a request with a token or the root key, and returns the status and the body.
func Send(client *http.Client, api, token, method, path, body string) (status int, text string, err error) {
	req, err := http.NewRequest(method, api+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.SetBasicAuth(token, "x")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	response, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(response), err
}

// AddClient registers a client and returns its token.
func (b *Bus) AddClient(name string) string {
	b.t.Helper()
	token := name + "--1"
	b.Call(RootKey, "POST", "/api_tokens", fmt.Sprintf(`{"name":%q,"token":%q}`, name, token), http.StatusCreated)
	return token
}

// Publish publishes one numbered event.
func (b *Bus) Publish(token, topic string, number int) {
	b.t.Helper()
	b.Call(token, "POST", "/topics/"+topic, EventBody(number), http.StatusOK)
}

// eventURL begins the URLs of numbered events.
const eventURL = "https://x.example/"

// EventBody is the JSON of a numbered event. [Subscriber] finds the number in its URL.
func EventBody(number int) string {
	return fmt.Sprintf(`{"type":"update","url":"%s%d"}`, eventURL, number)
}

// Drain waits until everything that was queued has been delivered.
func (b *Bus) Drain() {
	b.t.Helper()
	b.waitUntilEmpty(bus.QueueRelay) // which fills the other
	b.waitUntilEmpty(bus.QueueMain)
}

// waitUntilEmpty waits until a queue has no job in any partition.
func (b *Bus) waitUntilEmpty(queue bus.Queue) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		for _, st := range b.Stores.All() {
			p := st.Partition()
			if p.Exists(b.t.Context(), p.Namespace()+"jobs:index:"+string(queue)).Val() != 0 {
				return false
			}
		}
		return true
	}, WaitTimeout, 10*time.Millisecond, "something is left in the queue")
}

// RequireNothingLeft stops the daemons and requires that no event, job or worker is left in Redis,
// and that the data there is sound.
func (b *Bus) RequireNothingLeft() {
	b.t.Helper()
	b.StopWeb()
	b.waitUntilEmpty(bus.QueueRelay) // a relay only finds out 20 ms later that nothing follows
	b.StopWorker()
	storetest.RequireAllSound(b.t, b.Stores)
	for _, st := range b.Stores.All() {
		require.Empty(b.t, LeftoverKeys(b.t, st.Partition()))
	}
}

// leftovers are the keys of events, on their way to another partition too, of jobs and of workers.
var leftovers = regexp.MustCompile(`^(batch.*|jobs:\w+:(main|relay).*|jobs:pending.*|relay:(\d+|taken)|workers)$`)

// LeftoverKeys returns the keys of events, jobs and workers in a partition.
func LeftoverKeys(t testing.TB, p *rdb.Partition) (keys []string) {
	t.Helper()
	require.NoError(t, p.EachKey(t.Context(), p.Namespace()+"*", func(page []string) error {
		for _, key := range page {
			if leftovers.MatchString(strings.TrimPrefix(key, p.Namespace())) {
				keys = append(keys, key)
			}
		}
		return nil
	}))
	return keys
}
