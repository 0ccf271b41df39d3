package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

var (
	chaosDuration = flag.Duration("chaos.duration", 8*time.Second, "how long TestChaos keeps up the load and the faults")
	chaosLabels   = flag.Int("chaos.labels", 300, "how many labels TestChaos moves through their states meanwhile")
	chaosSeed     = flag.Uint64("chaos.seed", 0, "the seed of TestChaos; 0 takes one by chance")
)

// longRun is how long a run lasts at least that must have had every kind of fault. In a shorter one
// the test requeues the jobs of dead workers itself, at the end.
const longRun = 30 * time.Second

// Settings of the workers.
const (
	chaosTimeout = 2 * time.Second
	chaosThreads = 8 // for deliveries, and as many for jobs and for labels
)

// TestChaos is the fault test: it publishes and subscribes while everything fails, and then counts.
// The seed determines which faults come when, what publishers send, and when subscribers misbehave;
// it does not determine how the processes then interleave.
func TestMain(m *testing.M) { bustest.Main(m, proxyGoroutines...) }

func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(rand.Uint32())
	}
	t.Logf("seed %d, %v of load, %d labels", seed, *chaosDuration, *chaosLabels)
	long, outages := *chaosDuration >= longRun, 1
	if long {
		outages = 3
	}
	c := startChaos(t, seed)
	c.inject(plan(seed, *chaosDuration))
	for range outages {
		c.recoverFromAnOutage()
	}
	c.stopTraffic()
	c.drain(long)
	c.faults = append(c.faults, c.stopWatch()...)
	c.report(long)
}

// chaos is a bus of several processes, its publishers and subscribers, and the proxies between
// them.
type chaos struct {
	t       *testing.T
	redis   *rdbtest.Server
	redisUp bool
	store   *store.Store
	// meanwhile is for what is done while Redis may be away: after that, its client may wait for a
	// second before it connects again.
	meanwhile *store.Store
	proxies   map[string]*proxy
	daemons   map[string]*chaoticDaemon
	ledger    *ledger
	service   *jobService
	labels    *labelService
	// stopTraffic lets publishers finish what they have begun, and subscribers behave from then on.
	stopTraffic func()
	// stopWatch ends the watch for stalls, and returns them.
	stopWatch func() faults

	faults faults
	// returns are when Redis could be reached again.
	returns []time.Time
	// lastKill is when a worker was killed last, zero once the jobs of the dead have been put back.
	lastKill time.Time
}

// chaoticDaemon is a daemon that is started again after it was killed.
type chaoticDaemon struct {
	program   string
	variables []string
	// runs are its processes, the last one the present.
	runs []*bustest.Process
	up   bool
}

func (d *chaoticDaemon) start(t *testing.T) {
	d.runs = append(d.runs, bustest.StartProcess(t, d.program, d.variables...))
	d.up = true
}

func (d *chaoticDaemon) present() *bustest.Process { return d.runs[len(d.runs)-1] }

func startChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	redis := rdbtest.Real(t, "--appendonly", "yes", "--appendfsync", "always")
	c := &chaos{
		t: t, redis: redis, redisUp: true, store: storetest.Open(t, redis), meanwhile: storetest.Open(t, redis), ledger: newLedger(),
		proxies: map[string]*proxy{}, daemons: map[string]*chaoticDaemon{}, stopWatch: watch(),
	}
	t.Cleanup(func() { c.stopWatch() })
	var apis []string
	for _, name := range webs {
		address := rdbtest.FreeAddress(t)
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		c.startDaemon(name, "PORT="+port)
		apis = append(apis, c.addProxy(proxyName("publishers", name), "http://"+address))
	}
	for _, name := range workers {
		c.startDaemon(name, fmt.Sprintf("ROUTEMASTER_WORKER_THREADS=%d", chaosThreads), fmt.Sprintf("ROUTEMASTER_JOB_THREADS=%d", chaosThreads),
			fmt.Sprintf("ROUTEMASTER_MACHINE_THREADS=%d", chaosThreads),
			fmt.Sprintf("ROUTEMASTER_TIMEOUT=%d", chaosTimeout/time.Second), "ROUTEMASTER_ACQUIRE_TIMEOUT=1", "MAX_BACKOFF_MS=500")
	}
	c.startTraffic(seed, apis)
	return c
}

// addProxy starts a proxy to a URL, and returns the URL by way of the proxy.
func (c *chaos) addProxy(name, to string) (via string) {
	c.proxies[name], via = startProxy(c.t, name, to)
	return via
}

