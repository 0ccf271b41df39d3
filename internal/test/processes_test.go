package test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

// startBusyWorker starts a worker with deliveries under way. The function it returns has them
// acknowledged.
func startBusyWorker(t *testing.T, deliveries int) (worker *bustest.Process, answer func()) {
	t.Helper()
	redis := rdbtest.Real(t)
	b := bustest.Start(t, redis)
	b.StopWorker()
	var arrived sync.WaitGroup
	arrived.Add(deliveries)
	answered := make(chan struct{})
	answer = sync.OnceFunc(func() { close(answered) })
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived.Done()
		select {
		case <-answered:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(answer)
	for i := range deliveries {
		token := b.AddClient(fmt.Sprint("client", i))
		s := &bustest.Subscriber{Token: token, URL: server.URL}
		s.Subscribe(b, 0, 1, "widgets")
	}
	b.Publish(b.AddClient("publisher"), "widgets", 1)
	worker = bustest.StartProcess(t, "worker", "ROUTEMASTER_REDIS_URL="+redis.URL, "ROUTEMASTER_TIMEOUT=3600")
	arrived.Wait()
	return worker, answer
}

// TestASecondSignalAtOnceIsIgnored sends signals as supervisors do, while deliveries are under way.
func TestASecondSignalAtOnceIsIgnored(t *testing.T) {
	worker, answer := startBusyWorker(t, 3)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT} {
		require.NoError(t, worker.Process.Signal(sig))
	}
	answer()
	require.NoError(t, worker.Wait(), "it finishes its deliveries and stops")
	log := worker.LogText()
	assert.Contains(t, log, `"msg":"worker stopped"`)
}

// TestASignalAfterAWhileEndsTheProgram sends signals until one has an effect.
func TestASignalAfterAWhileEndsTheProgram(t *testing.T) {
	worker, _ := startBusyWorker(t, 2)
	ended, began := make(chan error, 1), time.Now()
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	go func() { ended <- worker.Wait() }()
	ticker, late := time.NewTicker(20*time.Millisecond), time.After(bustest.WaitTimeout)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, "signal: terminated")
			assert.GreaterOrEqual(t, time.Since(began), 2*time.Second)
			log := worker.LogText()
			assert.Equal(t, 1, strings.Count(log, `"msg":"worker stopping, waiting for deliveries in flight","deliveries":2`), log)
			return
		case <-ticker.C:
			_ = worker.Process.Signal(syscall.SIGTERM) // it may have ended
		case <-late:
			t.Fatal("no signal ends it")
		}
	}
}

// TestTheLimitOfOpenFiles starts daemons with a low limit, and opens more idle connections to web
// than it may have: it closes them, and serves others.
func TestTheLimitOfOpenFiles(t *testing.T) {
	const hard = 120
	redis := rdbtest.Real(t)
	daemons := map[string]*bustest.Process{}
	for _, name := range []string{"web", "worker"} {
		command := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -Sn 50 && ulimit -Hn %d && exec "$0"`, hard), os.Args[0])
		daemons[name] = bustest.StartCommand(t, command, name, "ROUTEMASTER_REDIS_URL="+redis.URL)
		assert.EqualValues(t, hard-1, daemons[name].Started["open_files"], name)
	}
	web := daemons["web"]
	for range 2 * hard {
		conn, err := net.Dial("tcp", web.Address(t))
		require.NoError(t, err)
		defer conn.Close()
	}
	status, body, err := bustest.Send(bustest.NewClient(t), "http://"+web.Address(t), "", "GET", "/health", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status, body)
	require.NoError(t, web.Stop())
	assert.Contains(t, web.LogText(), `"level":"WARN","msg":"too many connections: closed those that were idle longest"`)
	assert.NotContains(t, web.LogText(), "out of file descriptors")
}

// TestABulkLoadTakesLittleMemory sends many large requests at once and looks at the peak memory of
// web. The race detector doubles that memory and more, so it is not looked at there.
func TestABulkLoadTakesLittleMemory(t *testing.T) {
	if rdbtest.RaceDetector {
		t.Skip("the race detector takes more memory than web; the tests without it look at this")
	}
	const requests, publishers, events = 200, 8, 1000
	redis := rdbtest.Real(t)
	require.NoError(t, storetest.Open(t, redis).PutToken(t.Context(), "publisher--1", "publisher"))
	web := bustest.StartProcess(t, "web", "ROUTEMASTER_REDIS_URL="+redis.URL)
	api, client := "http://"+web.Address(t), bustest.NewClient(t)
	var all []string
	for i := range events {
		all = append(all, bustest.EventBody(i))
	}
	body := "[" + strings.Join(all, ",") + "]"
	var loading sync.WaitGroup
	for range publishers {
		loading.Go(func() {
			for range requests / publishers {
				status, text, err := bustest.Send(client, api, "publisher--1", "POST", "/topics/widgets", body)
				assert.NoError(t, err)
				assert.Equal(t, http.StatusOK, status, text)
			}
		})
	}
	loading.Wait()
	assert.Equal(t, strconv.Itoa(requests*events), redis.Raw.HGet(t.Context(), "topic:widgets", "counter").Val())

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", web.Process.Pid))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("only Linux reports a process's peak memory")
	}
	require.NoError(t, err)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(peak)[0])
	require.NoError(t, err)
	t.Logf("web's peak memory after %d events: %d kB", requests*events, kilobytes)
	assert.Less(t, kilobytes, 60_000)
}

// TestSignalsStopDaemonsGracefully sends the documented signals.
func TestSignalsStopDaemonsGracefully(t *testing.T) {
	redis := rdbtest.Real(t)
	for _, name := range []string{"web", "worker"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
			daemon := bustest.StartProcess(t, name, "ROUTEMASTER_REDIS_URL="+redis.URL)
			require.NoError(t, daemon.Process.Signal(sig))
			assert.NoError(t, daemon.Wait(), "%s on %v", name, sig)
		}
	}
	assert.Empty(t, redis.Raw.Keys(t.Context(), "workers").Val())
}
