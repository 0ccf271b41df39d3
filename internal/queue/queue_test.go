package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/layout"
	"routemaster/internal/queue"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

var start = time.UnixMilli(1_700_000_000_000)

func after(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

const (
	ann = bus.WorkerID("ann")
	ben = bus.WorkerID("ben")
)

// depot is a queue of parcels, with helpers for the tests.
type depot struct {
	*queue.Queue
	t      *testing.T
	server *rdbtest.Server
	keys   layout.Keys
}

func newDepot(t *testing.T, server *rdbtest.Server, maxInFlight int) *depot {
	const namespace = "q:"
	q := queue.New(server.Open(t).Partition(namespace), parcels{maxInFlight})
	return &depot{q, t, server, layout.Keys{Namespace: namespace}}
}

// post adds parcels to an address, each with its entry.
func (d *depot) post(address string, ids ...string) {
	d.t.Helper()
	for _, id := range ids {
		require.NoError(d.t, d.server.Raw.HSet(d.t.Context(), "q:parcel:"+id, "address", address).Err())
		added, err := d.Enqueue(d.t.Context(), bus.QueueMain, parcelJob(id))
		require.NoError(d.t, err)
		require.True(d.t, added)
	}
}

func parcelJob(id string) bus.Job { return bus.Job{Name: "parcel", Args: []string{id}} }

// take requires that a worker gets a parcel, or nothing if id is empty.
func (d *depot) take(worker bus.WorkerID, id string) *queue.Task {
	d.t.Helper()
	taken, err := d.Acquire(d.t.Context(), bus.QueueMain, worker, bus.Failing, start)
	require.NoError(d.t, err)
	return d.require(taken, id)
}

func (d *depot) require(taken queue.Taken, id string) *queue.Task {
	d.t.Helper()
	if id == "" {
		require.Nil(d.t, taken.Task)
		return nil
	}
	require.NotNil(d.t, taken.Task, "there is no %s", id)
	require.Equal(d.t, id, taken.Task.Payload.(*parcel).id)
	return taken.Task
}

// complete ends a task and requires the worker's next one.
func (d *depot) complete(task *queue.Task, r queue.Result, next string) *queue.Task {
	d.t.Helper()
	owned, taken, err := d.CompleteAndAcquire(d.t.Context(), task, r, bus.Failing, start)
	require.NoError(d.t, err)
	require.NoError(d.t, taken.Err)
	require.True(d.t, owned)
	return d.require(taken.Taken, next)
}

// requireEmpty requires that nothing is left but the workers and their index.
func (d *depot) requireEmpty() {
	d.t.Helper()
	keys, err := d.server.Raw.Keys(d.t.Context(), "*").Result()
	require.NoError(d.t, err)
	assert.Subset(d.t, []string{d.keys.Workers(), d.keys.PendingIndex(bus.QueueMain), d.keys.MaxInFlight()}, keys)
}

func TestEntriesOfALaneAreTakenInOrderAndOneAtATime(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2", "3")
		first := d.take(ann, "1")
		d.take(ben, "")
		second := d.complete(first, queue.Done, "2")
		third := d.complete(second, queue.Done, "3")
		require.Nil(t, d.complete(third, queue.Done, ""))
		d.requireEmpty()
	})
}

func TestALaneHasAtMostItsNumberInFlight(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 2)
		d.post("home", "1", "2", "3", "4")
		first, second := d.take("a", "1"), d.take("b", "2")
		d.take("c", "")
		third := d.complete(second, queue.Done, "3")
		fourth := d.complete(first, queue.Done, "4")
		d.complete(third, queue.Done, "")
		d.complete(fourth, queue.Done, "")
		d.requireEmpty()
	})
}

func TestLanesDoNotHoldEachOtherUp(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2")
		d.post("away", "3")
		d.take(ann, "1")
		d.take(ben, "3")
	})
}

// TestWhenTheNextEntryIsDue requires the first ms in which it can be made instant.
func TestWhenTheNextEntryIsDue(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		due, err := d.NextDue(t.Context(), bus.QueueMain)
		require.NoError(t, err)
		assert.Greater(t, due, after(1e9))
		for _, c := range []struct {
			score string
			want  time.Time
		}{{"inf", time.UnixMilli(1 << 53)}, {"1700000000009", after(9)}, {"1700000000004.25", after(5)}} {
			require.NoError(t, server.Raw.Do(t.Context(), "zadd", d.keys.Scheduled(bus.QueueMain), c.score, c.score).Err())
			due, err = d.NextDue(t.Context(), bus.QueueMain)
			require.NoError(t, err)
			assert.Equal(t, c.want, due)
		}
		moved, err := d.Schedule(t.Context(), bus.QueueMain, due.Add(-time.Millisecond), 10)
		require.NoError(t, err)
		assert.Zero(t, moved)
		moved, err = d.Schedule(t.Context(), bus.QueueMain, due, 10)
		require.NoError(t, err)
		assert.Equal(t, 1, moved)
	})
}

