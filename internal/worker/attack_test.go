package worker_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstest"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/worker"
)

// The attack has eight threads, and entries for eight times as many requests that do not end.
const attackThreads, attackEntries = 8, 64

// attackCase is a kind of entries, and how to add some. The attackers' entries are put first.
type attackCase struct {
	queue  *queue.Queue
	name   bus.Queue
	kind   bus.JobName
	attack func(n int)
	others func()
	// slow is whether an entry is an attacker's; done is the result of an entry whose request has
	// ended.
	slow func(p queue.Payload) bool
	done func(p queue.Payload) queue.Result
}

// TestSlowRequestsLeaveThreadsToOthers lets the requests of attackers hang, and requires that other
// owners are served: before the pool knows which owners are slow, and also later, when attackers
// that have been answered hang again.
func TestSlowRequestsLeaveThreadsToOthers(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, server *rdbtest.Server) attackCase{
		"deliveries": deliveriesUnderAttack, "jobs": jobsUnderAttack, "labels": labelsUnderAttack,
	} {
		t.Run(name, func(t *testing.T) {
			rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) { underAttack(t, prepare(t, server)) })
		})
	}
}

func underAttack(t *testing.T, c attackCase) {
	var hanging atomic.Int64
	answer, served := make(chan bool), make(chan bool, 100)
	handler := func(_ context.Context, task *queue.Task) queue.Result {
		if c.slow(task.Payload) {
			hanging.Add(1)
			<-answer
			hanging.Add(-1)
		}
		return c.done(task.Payload)
	}
	var skipped atomic.Int64 // how far the test moves the clock forward
	clock := func() time.Time { return time.Now().Add(time.Duration(skipped.Load())) }
	_, stop := startAt(t, []*queue.Queue{c.queue}, worker.Config{
		Pools: []worker.Pool{{
			Queues: []*queue.Queue{c.queue}, Name: c.name, Kind: c.kind, Threads: attackThreads,
			ScheduleInterval: 5 * time.Millisecond,
			Completed: func(task *queue.Task, _ queue.Result) {
				if !c.slow(task.Payload) {
					served <- true // not earlier, or it takes as long as the test's clock skips meanwhile
				}
			},
		}},
		AcquireTimeout: 100 * time.Millisecond, RetryAfter: time.Millisecond,
		Handlers: map[bus.JobName]worker.Handler{c.kind: handler},
	}, clock)
	defer stop()
	defer close(answer)

	hang := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return hanging.Load() == n }, soon, time.Millisecond)
	}
	c.attack(1)
	hang(1)
	answer <- true // as far as is known, its requests succeed
	hang(0)
	c.attack(attackEntries)
	hang(attackThreads - 1)
	c.others()
	next(t, served)

	skipped.Add(int64(2 * time.Second)) // they are slow by now
	for range attackThreads - 1 {
		answer <- true
	}
	hang(attackThreads - attackThreads/4)
	c.others()
	next(t, served)
	assert.LessOrEqual(t, hanging.Load(), int64(attackThreads-attackThreads/4))
}

func deliveriesUnderAttack(t *testing.T, server *rdbtest.Server) attackCase {
	b := storetest.NewBusInFlight(t, server, attackEntries)
	b.AddSubscriber(storetest.Alice, 0, 1, "widgets")
	b.AddSubscriber(storetest.Bob, 0, 1, "others")
	published := 0
	return attackCase{
		queue: storetest.NewQueue(b.Store, attackEntries), name: bus.QueueMain, kind: bus.JobBatch,
		attack: func(n int) {
			b.PublishEvents("widgets", 1, n, 0)
		},
		others: func() {
			published++
			b.PublishEvents("others", published, published, 0)
		},
		slow: func(p queue.Payload) bool { return p.Owners()[0] == queue.Owner(storetest.Alice) },
		done: func(queue.Payload) queue.Result { return queue.Result{Detail: store.DeliveryResult{Delivered: 1}} },
	}
}

func jobsUnderAttack(t *testing.T, server *rdbtest.Server) attackCase {
	s := jobstest.NewShop(t, server, time.Now())
	many := func(j *jobs.Type) { j.Concurrency = attackEntries }
	s.Add("slow", many)
	s.Add("quick", many)
	return attackCase{
		queue: s.Queue(), name: bus.QueueJobs, kind: bus.JobJob,
		attack: func(n int) {
			for range n {
				s.Put("slow")
			}
		},
		others: func() { s.Put("quick") },
		slow:   func(p queue.Payload) bool { return p.(*jobs.Run).Type == "slow" },
		done: func(queue.Payload) queue.Result {
			return queue.Result{Detail: jobs.Outcome{Result: jobs.RunSucceeded, Standing: bus.Proven}}
		},
	}
}

func labelsUnderAttack(t *testing.T, server *rdbtest.Server) attackCase {
	f := machinestest.New(t, server)
	f.Apply(`
state_machines:
  slow:
    states: [{action: a, webhook: "https://a.example/", next: b}, {gate: b, exit_condition: false}]
  quick:
    states: [{action: a, webhook: "https://b.example/", next: b}, {gate: b, exit_condition: false}]
`)
	f.Work()
	added := 0
	add := func(machine machines.Name) {
		added++
		_, err := f.Add(t.Context(), machine, machines.LabelName(strconv.Itoa(added)), machines.Object{}, time.Now())
		require.NoError(t, err)
	}
	return attackCase{
		queue: f.Queue(), name: bus.QueueMachines, kind: bus.JobLabel,
		attack: func(n int) {
			for range n {
				add("slow")
			}
		},
		others: func() { add("quick") },
		slow:   func(p queue.Payload) bool { return strings.HasPrefix(string(p.Owners()[0]), "slow/") },
		done: func(p queue.Payload) queue.Result {
			proven := bus.Proven
			return queue.Result{Detail: engine.Result{Outcome: engine.Idle, Standing: &proven}}
		},
	}
}
