package chaos

import (
	"maps"
	"strconv"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/test/bustest"
)

// inject begins and ends all faults, one after the other, at their times.
func (c *chaos) inject(planned []*fault) {
	start := time.Now()
	for _, s := range steps(planned) {
		time.Sleep(time.Until(start.Add(s.at)))
		if s.begins {
			c.begin(s.fault)
		} else {
			c.end(s.fault)
		}
		c.requeueJobsOfDeadWorkers()
	}
	time.Sleep(time.Until(start.Add(*chaosDuration)))
}

func (c *chaos) begin(f *fault) {
	c.faults = append(c.faults, f)
	f.began = time.Now()
	daemon, proxy := c.daemons[f.victim], c.proxies[f.victim]
	switch {
	case daemon != nil:
		daemon.present().Kill()
		daemon.up = false
		f.died = time.Now()
		if daemon.program == "worker" {
			c.lastKill = f.died
		}
	case proxy != nil:
		proxy.disturb(c.t, f.kind)
	case f.kind == killed:
		c.redis.Kill(c.t)
		c.redisUp = false
	case f.kind == frozen:
		c.redis.Freeze(c.t)
		c.redisUp = false
	}
}

func (c *chaos) end(f *fault) {
	daemon, proxy := c.daemons[f.victim], c.proxies[f.victim]
	switch {
	case daemon != nil:
		daemon.start(c.t)
	case proxy != nil:
		proxy.heal(c.t)
	case f.kind == killed:
		c.redis.Restart(c.t)
		c.redisReturned()
	case f.kind == frozen:
		c.redis.Thaw(c.t)
		c.redisReturned()
	}
	f.ended = time.Now()
}

func (c *chaos) redisReturned() {
	c.redisUp = true
	c.returns = append(c.returns, time.Now())
}

// requeueJobsOfDeadWorkers does what the workers do after 30 s, so that subscribers need not wait
// for that most of the time. It must not take a living worker for dead, so it waits until all
// threads of the running workers, with their spares, have been active since the last kill. All
// others are dead.
func (c *chaos) requeueJobsOfDeadWorkers() {
	if c.lastKill.IsZero() || !c.redisUp {
		return
	}
	for _, name := range workers {
		if !c.daemons[name].up {
			return
		}
	}
	ctx, silent := c.t.Context(), map[string]bool{} // by thread: its spares differ in the last character
	for worker, text := range c.redis.Raw.HGetAll(ctx, "workers").Val() {
		ms, err := strconv.ParseInt(text, 10, 64)
		thread := worker[:len(worker)-1]
		silent[thread] = silent[thread] || err != nil || ms <= c.lastKill.UnixMilli()
	}
	maps.DeleteFunc(silent, func(_ string, is bool) bool { return is })
	if len(silent) < len(workers)*(3*chaosThreads+1) { // and one thread each for the housekeeping
		return
	}
	if _, err := storetest.NewQueue(c.store, 1).Scrub(ctx, c.lastKill, bus.Queues[:]...); err == nil {
		c.lastKill = time.Time{}
	}
}

// recoveryTimeout is how soon the bus must be back after Redis, when nothing else is wrong.
const recoveryTimeout = 2 * time.Second

// recoverFromAnOutage kills Redis while there is no other fault, and requires that the bus recovers
// in time.
func (c *chaos) recoverFromAnOutage() {
	backSince := func(moment time.Time) func() bool {
		return func() bool {
			_, _, ok := c.ledger.recovery(moment)
			return ok
		}
	}
	require.Eventually(c.t, backSince(time.Now()), bustest.WaitTimeout, 10*time.Millisecond, "the bus does not come back after the faults")
	rdbtest.Promptly(c.t, recoveryTimeout, func() time.Duration {
		outage := &fault{stream: "redis", kind: killed, victim: "redis"}
		c.begin(outage)
		time.Sleep(time.Second) // the outage
		c.end(outage)
		back := c.returns[len(c.returns)-1]
		require.Eventually(c.t, backSince(back), bustest.WaitTimeout, 10*time.Millisecond, "the bus does not come back after an outage of Redis")
		publish, delivery, _ := c.ledger.recovery(back)
		return max(publish, delivery)
	})
}

// drain waits until everything is delivered, and stops the daemons. In a short run the jobs of
// killed workers are requeued by the test, while no worker runs that could be taken for dead.
func (c *chaos) drain(long bool) {
	living := workers
	if !long {
		c.stop(workers)
		storetest.RequireSound(c.t, c.store)
		_, err := storetest.NewQueue(c.store, 1).Scrub(c.t.Context(), time.Now().Add(time.Second), bus.Queues[:]...)
		require.NoError(c.t, err)
		living = workers[:1]
		c.daemons[workers[0]].start(c.t)
	}
	const scrubTimeout = time.Minute // a worker is dead after 30 s, and the next scrub finds it
	require.Eventually(c.t, func() bool {
		if c.replaysRun() || c.openJobs() != 0 || c.movingLabels() != 0 {
			return false
		}
		n, err := c.redis.Raw.Exists(c.t.Context(), "jobs:index:main").Result()
		return err == nil && n == 0
	}, scrubTimeout+bustest.WaitTimeout, 5*time.Millisecond, "the bus does not come to rest")
	c.stop(webs)
	c.stop(living)
}

func (c *chaos) stop(names []string) {
	for _, name := range names {
		present := c.daemons[name].present()
		require.NoError(c.t, present.Process.Signal(syscall.SIGTERM))
		require.NoError(c.t, present.Wait(), name)
	}
}
