package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// daemonVariable makes the test binary run as a daemon: see TestMain.
const daemonVariable = "TEST_ROUTEMASTER_DAEMON"

func TestMain(m *testing.M) {
	switch os.Getenv(daemonVariable) {
	case "web":
		os.Exit(app.Daemon("web", "a test", nil, os.Stdout, os.Stderr, app.RunWeb))
	case "worker":
		os.Exit(app.Daemon("worker", "a test", nil, os.Stdout, os.Stderr, app.RunWorker))
	}
	storetest.Main(m, leftByProxies...)
}

const rootKey = "the-root-key"

// soon bounds what must happen; nothing waits that long unless it fails.
const soon = 30 * time.Second

// testBus is a bus whose daemons run in this process and can be restarted one by one.
type testBus struct {
	t      *testing.T
	redis  *storetest.Server
	store  *store.Store
	config app.Config
	api    string
	client *http.Client

	stopWeb, stopWorker func()
	// log is where the daemons log to, in the end to logged.
	log    slog.Handler
	logged *storetest.Buffer
}

func startBus(t *testing.T, redis *storetest.Server, adjust ...func(*app.Config)) *testBus {
	t.Helper()
	config := loadConfig(t, map[string]string{
		"ROUTEMASTER_ROOT_KEY": rootKey, "ROUTEMASTER_REDIS_URL": redis.URL, "FORCE_SSL": "no",
		"ROUTEMASTER_SSL_VERIFY": "no", "ROUTEMASTER_CALLBACK_DENY": "none", "ROUTEMASTER_ACQUIRE_TIMEOUT": "1", "ROUTEMASTER_WORKER_THREADS": "8",
	})
	for _, f := range adjust {
		f(&config)
	}
	b := &testBus{t: t, redis: redis, store: redis.Open(t), config: config, client: newClient(t), logged: &storetest.Buffer{}}
	b.log = slog.NewTextHandler(b.logged, nil)
	b.startWeb()
	b.startWorker()
	t.Cleanup(func() {
		b.stopWeb()
		b.stopWorker()
	})
	return b
}

// loadConfig reads a configuration from variables.
func loadConfig(t *testing.T, variables map[string]string) app.Config {
	t.Helper()
	config, err := app.LoadConfig(func(name string) string { return variables[name] })
	require.NoError(t, err)
	return config
}

func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: soon}
}

func (b *testBus) startWeb() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b.t, err)
	b.api = "http://" + listener.Addr().String()
	config := b.config
	b.stopWeb = b.run(func(ctx context.Context, log *slog.Logger) error {
		return app.ServeWeb(ctx, config, log, listener)
	})
}

func (b *testBus) startWorker() {
	config := b.config
	b.stopWorker = b.run(func(ctx context.Context, log *slog.Logger) error {
		return app.RunWorker(ctx, config, log)
	})
}

// run runs a daemon until the function that it returns is called.
func (b *testBus) run(daemon func(context.Context, *slog.Logger) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended, log := make(chan error, 1), b.log
	go func() { ended <- daemon(ctx, slog.New(log)) }()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(b.t, err)
		case <-time.After(soon):
			b.t.Error("a daemon does not stop")
		}
	})
}

// call sends a request and requires a status. Who is a token or the root key.
func (b *testBus) call(who, method, path, body string, status int) string {
	b.t.Helper()
	got, text, err := send(b.client, b.api, who, method, path, body)
	require.NoError(b.t, err)
	require.Equal(b.t, status, got, "%s %s: %s", method, path, text)
	return text
}

func send(client *http.Client, api, who, method, path, body string) (status int, text string, err error) {
	req, err := http.NewRequest(method, api+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.SetBasicAuth(who, "x")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// addClient registers a client and returns its token.
func (b *testBus) addClient(name string) string {
	b.t.Helper()
	token := name + "--1"
	b.call(rootKey, "POST", "/api_tokens", fmt.Sprintf(`{"name":%q,"token":%q}`, name, token), http.StatusCreated)
	return token
}

func (b *testBus) publish(token, topic string, number int) {
	b.t.Helper()
	b.call(token, "POST", "/topics/"+topic, eventBody(number), http.StatusOK)
}

func eventBody(number int) string {
	return fmt.Sprintf(`{"type":"update","url":"https://x.example/%d"}`, number)
}

// subscriber is an HTTPS endpoint that keeps what it acknowledged.
type subscriber struct {
	token, url string
	// refuse, if set, says whether a delivery is refused.
	refuse func(deliveries int) bool
	// status, if set, is what a batch is answered.
	status func(numbers []int) int

	mu         sync.Mutex
	deliveries int
	batches    []received
}

// received is a batch that was acknowledged.
type received struct {
	at      time.Time
	topics  []string
	numbers []int
}

func newSubscriber(t *testing.T, token string) *subscriber {
	t.Helper()
	s := &subscriber{token: token}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL + "/"
	return s
}

func (s *subscriber) subscribe(b *testBus, timeout, maxEvents int, topics ...string) {
	b.t.Helper()
	list, err := json.Marshal(topics)
	require.NoError(b.t, err)
	b.call(s.token, "POST", "/subscription",
		fmt.Sprintf(`{"topics":%s,"callback":%q,"uuid":"uuid of %s","timeout":%d,"max":%d}`, list, s.url, s.token, timeout, maxEvents), 204)
}

func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	batch, err := s.read(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries++
	if err != nil || s.refuse != nil && s.refuse(s.deliveries) {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	if s.status != nil {
		if status := s.status(batch.numbers); status != http.StatusOK {
			http.Error(w, "no", status)
			return
		}
	}
	s.batches = append(s.batches, batch)
}

func (s *subscriber) read(r *http.Request) (received, error) {
	batch := received{at: time.Now()}
	if user, _, _ := r.BasicAuth(); user != "uuid of "+s.token {
		return batch, errors.New("wrong uuid")
	}
	var events []struct{ Topic, URL string }
	if err := json.NewDecoder(r.Body).Decode(&events); err != nil {
		return batch, err
	}
	for _, event := range events {
		number, err := strconv.Atoi(strings.TrimPrefix(event.URL, "https://x.example/"))
		if err != nil {
			return batch, err
		}
		batch.numbers = append(batch.numbers, number)
		batch.topics = append(batch.topics, event.Topic)
	}
	return batch, nil
}

func (s *subscriber) acknowledged() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received{}, s.batches...)
}

// numbers are the numbers of all events acknowledged, in order.
func (s *subscriber) numbers() (numbers []int) {
	for _, batch := range s.acknowledged() {
		numbers = append(numbers, batch.numbers...)
	}
	return numbers
}

// waitFor waits until so many events have been acknowledged, and returns the batches.
func (s *subscriber) waitFor(t *testing.T, events int) []received {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.numbers()) >= events }, soon, time.Millisecond,
		"%s has acknowledged too few events", s.token)
	return s.acknowledged()
}

// requireNothingLeft stops the daemons and requires that no event, job or worker is left in Redis, and
// that it is sound.
func (b *testBus) requireNothingLeft() {
	b.t.Helper()
	b.stopWeb()
	b.stopWorker()
	storetest.RequireSound(b.t, b.store)
	require.Empty(b.t, leftOver(b.t, b.redis))
}

// leftOver returns the keys of events, jobs and workers.
func leftOver(t *testing.T, redis *storetest.Server) (left []string) {
	t.Helper()
	for _, pattern := range []string{"batch*", "jobs:*:main*", "jobs:pending*", "workers"} {
		keys, err := redis.Raw.Keys(t.Context(), pattern).Result()
		require.NoError(t, err)
		left = append(left, keys...)
	}
	return left
}
