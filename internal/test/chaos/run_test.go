package chaos

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
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
		} else if !s.fault.began.IsZero() {
			c.end(s.fault)
		}
		c.noteStarts()
		c.requeueJobsOfDeadWorkers()
	}
	time.Sleep(time.Until(start.Add(*chaosDuration)))
	for _, daemon := range c.daemons { // their links are whole now
		daemon.present().AwaitStart(c.t)
	}
	c.noteStarts()
}

// noteStarts notes that faults have ended, because daemons are up again.
func (c *chaos) noteStarts() {
	for _, daemon := range c.daemons {
		if daemon.after != nil && daemon.present().IsUp(c.t) {
			daemon.after.ended, daemon.after = time.Now(), nil
		}
	}
}

func (c *chaos) begin(f *fault) {
	began := time.Now()
	daemon, link := c.daemons[f.victim], c.proxies[f.victim]
	switch {
	case daemon != nil:
		daemon.present().Kill()
		daemon.up = false
		if daemon.after != nil {
			daemon.after.ended, daemon.after = began, nil
		}
		f.died = time.Now()
		if daemon.program == "worker" {
			c.lastKill = f.died
		}
	case link != nil:
		for _, proxy := range link {
			proxy.disturb(c.t, f.kind)
		}
	case !c.place.begin(c, f):
		return
	default:
		c.redisUp = false
	}
	f.began = began
	c.faults = append(c.faults, f)
}

func (c *chaos) end(f *fault) {
	daemon, link := c.daemons[f.victim], c.proxies[f.victim]
	switch {
	case daemon != nil:
		daemon.begin(c.t)
		daemon.after = f
		return
	case link != nil:
		for _, proxy := range link {
			proxy.heal(c.t)
		}
	default:
		c.place.end(c, f)
		c.redisUp = true
	}
	f.ended = time.Now()
}

// requeueJobsOfDeadWorkers does the requeueing that the workers do after 30 s, so that subscribers
// need not wait for that most of the time. It must not take a living worker for dead, so it waits
// until all threads of the running workers, with their spares, have been active since the last
// kill. All others are dead.
func (c *chaos) requeueJobsOfDeadWorkers() {
	if c.lastKill.IsZero() || !c.redisUp {
		return
	}
	for _, name := range workers {
		if !c.daemons[name].up {
			return
		}
	}
	if len(c.stores.All()) > 1 && time.Since(c.lastKill) < beatTimeout {
		return // threads that have taken the place of others are more than are counted
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), scrubTimeout)
	defer cancel()
	for _, st := range c.stores.All() {
		if !c.areActive(ctx, st.Partition()) || c.scrub(ctx, st, c.lastKill) != nil {
			return
		}
	}
	c.lastKill = time.Time{}
}

// beatTimeout is how soon a running worker has said again that its threads live: it does every 5 s.
const beatTimeout = 6 * time.Second

// scrubTimeout is how long the other faults wait while the jobs of dead workers are requeued.
const scrubTimeout = time.Second

// areActive reports whether all threads of the running workers have said to a partition that they
// live, since the last kill.
func (c *chaos) areActive(ctx context.Context, p *rdb.Partition) bool {
	silent := map[string]bool{} // by thread: its spares differ in the last character
	for worker, text := range p.HGetAll(ctx, p.Namespace()+"workers").Val() {
		ms, err := strconv.ParseInt(text, 10, 64)
		thread := worker[:len(worker)-1]
		silent[thread] = silent[thread] || err != nil || ms <= c.lastKill.UnixMilli()
	}
	maps.DeleteFunc(silent, func(_ string, is bool) bool { return is })
	return len(silent) >= len(workers)*(3*chaosThreads+1) // and one thread each for the housekeeping
}

// scrub requeues the jobs of the workers that have been silent since a time.
func (c *chaos) scrub(ctx context.Context, st *store.Store, since time.Time) error {
	q := storetest.NewQueue(st, 1)
	_, err := q.Scrub(ctx, since, q.Names()...)
	return err
}

// outage is a time at which Redis was not there for a topic, or for all if it is empty.
type outage struct {
	since time.Time
	topic string
	note  string // for the report
}