func (c *chaos) startDaemon(name string, variables ...string) {
	program, _, _ := strings.Cut(name, " ")
	url := c.addProxy(proxyName(name, "redis"), c.redis.URL)
	c.daemons[name] = &chaoticDaemon{program: program, variables: append(variables, "ROUTEMASTER_REDIS_URL="+url)}
	c.daemons[name].start(c.t)
}

func (c *chaos) addClient(token, name string) {
	require.NoError(c.t, c.store.PutToken(c.t.Context(), bus.Token(token), bus.ClientName(name)))
}

func (c *chaos) startTraffic(seed uint64, apis []string) {
	well, stop := make(chan struct{}), make(chan struct{})
	b := bustest.Connect(c.t, apis[0])
	for number, s := range subscribers {
		sub := &chaoticSubscriber{
			Subscriber: bustest.Subscriber{Token: s.name + "--1"}, number: number, ledger: c.ledger, well: well,
			random: rand.New(rand.NewPCG(seed, uint64(200+number))),
		}
		c.addClient(sub.Token, s.name)
		sub.URL = c.addProxy(proxyName("workers", s.name), serveTLS(c.t, sub)+"/")
		sub.Subscribe(b, s.timeout, s.max, s.topics...)
		if s.options != "" {
			b.Call(sub.Token, "PATCH", "/subscriber", s.options, http.StatusNoContent)
		}
	}
	c.keepHistory()
	ctx, cancel := context.WithCancel(context.Background())
	var publishing sync.WaitGroup
	for number, p := range publishers {
		c.addClient(p.token, p.client)
		publisher := &chaoticPublisher{
			number: number, apis: apis, client: bustest.NewClient(c.t), ledger: c.ledger,
			random: rand.New(rand.NewPCG(seed, uint64(100+number))),
		}
		publisher.client.Timeout = publishTimeout
		publishing.Go(func() { publisher.run(ctx, stop) })
	}
	for _, enqueue := range c.startJobs(seed, apis, stop, well) {
		publishing.Go(func() { enqueue(ctx) })
	}
	for _, move := range c.startLabels(seed, apis, stop, well) {
		publishing.Go(func() { move(ctx) })
	}
	publishing.Go(func() { nowAndThen(stop, rand.New(rand.NewPCG(seed, 300)), maxPause, c.pause) })
	publishing.Go(func() { nowAndThen(stop, rand.New(rand.NewPCG(seed, 301)), laneChanges, c.changeLanes) })
	publishing.Go(func() { nowAndThen(stop, rand.New(rand.NewPCG(seed, 302)), replayInterval, c.startReplay) })
	c.stopTraffic = sync.OnceFunc(func() {
		close(stop)
		publishing.Wait()
		close(well)
	})
	c.t.Cleanup(func() {
		cancel() // when the test has failed, a publish may never be acknowledged
		c.stopTraffic()
	})
}

// maxPause is how long the paused subscriber is paused at most: less than the bus has at the end.
const maxPause = 800 * time.Millisecond

// nowAndThen does something until stop is closed: on average once in a time, in which it must be
// done. Redis may be away: then it is done once less.
func nowAndThen(stop <-chan struct{}, random *rand.Rand, every time.Duration, do func(context.Context, *rand.Rand)) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.Int64N(int64(2 * every)))):
		}
		ctx, cancel := context.WithTimeout(context.Background(), every)
		do(ctx, random)
		cancel()
	}
}

// pause pauses a subscriber. Pauses end by themselves.
func (c *chaos) pause(ctx context.Context, random *rand.Rand) {
	_ = c.meanwhile.Pause(ctx, paused+"--1", time.Now().Add(time.Duration(random.Int64N(int64(maxPause)))))
}

// laneChanges is how often lanes change.
const laneChanges = 500 * time.Millisecond

// changeLanes gives one of the subscribers that have several lanes another number of them. It is
// refused while too many changes are under way.
func (c *chaos) changeLanes(ctx context.Context, random *rand.Rand) {
	lanes := map[string]string{"lanes": strconv.Itoa(2 + random.IntN(4))}
	if random.IntN(5) == 0 {
		lanes["lanes"] = "" // one, the default
	}
	token := bus.Token([]string{laned, strictlyLaned}[random.IntN(2)] + "--1")
	_ = c.meanwhile.PatchSubscriber(ctx, token, bus.Subscription{Options: lanes}, time.Now())
}