func TestAnEntryThatIsRetriedGivesUpItsTurn(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2")
		first := d.take(ann, "1")
		d.take(ben, "")
		second := d.complete(first, queue.Result{RetryAt: after(50), Detail: 3}, "2")
		d.complete(second, queue.Done, "")
		moved, err := d.Schedule(t.Context(), bus.QueueMain, after(49), 10)
		require.NoError(t, err)
		require.Zero(t, moved)
		moved, err = d.Schedule(t.Context(), bus.QueueMain, after(50), 10)
		require.NoError(t, err)
		require.Equal(t, 1, moved)
		again := d.take(ann, "1")
		require.Equal(t, 3, again.Payload.(*parcel).failures)
	})
}

func TestADeadHeadIsRemovedFromItsLane(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1")
		d.take(ann, "1")
		d.post("home", "2")
		// Something else removes the first, with its entry, but leaves its place in the lane.
		require.NoError(t, server.Raw.Del(t.Context(), "q:parcel:1", d.keys.Pending(bus.QueueMain, ann)).Err())
		require.NoError(t, server.Raw.SRem(t.Context(), d.keys.JobsIndex(bus.QueueMain), wire.PackJob(parcelJob("1"))).Err())
		second := d.take(ben, "2")
		d.complete(second, queue.Done, "")
		d.requireEmpty()
	})
}

func TestWhatAKindDiscardsIsReported(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2", "3")
		require.NoError(t, server.Raw.Del(t.Context(), "q:parcel:1", "q:parcel:2").Err())
		taken, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Failing, start)
		require.NoError(t, err)
		require.Equal(t, []any{"1", "2"}, taken.Discarded)
		d.complete(d.require(taken, "3"), queue.Done, "")

		d.post("home", "4")
		require.NoError(t, server.Raw.Del(t.Context(), "q:parcel:4").Err())
		taken, err = d.Acquire(t.Context(), bus.QueueMain, ann, bus.Failing, start)
		require.NoError(t, err)
		require.Equal(t, queue.Taken{Discarded: []any{"4"}}, taken)
		d.requireEmpty()
	})
}

func TestAnEntryThatFailsInItsScriptIsPutOff(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2")
		require.NoError(t, server.Raw.Del(t.Context(), "q:parcel:1").Err())
		require.NoError(t, server.Raw.Set(t.Context(), "q:parcel:1", "not a hash", 0).Err())
		taken, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Failing, start)
		require.NoError(t, err)
		d.require(taken, "2")
		require.Len(t, taken.Poisoned, 1)
		require.ErrorIs(t, taken.Poisoned[0], bus.ErrPoisoned)
		require.ErrorContains(t, taken.Poisoned[0], `["parcel" "1"]`)
		scheduled, err := server.Raw.ZRangeWithScores(t.Context(), d.keys.Scheduled(bus.QueueMain), 0, -1).Result()
		require.NoError(t, err)
		require.Len(t, scheduled, 1)
		require.Greater(t, int64(scheduled[0].Score), after(1000).UnixMilli())
	})
}

func TestALaneOfTooLowStandingWaits(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1")
		taken, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Proven, start)
		require.NoError(t, err)
		require.Nil(t, taken.Task)
		_, err = d.Schedule(t.Context(), bus.QueueMain, after(7), 10)
		require.NoError(t, err)
		d.take(ann, "1")
	})
}

func TestAnEntryIsUniqueInAnyState(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1")
		again := func() bool {
			added, err := d.Enqueue(t.Context(), bus.QueueMain, parcelJob("1"))
			require.NoError(t, err)
			return added
		}
		require.False(t, again(), "instant")
		task := d.take(ann, "1")
		require.False(t, again(), "pending")
		d.complete(task, queue.Result{RetryAt: after(5)}, "")
		require.False(t, again(), "scheduled")
		_, err := d.Schedule(t.Context(), bus.QueueMain, after(5), 1)
		require.NoError(t, err)
		d.complete(d.take(ann, "1"), queue.Done, "")
		require.True(t, again(), "gone")
	})
}

func TestAJobWhoseReplyWasLostIsTakenAgain(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2")
		d.take(ann, "1")
		d.complete(d.take(ann, "1"), queue.Done, "2")
	})
}

