package chaos

import (
	"time"

	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// place is where the bus has its data: one Redis, or a cluster.
type place interface {
	// open opens the bus's data.
	open(c *chaos) *store.Bus
	// link starts proxies for a daemon, and returns the URL by way of them.
	link(c *chaos, daemon string) (url string)
	// variables are settings of all daemons.
	variables() []string
	// streams are the streams of faults of Redis, and of the links to it.
	streams() []stream
	// begin begins a fault, unless that cannot be now.
	begin(c *chaos, f *fault) (begun bool)
	end(c *chaos, f *fault)
	// catchUp has kinds of faults of Redis come for which there was no time.
	catchUp(c *chaos)
	// recover has Redis fail while nothing else does, and returns how long the bus then took.
	recover(c *chaos) time.Duration
	// watch notes when Redis is not as it should be, until the function that it returns is called.
	watch() (stop func() faults)
}

// redisVictim is the victim of faults of Redis itself.
const redisVictim = "redis"

// oneRedis is one Redis that keeps all data that it has acknowledged.
type oneRedis struct{ server *rdbtest.Server }

func (p *oneRedis) open(c *chaos) *store.Bus { return store.NewBus(storetest.Open(c.t, p.server)) }

func (p *oneRedis) link(c *chaos, daemon string) string {
	return c.addProxy(proxyName(daemon, redisVictim), p.server.URL)
}

func (*oneRedis) variables() []string { return nil }

func (*oneRedis) streams() []stream {
	return []stream{
		{"redis", []faultKind{killed, frozen}, []string{redisVictim}, span{1500, 5000}, span{0, 1500}},
		linkStream("web > redis", webs, span{50, 600}, span{100, 1200}),
		linkStream("worker > redis", workers, span{300, 2000}, span{100, 800}),
	}
}

// linkStream are the faults of the links of daemons to Redis: to all of it, or to some of it.
func linkStream(name string, daemons []string, pause, lasting span, some ...string) stream {
	s := stream{name: name, kinds: proxyFaults, pause: pause, lasting: lasting}
	for _, daemon := range daemons {
		for _, to := range append([]string{redisVictim}, some...) {
			s.victims = append(s.victims, proxyName(daemon, to))
		}
	}
	return s
}

func (p *oneRedis) begin(c *chaos, f *fault) bool {
	if f.kind == killed {
		p.server.Kill(c.t)
	} else {
		p.server.Freeze(c.t)
	}
	return true
}

func (p *oneRedis) end(c *chaos, f *fault) {
	if f.kind == killed {
		p.server.Restart(c.t)
	} else {
		p.server.Thaw(c.t)
	}
	c.outages = append(c.outages, outage{since: time.Now()})
}

func (*oneRedis) catchUp(*chaos) {}

func (*oneRedis) recover(c *chaos) time.Duration {
	f := &fault{stream: "redis", kind: killed, victim: redisVictim}
	c.begin(f)
	time.Sleep(time.Second) // the outage
	c.end(f)
	return c.waitForRecovery(c.outages[len(c.outages)-1])
}

func (*oneRedis) watch() (stop func() faults) { return func() faults { return nil } }
