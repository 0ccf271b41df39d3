package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/test/bustest"
)

var (
	chaosDuration = flag.Duration("chaos.duration", shortRun, "how long TestChaos keeps up the load and the faults")
	chaosLabels   = flag.Int("chaos.labels", 300, "how many labels TestChaos moves through their states meanwhile")
	chaosSeed     = flag.Uint64("chaos.seed", 1, "the seed of TestChaos; 0 takes one by chance")
)

// shortRun is how long a run lasts by default: half as long with the race detector.
var shortRun = map[bool]time.Duration{false: 8 * time.Second, true: 4 * time.Second}[rdbtest.RaceDetector]

// longRun is how long a run lasts at least that must have had every kind of fault. In a shorter one
// the test requeues the jobs of dead workers itself, at the end.
const longRun = 30 * time.Second

// Settings of the workers.
const (
	chaosTimeout = 2 * time.Second
	chaosThreads = 8 // for deliveries, and as many for jobs and for labels
)

func TestMain(m *testing.M) { bustest.Main(m, proxyGoroutines...) }

// TestChaos is the fault test: it publishes and subscribes while everything fails, and then counts.
// The seed determines which faults come when, the events of publishers, and when subscribers
// misbehave; it does not determine how the processes then interleave.
func TestChaos(t *testing.T) {
	testChaos(t, func(c *chaos, _ uint64) place {
		server := rdbtest.Real(c.t, "--appendonly", "yes", "--appendfsync", "always")
		server.URL = rdbtest.Hurried(server.URL)
		return &oneRedis{server}
	})
}

// TestChaosOnACluster is [TestChaos] on a Redis Cluster, whose masters fail over, and whose
// partitions move.
func TestChaosOnACluster(t *testing.T) {
	if listener, err := net.Listen("tcp", daemonHost(1)+":0"); err != nil {
		t.Skipf("this system has but one loopback address: %v", err)
	} else {
		_ = listener.Close()
	}
	testChaos(t, func(c *chaos, seed uint64) place { return newCluster(c, seed) })
}

func testChaos(t *testing.T, newPlace func(c *chaos, seed uint64) place) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(rand.Uint32())
	}
	t.Logf("seed %d, %v of load, %d labels", seed, *chaosDuration, *chaosLabels)
	long, outages := *chaosDuration >= longRun, 1
	if long {
		outages = 3
	}
	c := &chaos{
		t: t, ledger: newLedger(), proxies: map[string][]*proxy{}, daemons: map[string]*chaoticDaemon{}, redisUp: true,
	}
	c.start(newPlace(c, seed), seed)
	c.inject(plan(seed, *chaosDuration, c.streams))
	if long {
		c.place.catchUp(c)
	}
	for range outages {
		c.recoverFromAnOutage()
	}
	c.keepUpLoad()
	c.stopTraffic()
	c.drain(long)
	c.stopWatch()
	c.report(long)
}

// chaos is a bus of several processes, its publishers and subscribers, and the proxies between
// them.
type chaos struct {
	t     *testing.T
	place place
	// streams are the streams of all faults.
	streams []stream
	// redisUp is whether no fault happens to Redis itself.
	redisUp bool
	stores  *store.Bus
	// meanwhile is a bus to use while Redis may be down: afterwards its client may wait for a second
	// before it connects again.
	meanwhile *store.Bus
	// proxies are the proxies of each link, by its name.
	proxies map[string][]*proxy
	daemons map[string]*chaoticDaemon
	ledger  *ledger
	service *jobService
	labels  *labelService
	// stopTraffic lets publishers finish what they have begun, and subscribers behave from then on.
	stopTraffic func()
	// stopWatch ends the watches for unplanned faults.
	stopWatch func()

	faults  faults
	outages []outage
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
	// after is the fault that ends as soon as the present one is up, if it was not seen to be.
	after *fault
}

// begin begins to start a process. That needs Redis on a cluster, and the link to it may be cut.
func (d *chaoticDaemon) begin(t *testing.T) {
	d.runs = append(d.runs, bustest.BeginProcess(t, d.program, d.variables...))
	d.up = true
}

