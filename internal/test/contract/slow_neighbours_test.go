package contract

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/app"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// slowService answers at once until it is slow. Then it holds all that it is asked to do, until it
// is quick again.
type slowService struct {
	url           string
	slow          atomic.Bool
	asked, served atomic.Int64
	quick         chan struct{}
	heal          func() // makes it quick again
}

func newSlowService(t *testing.T) *slowService {
	s := &slowService{quick: make(chan struct{})}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if s.slow.Load() {
			<-s.quick
		}
		s.served.Add(1)
		_, _ = io.WriteString(w, `{"status":"succeeded"}`)
	}))
	t.Cleanup(server.Close)
	s.heal = sync.OnceFunc(func() { close(s.quick) })
	t.Cleanup(s.heal)
	s.url = server.URL + "/"
	return s
}

// wait waits until the service has done so much.
func (s *slowService) wait(t *testing.T, served int64) {
	t.Helper()
	require.Eventually(t, func() bool { return s.served.Load() >= served }, bustest.WaitTimeout, time.Millisecond)
}

// neighbour has a slow service. Begin sets up its requests, and send causes the n-th one.
type neighbour struct {
	begin func(b *bustest.Bus, token, url string)
	send  func(b *bustest.Bus, token string, n int)
}

// neighbours have all threads of a kind ask their service, unless the bus prevents it.
var neighbours = map[string]neighbour{
	"a subscriber of many lanes": {
		begin: func(b *bustest.Bus, token, url string) {
			b.Call(token, "POST", "/subscription",
				fmt.Sprintf(`{"topics":["ailments"],"callback":%q,"timeout":0,"max":1,"lanes":64,"order_key":"/data/n"}`, url), http.StatusNoContent)
		},
		send: func(b *bustest.Bus, token string, n int) {
			b.Call(token, "POST", "/topics/ailments", fmt.Sprintf(`{"type":"update","url":"https://x.example/","data":{"n":"%d"}}`, n), http.StatusOK)
		},
	},
	"a job type": {
		begin: func(b *bustest.Bus, token, url string) {
			b.Call(token, "POST", "/v2/job-types",
				fmt.Sprintf(`{"name":"slow","delivery_strategy":"at_least_once","attempts":1,"concurrency":1000,"url":%q}`, url), http.StatusCreated)
		},
		send: func(b *bustest.Bus, token string, _ int) {
			b.Call(token, "PUT", "/v1/jobs/slow/random_id", `{"data":1}`, http.StatusAccepted)
		},
	},
	machineOfTwoActions: {
		begin: func(*bustest.Bus, string, string) {}, // root has defined the machine
		send: func(b *bustest.Bus, token string, n int) {
			label := fmt.Sprintf("/state-machines/slow/labels/%d?wait=0", n)
			b.Call(token, "POST", label, `{"metadata":{}}`, http.StatusCreated)
			b.Call(token, "PATCH", label, fmt.Sprintf(`{"metadata":{"first":%t}}`, n%2 == 0), http.StatusOK)
		},
	},
}

const (
	machineOfTwoActions = "a machine of two actions"
	// A neighbour first sends so little that its service does at once, and then so much.
	littleWork, muchWork = 20, 200
)

const neighbourMachines = `
state_machines:
  slow:
    states:
      - gate: start
        triggers: [{metadata: first}]
        exit_condition: true
        next: {type: context, path: metadata.first, destinations: [{value: true, state: one}], default: two}
      - {action: one, webhook: "SLOW", next: end}
      - {action: two, webhook: "SLOW", next: end}
      - {gate: end, exit_condition: false}
  healthy:
    states:
      - {action: act, webhook: "HEALTHY", next: end}
      - {gate: end, exit_condition: false}
`

// healthy is a client with a subscription, a job type and a machine, whose services answer at once.
type healthy struct {
	b       *bustest.Bus
	token   string
	labels  atomic.Int64             // that were made
	arrived map[string]chan struct{} // requests to its services, by path
}

