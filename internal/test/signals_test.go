package test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/store/storetest"
)

// startBusyWorker starts a worker with deliveries under way. The function it returns has them acknowledged.
func startBusyWorker(t *testing.T, deliveries int) (worker *process, answer func()) {
	t.Helper()
	redis := storetest.Real(t)
	b := startBus(t, redis)
	b.stopWorker()
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
		token := b.addClient(fmt.Sprint("client", i))
		s := &subscriber{token: token, url: server.URL}
		s.subscribe(b, 0, 1, "widgets")
	}
	b.publish(b.addClient("publisher"), "widgets", 1)
	worker = startProcess(t, "worker", "ROUTEMASTER_REDIS_URL="+redis.URL, "ROUTEMASTER_TIMEOUT=3600")
	arrived.Wait()
	return worker, answer
}

// TestASecondSignalAtOnceIsIgnored sends what supervisors send, while deliveries are under way.
func TestASecondSignalAtOnceIsIgnored(t *testing.T) {
	worker, answer := startBusyWorker(t, 3)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT} {
		require.NoError(t, worker.Process.Signal(sig))
	}
	answer()
	require.NoError(t, worker.wait(), "it finishes its deliveries and stops")
	log := worker.logSoFar()
	assert.Contains(t, log, `"msg":"worker stopped"`)
}

// TestASignalAfterAWhileEndsTheProgram sends signals until one has an effect.
func TestASignalAfterAWhileEndsTheProgram(t *testing.T) {
	worker, _ := startBusyWorker(t, 2)
	ended, began := make(chan error, 1), time.Now()
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	go func() { ended <- worker.wait() }()
	ticker, late := time.NewTicker(20*time.Millisecond), time.After(soon)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, "signal: terminated")
			assert.GreaterOrEqual(t, time.Since(began), 2*time.Second)
			log := worker.logSoFar()
			assert.Equal(t, 1, strings.Count(log, `"msg":"worker stopping; waiting for the deliveries under way","deliveries":2`), log)
			return
		case <-ticker.C:
			_ = worker.Process.Signal(syscall.SIGTERM) // it may have ended
		case <-late:
			t.Fatal("no signal ends it")
		}
	}
}

// TestTheLimitOfOpenFiles starts daemons with a low limit, and takes all that web may have.
func TestTheLimitOfOpenFiles(t *testing.T) {
	const hard = 120
	redis := storetest.Real(t)
	daemons := map[string]*process{}
	for _, name := range []string{"web", "worker"} {
		command := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -Sn 50 && ulimit -Hn %d && exec "$0"`, hard), os.Args[0])
		daemons[name] = startCommand(t, command, name, "ROUTEMASTER_REDIS_URL="+redis.URL)
		assert.EqualValues(t, hard-1, daemons[name].started["open_files"], name)
	}
	web := daemons["web"]
	for range 2 * hard {
		conn, err := net.Dial("tcp", address(t, web.started))
		require.NoError(t, err, "the system accepts it, web does not")
		defer conn.Close()
	}
	const warning = `"level":"WARN","msg":"out of file descriptors; raise the limit of open files","doing":"accepting a connection"`
	require.Eventually(t, func() bool { return strings.Contains(web.logSoFar(), warning) }, soon, time.Millisecond)
	require.NoError(t, web.stop())
	assert.Equal(t, 1, strings.Count(web.logSoFar(), warning))
}