func (d *chaoticDaemon) start(t *testing.T) {
	d.begin(t)
	d.present().AwaitStart(t)
}

func (d *chaoticDaemon) present() *bustest.Process { return d.runs[len(d.runs)-1] }

// start starts the daemons on a place, and the traffic.
func (c *chaos) start(p place, seed uint64) {
	c.place, c.streams = p, append(p.streams(), streams...)
	c.stores, c.meanwhile = p.open(c), p.open(c)
	stopStalls, stopPlace := watch(), p.watch()
	c.stopWatch = sync.OnceFunc(func() { c.faults = slices.Concat(c.faults, stopStalls(), stopPlace()) })
	c.t.Cleanup(c.stopWatch)
	var apis []string
	for _, name := range webs {
		address := rdbtest.FreeAddress(c.t)
		_, port, err := net.SplitHostPort(address)
		require.NoError(c.t, err)
		c.startDaemon(name, "PORT="+port)
		apis = append(apis, c.addProxy(proxyName("publishers", name), "http://"+address))
	}
	for _, name := range workers {
		c.startDaemon(name, fmt.Sprintf("ROUTEMASTER_WORKER_THREADS=%d", chaosThreads), fmt.Sprintf("ROUTEMASTER_JOB_THREADS=%d", chaosThreads),
			fmt.Sprintf("ROUTEMASTER_MACHINE_THREADS=%d", chaosThreads),
			fmt.Sprintf("ROUTEMASTER_TIMEOUT=%d", chaosTimeout/time.Second), "ROUTEMASTER_ACQUIRE_TIMEOUT=1", "MAX_BACKOFF_MS=500")
	}
	c.startTraffic(seed, apis)
}

// addProxy starts a proxy to a URL, and returns the URL by way of the proxy.
func (c *chaos) addProxy(name, to string) (via string) {
	address, err := url.Parse(to)
	require.NoError(c.t, err)
	p := startProxy(c.t, name, rdbtest.FreeAddress(c.t), address.Host)
	c.proxies[name] = []*proxy{p}
	address.Host = p.Listen
	return address.String()
}

func (c *chaos) startDaemon(name string, variables ...string) {
	program, _, _ := strings.Cut(name, " ")
	variables = append(append(variables, "ROUTEMASTER_REDIS_URL="+c.place.link(c, name)), c.place.variables()...)
	c.daemons[name] = &chaoticDaemon{program: program, variables: variables}
	c.daemons[name].start(c.t)
}

func (c *chaos) addClient(token, name string) {
	require.NoError(c.t, c.stores.PutToken(c.t.Context(), bus.Token(token), bus.ClientName(name)))
}

func (c *chaos) startTraffic(seed uint64, apis []string) {
	well, stop := make(chan struct{}), make(chan struct{})
	b := bustest.Connect(c.t, apis[0])
	for number, s := range subscribers {
		sub := &chaoticSubscriber{
			Subscriber: bustest.Subscriber{Token: string(tokenOf(s.name))}, number: number, ledger: c.ledger, well: well,
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
	token := tokenOf(paused)
	_ = c.meanwhile.Of(token).Pause(ctx, token, time.Now().Add(time.Duration(random.Int64N(int64(maxPause)))))
}

// laneChanges is how often lanes change. In between events come in order.
const laneChanges = 3 * time.Second

// changeLanes gives one of the subscribers that have several lanes another number of them.
func (c *chaos) changeLanes(ctx context.Context, random *rand.Rand) {
	lanes := map[string]string{"lanes": strconv.Itoa(2 + random.IntN(4))}
	if random.IntN(5) == 0 {
		lanes["lanes"] = "" // one, the default
	}
	name, begun := []string{laned, strictlyLaned}[random.IntN(2)], time.Now()
	err := c.meanwhile.PatchSubscriber(ctx, tokenOf(name), bus.Subscription{Options: lanes}, begun)
	ended := time.Now()
	if err != nil { // it may be done all the same, and later
		ended = ended.Add(5 * time.Second)
	}
	c.ledger.changeLanes(name, begun, ended)
}