func newHealthy(t *testing.T, b *bustest.Bus) (h *healthy, webhook string) {
	h = &healthy{b: b, token: b.AddClient("healthy"), arrived: map[string]chan struct{}{}}
	for _, path := range []string{"/events", "/jobs", "/labels"} {
		h.arrived[path] = make(chan struct{}, muchWork)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"succeeded"}`)
		h.arrived[r.URL.Path] <- struct{}{}
	}))
	t.Cleanup(server.Close)
	b.Call(h.token, "POST", "/subscription", fmt.Sprintf(`{"topics":["widgets"],"callback":%q,"timeout":0,"max":1}`, server.URL+"/events"), http.StatusNoContent)
	b.Call(h.token, "POST", "/v2/job-types",
		fmt.Sprintf(`{"name":"healthy","delivery_strategy":"at_least_once","attempts":1,"concurrency":10,"url":%q}`, server.URL+"/jobs"), http.StatusCreated)
	return h, server.URL + "/labels"
}

// latencies sends count events, jobs and labels, one after another of each, and returns how long
// they took to arrive: the median and the 99th percentile, by path.
func (h *healthy) latencies(t *testing.T, count int) (median, p99 map[string]time.Duration) {
	sends := map[string]func(){
		"/events": func() { h.b.Publish(h.token, "widgets", 1) },
		"/jobs":   func() { h.b.Call(h.token, "PUT", "/v1/jobs/healthy/random_id", `{"data":1}`, http.StatusAccepted) },
		"/labels": func() {
			h.b.Call(h.token, "POST", fmt.Sprintf("/state-machines/healthy/labels/%d?wait=0", h.labels.Add(1)), `{"metadata":{}}`, http.StatusCreated)
		},
	}
	median, p99 = map[string]time.Duration{}, map[string]time.Duration{}
	var mu sync.Mutex
	var kinds sync.WaitGroup
	for path, send := range sends {
		kinds.Go(func() {
			var all []time.Duration
			for range count {
				all = append(all, rdbtest.Took(func() {
					send()
					select {
					case <-h.arrived[path]:
					case <-time.After(bustest.WaitTimeout):
						assert.Fail(t, "it does not come", path)
					}
				}))
			}
			slices.Sort(all)
			mu.Lock()
			defer mu.Unlock()
			median[path], p99[path] = all[count/2], all[count*99/100]
		})
	}
	kinds.Wait()
	return median, p99
}

// TestSlowNeighboursLeaveThreads has services that hold their requests, each kind alone and all
// together, while others' events, jobs and labels go on.
func TestSlowNeighboursLeaveThreads(t *testing.T) {
	rdbtest.OneRedisOnly(t, "it measures threads of a worker, which take as long wherever the bus is")
	kinds := slices.Sorted(maps.Keys(neighbours))
	cases := map[string][]string{"none": {}, "all": kinds}
	if !rdbtest.RaceDetector { // all of them meet in the one with all
		for _, kind := range kinds {
			cases[kind] = []string{kind}
		}
	}
	for name, slow := range cases {
		t.Run(name, func(t *testing.T) {
			b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) {
				c.WorkerThreads, c.JobThreads, c.MachineThreads, c.Timeout = 32, 32, 32, bustest.WaitTimeout
			})
			h, webhook := newHealthy(t, b)
			services := map[string]*slowService{}
			for _, kind := range kinds {
				services[kind] = newSlowService(t)
			}
			b.Call(bustest.RootKey, "PUT", "/state-machines",
				strings.NewReplacer("HEALTHY", webhook, "SLOW", services[machineOfTwoActions].url).Replace(neighbourMachines), http.StatusOK)
			h.latencies(t, littleWork) // connections are made, scripts loaded

			token := b.AddClient("neighbour")
			for _, kind := range slow {
				neighbours[kind].begin(b, token, services[kind].url)
				for n := range littleWork {
					neighbours[kind].send(b, token, n)
				}
			}
			for _, kind := range slow {
				services[kind].wait(t, littleWork)
				services[kind].slow.Store(true)
				for n := range muchWork {
					neighbours[kind].send(b, token, littleWork+n)
				}
			}
			for _, kind := range slow {
				require.Eventually(t, func() bool { return services[kind].asked.Load() > littleWork+8 }, bustest.WaitTimeout, time.Millisecond)
			}
			// Without shares nothing comes at all; on a quiet host it is some 10 ms.
			rdbtest.Promptly(t, 2*time.Second, func() time.Duration {
				median, p99 := h.latencies(t, 100)
				t.Logf("median %v, p99 %v", median, p99)
				return slices.Max(slices.Collect(maps.Values(p99)))
			})
			for _, kind := range slow {
				assert.EqualValues(t, littleWork, services[kind].served.Load(), "it was slow all the time")
				t.Logf("%s holds %d threads of 32", kind, services[kind].asked.Load()-littleWork)
				services[kind].heal()
			}
			for _, kind := range slow {
				services[kind].wait(t, littleWork+muchWork)
			}
		})
	}
}