func TestAWorkerThatWasTakenToBeDeadChangesNothing(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1", "2")
		late := d.take(ann, "1")
		jobs, err := d.Scrub(t.Context(), start, bus.QueueMain)
		require.NoError(t, err)
		require.Equal(t, 1, jobs)
		task := d.take(ben, "1")
		owned, next, err := d.CompleteAndAcquire(t.Context(), late, queue.Done, bus.Failing, start)
		require.NoError(t, err)
		require.False(t, owned)
		d.require(next.Taken, "") // the other waits for its turn
		owned, err = d.Complete(t.Context(), late, queue.Done, start)
		require.NoError(t, err)
		require.False(t, owned)
		d.complete(task, queue.Done, "2")
		// It is in the index again, or its next entry would be lost with it.
		require.NoError(t, d.Heartbeat(t.Context(), after(1), ben))
		d.post("away", "3")
		d.take(ann, "3")
		jobs, err = d.Scrub(t.Context(), start, bus.QueueMain)
		require.NoError(t, err)
		require.Equal(t, 1, jobs)
	})
}

func TestScrubbingSparesWorkersThatAreAlive(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		d.post("home", "1")
		d.post("away", "2")
		d.take(ann, "1")
		d.take(ben, "2")
		require.NoError(t, d.Heartbeat(t.Context(), after(1000), ben))
		jobs, forgotten, err := d.ForgetWorkers(t.Context(), after(999))
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{jobs, forgotten})
		jobs, err = d.Retire(t.Context(), ben)
		require.NoError(t, err)
		require.Equal(t, 1, jobs)
		var many []bus.WorkerID
		for range 1001 { // more than one call notes, or removes, at once
			many = append(many, bus.NewWorkerID())
		}
		require.NoError(t, d.Heartbeat(t.Context(), after(1), many...))
		require.EqualValues(t, 1001, server.Raw.HLen(t.Context(), d.keys.Workers()).Val())
		_, err = d.Retire(t.Context(), many...)
		require.NoError(t, err)
		exists, err := server.Raw.Exists(t.Context(), d.keys.Workers(), d.keys.PendingIndex(bus.QueueMain)).Result()
		require.NoError(t, err)
		require.Zero(t, exists)
	})
}

func TestJobsOfNoKindHaveNoPayload(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		for _, job := range []bus.Job{{Name: "monitor"}, {Name: "other", Args: []string{"x"}}, {Name: "parcel", Args: []string{"1", "2"}}} {
			_, err := d.Enqueue(t.Context(), bus.QueueMain, job)
			require.NoError(t, err)
			taken, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Proven, start)
			require.NoError(t, err)
			require.Equal(t, job, taken.Task.Job)
			require.Nil(t, taken.Task.Payload)
			owned, err := d.Complete(t.Context(), taken.Task, queue.Done, start)
			require.NoError(t, err)
			require.True(t, owned)
		}
		// A parcel on a queue that is not its kind's.
		_, err := d.Enqueue(t.Context(), bus.QueueAux, parcelJob("1"))
		require.NoError(t, err)
		taken, err := d.Acquire(t.Context(), bus.QueueAux, ann, bus.Proven, start)
		require.NoError(t, err)
		require.Nil(t, taken.Task.Payload)
	})
}

func TestAJobThatCannotBeReadIsTaken(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 1)
		require.NoError(t, server.Raw.LPush(t.Context(), d.keys.Instant(bus.QueueMain), "\x92odd").Err())
		taken, err := d.Acquire(t.Context(), bus.QueueMain, ann, bus.Proven, start)
		require.NoError(t, err)
		require.Zero(t, taken.Task.Job)
		owned, err := d.Complete(t.Context(), taken.Task, queue.Result{RetryAt: after(5)}, start)
		require.NoError(t, err)
		require.True(t, owned)
		due, err := d.Due(t.Context(), bus.QueueMain, after(5))
		require.NoError(t, err)
		require.EqualValues(t, 1, due)
	})
}

func TestHeartbeatsNoteHowManyMayBeInFlight(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		d := newDepot(t, server, 3)
		require.NoError(t, d.Heartbeat(t.Context(), start, ann, ben))
		noted, err := server.Raw.HGetAll(t.Context(), d.keys.MaxInFlight()).Result()
		require.NoError(t, err)
		require.Equal(t, map[string]string{"parcel": "3"}, noted)
		workers, err := server.Raw.HGetAll(t.Context(), d.keys.Workers()).Result()
		require.NoError(t, err)
		now := fmt.Sprint(start.UnixMilli())
		require.Equal(t, map[string]string{"ann": now, "ben": now}, workers)
	})
}