// recoveryTimeout is how soon the bus must be back after Redis, when nothing else is wrong.
const recoveryTimeout = 2 * time.Second

// recoverFromAnOutage kills Redis while there is no other fault, and requires that the bus recovers
// in time.
func (c *chaos) recoverFromAnOutage() {
	c.waitForRecovery(outage{since: time.Now()})
	rdbtest.Promptly(c.t, recoveryTimeout, func() time.Duration { return c.place.recover(c) })
}

// waitForRecovery waits until something was published and delivered after an outage, and returns
// how long after.
func (c *chaos) waitForRecovery(after outage) (took time.Duration) {
	require.Eventually(c.t, func() bool {
		publish, delivery, ok := c.ledger.recovery(after)
		took = max(publish, delivery)
		return ok
	}, bustest.WaitTimeout, 10*time.Millisecond, "the bus does not come back after an outage of Redis")
	return took
}

// minEventsPerSecond is how many events a run must have acknowledged, else it was no load.
const minEventsPerSecond = 10

// keepUpLoad has the publishers go on until they were load enough: a busy host may be too slow for
// that in the planned time.
func (c *chaos) keepUpLoad() {
	enough := minEventsPerSecond * chaosDuration.Seconds()
	require.Eventually(c.t, func() bool { return float64(c.ledger.acknowledged()) >= enough },
		bustest.WaitTimeout, 10*time.Millisecond, "the publishers do not get %v events acknowledged", enough)
}

// drain waits until everything is delivered, and stops the daemons. In a short run the jobs of
// killed workers are requeued by the test, while no worker runs that could be taken for dead.
func (c *chaos) drain(long bool) {
	living := workers
	if !long {
		c.stop(workers)
		c.requireSound()
		for _, st := range c.stores.All() {
			require.NoError(c.t, c.scrub(c.t.Context(), st, time.Now().Add(time.Second)))
		}
		living = workers[:1]
		c.daemons[workers[0]].start(c.t)
	}
	c.waitForRest()
	c.stop(webs)
	c.stop(living)
}

// waitForRest waits until the bus has done everything, as long as it goes on.
func (c *chaos) waitForRest() {
	const deadTimeout = time.Minute // a worker is dead after 30 s, and the next scrub finds it
	least, reached := int64(math.MaxInt64), time.Now()
	for {
		left, what := c.underWay()
		if left == 0 {
			return
		}
		if left < least {
			least, reached = left, time.Now()
		}
		require.Less(c.t, time.Since(reached), deadTimeout+bustest.WaitTimeout, "the bus does not come to rest: %s", what)
		time.Sleep(50 * time.Millisecond)
	}
}

// underWay is how much work the bus has left, and a description of it.
func (c *chaos) underWay() (left int64, what []string) {
	note := func(n int64, of string, args ...any) {
		if n != 0 {
			left += max(n, 1) // -1 is for a number that could not be found out
			what = append(what, fmt.Sprintf("%d ", n)+fmt.Sprintf(of, args...))
		}
	}
	note(c.runningReplays(), "replays")
	note(c.openJobs(), "jobs")
	note(c.movingLabels(), "labels")
	ctx := c.t.Context()
	for _, st := range c.stores.All() {
		p := st.Partition()
		keys, look := layout.Keys{Namespace: p.Namespace()}, queue.NewLook(p)
		for _, name := range []bus.Queue{bus.QueueMain, bus.QueueRelay} {
			n, err := p.SCard(ctx, keys.JobsIndex(name)).Result()
			if err != nil {
				n = -1
			}
			next, _ := look.Next(ctx, name, 1)
			running, _, _ := look.Running(ctx, name, 1)
			note(n, "entries of %s in partition %s: the next %+v, now %+v", name, p.Name(), next, running)
		}
	}
	return left, what
}

func (c *chaos) stop(names []string) {
	for _, name := range names {
		present := c.daemons[name].present()
		require.NoError(c.t, present.Process.Signal(syscall.SIGTERM))
		require.NoError(c.t, present.Wait(), name)
	}
}
