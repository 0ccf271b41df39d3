package doctor_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/jobs"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

var startOfJobs = time.UnixMilli(1_700_000_000_000)

// idOf makes a job's id of a digit.
func idOf(n int) jobs.ID { return jobs.ID(fmt.Sprintf("%d0000000-0000-4000-8000-000000000000", n)) }

// The jobs of a patient.
var accepted, handedOut, waiting, later, succeeded, cancelled = idOf(1), idOf(2), idOf(3), idOf(4), idOf(5), idOf(6)

// nobody is the id of a missing job.
var nobody = idOf(9)

func entryOf(id jobs.ID) string { return doctor.EntryOf(string(id)) }

// jobPatient is jobs in each of their states.
type jobPatient struct {
	*jobs.Store
	rdbtest.Raw
	t         *testing.T
	partition *rdb.Partition
}

func newJobPatient(t *testing.T, server *rdbtest.Server, partition *rdb.Partition) *jobPatient {
	ctx := t.Context()
	require.NoError(t, server.Raw.FlushAll(ctx).Err())
	p := &jobPatient{jobs.NewStore(partition), server.Raw, t, partition}
	for _, name := range []jobs.TypeName{"ship", "cron"} {
		job := jobs.Type{
			Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 2, URL: "https://shop.example/",
			Timeout: time.Minute, Retention: time.Hour, CreatedAt: startOfJobs, UpdatedAt: startOfJobs,
		}
		if name == "cron" {
			job.Schedule = "0 6 * * *"
		}
		require.NoError(t, p.CreateType(ctx, job))
	}
	put := func(id jobs.ID, wait time.Duration) {
		_, err := p.Enqueue(ctx, "ship", []jobs.NewJob{{ID: id, Data: []byte("1"), RunAfter: startOfJobs.Add(wait)}}, "", startOfJobs)
		require.NoError(t, err)
	}
	take := func(id jobs.ID, worker bus.WorkerID) *queue.Task {
		taken, err := p.Queue().Acquire(ctx, bus.QueueJobs, worker, bus.Failing, startOfJobs)
		require.NoError(t, err)
		require.Equal(t, id, taken.Task.Payload.(*jobs.Run).ID)
		return taken.Task
	}
	put(succeeded, 0)
	_, err := p.Queue().Complete(ctx, take(succeeded, "ann"), queue.Result{Detail: jobs.Outcome{Result: jobs.RunSucceeded}}, startOfJobs)
	require.NoError(t, err)
	put(accepted, 0)
	_, err = p.Queue().Complete(ctx, take(accepted, "ann"),
		queue.Result{RetryAt: startOfJobs.Add(time.Minute), Detail: jobs.Outcome{Result: jobs.RunAccepted}}, startOfJobs)
	require.NoError(t, err)
	put(handedOut, 0)
	take(handedOut, "ann")
	put(waiting, 0)
	put(later, time.Hour)
	put(cancelled, time.Hour)
	_, err = p.Cancel(ctx, "ship", cancelled, startOfJobs)
	require.NoError(t, err)
	return p
}

// copied is the id of the copy that share makes.
var copied = idOf(7)

// share has a copy of a job, and jobs of a schedule, share data.
func (p *jobPatient) share() {
	ctx := p.t.Context()
	_, err := p.Replay(ctx, "ship", succeeded, copied, startOfJobs)
	require.NoError(p.t, err)
	for minutes := range 2 {
		schedules, err := p.Schedules(ctx)
		require.NoError(p.t, err)
		at := startOfJobs.Add(time.Duration(minutes+1) * time.Minute)
		turn, err := p.EnqueueScheduled(ctx, schedules[0], at, startOfJobs)
		require.NoError(p.t, err)
		require.Equal(p.t, jobs.Enqueued, turn)
	}
}

// examine returns the findings of an examination, in order.
func (p *jobPatient) examine(fix bool) (lines []string) {
	p.t.Helper()
	_, err := doctor.New(p.partition, 0).Examine(p.t.Context(), fix, func(f doctor.Finding) {
		lines = append(lines, fmt.Sprintf("%s: %s [%s]", f.Key, f.Problem, f.Remedy))
	})
	require.NoError(p.t, err)
	slices.Sort(lines)
	return lines
}

// jobKey is the key of a job as findings show it.
func jobKey(id jobs.ID) string { return "work:job:" + string(id) }

// lane is the lane of the type ship.
const lane = "jobs:lane:job:ship"

// keptByShip is the size in bytes of the type ship with its six jobs.
const keptByShip = jobs.TypeBytes + 6*(jobs.JobBytes+1)

func shipKeeps(said, must int) string {
	return fmt.Sprintf(`work:type:ship: says that it keeps "%d" bytes, must be %d [set right]`, said, must)
}

// keptByAll is the size in bytes of root's types, ship and cron.
const keptByAll = keptByShip + jobs.TypeBytes

func rootKeepsOfJobs(said, must int) string { return accountOf("root", strconv.Itoa(said), must) }

func accountOf(client, said string, must int) string {
	return fmt.Sprintf("accounts: says that %s keeps %q bytes, must be %d [set right]", client, said, must)
}

// jobDamages are the damages and their findings, by name.
var jobDamages = map[string]struct {
	does  func(p *jobPatient) redis.Cmder
	finds []string
	stays bool // it is not repaired
}{
	"nothing": {does: func(p *jobPatient) redis.Cmder { return p.Ping(p.t.Context()) }},
	"an entry that came up before its job ended": {does: func(p *jobPatient) redis.Cmder {
		return p.LPush(p.t.Context(), "jobs:instant:jobs", entryOf(cancelled), entryOf(later))
	}},
	"a type that is not listed": {does: func(p *jobPatient) redis.Cmder {
		return p.SRem(p.t.Context(), "work:types", "ship")
	}, finds: []string{"work:type:ship: is not in work:types [added there]"}},
	"a type that is not there": {does: func(p *jobPatient) redis.Cmder {
		return p.SAdd(p.t.Context(), "work:types", "gone")
	}, finds: []string{"work:types: lists gone, which is not there [removed]"}},
	"a client's types that are not listed": {does: func(p *jobPatient) redis.Cmder {
		p.HSet(p.t.Context(), "work:type:ship", "owner", "alice")
		return p.SAdd(p.t.Context(), "work:types:of:bob", "ship", "gone")
	}, finds: []string{
		accountOf("alice", "", keptByShip), rootKeepsOfJobs(keptByAll, jobs.TypeBytes),
		"work:type:ship: is not in work:types:of:alice [added there]",
		"work:types:of:bob: lists gone, which is not the client's [removed]", "work:types:of:bob: lists ship, which is not the client's [removed]",
	}},
	"a type that keeps something else": {does: func(p *jobPatient) redis.Cmder {
		return p.HIncrBy(p.t.Context(), "work:type:ship", "kept", 5)
	}, finds: []string{
		shipKeeps(keptByShip+5, keptByShip),
	}},
	"a type of before there were accounts": {does: func(p *jobPatient) redis.Cmder {
		p.Del(p.t.Context(), "accounts")
		p.HDel(p.t.Context(), "work:type:ship", "kept")
		return p.HDel(p.t.Context(), "work:type:cron", "kept")
	}, finds: []string{
		accountOf("root", "", keptByAll),
		fmt.Sprintf(`work:type:cron: says that it keeps "" bytes, must be %d [set right]`, jobs.TypeBytes),
		fmt.Sprintf(`work:type:ship: says that it keeps "" bytes, must be %d [set right]`, keptByShip),
	}},
	"accounts of nobody, and a wrong sum": {does: func(p *jobPatient) redis.Cmder {
		return p.HSet(p.t.Context(), "accounts", "eve", "7", "*high", "1", "~eve", "3")
	}, finds: []string{
		fmt.Sprintf(`accounts: says that all keep "%d" bytes, which is not what they say [set right]`, keptByAll),
		accountOf("eve", "7", 0),
	}},
	"an account that is no number": {does: func(p *jobPatient) redis.Cmder {
		return p.HSet(p.t.Context(), "accounts", "root", "much", "*", "more", "#root", "often")
	}, finds: []string{accountOf("root", "much", keptByAll)}},
	"a schedule that is not known": {does: func(p *jobPatient) redis.Cmder {
		return p.Del(p.t.Context(), "work:schedules")
	}, finds: []string{"work:type:cron: has a schedule, and is not in work:schedules [added there, as of its last change]"}},
	"schedules of none": {does: func(p *jobPatient) redis.Cmder {
		return p.HSet(p.t.Context(), "work:schedules", "ship", 1, "gone", 1)
	}, finds: []string{
		"work:schedules: lists gone, which has no schedule [removed]", "work:schedules: lists ship, which has no schedule [removed]",
	}},
	"a list that is lost": {does: func(p *jobPatient) redis.Cmder {
		return p.ZRem(p.t.Context(), "work:open:ship", string(later))
	}, finds: []string{jobKey(later) + ": is not in work:open:ship [added there]"}},
	"an archive that is lost": {does: func(p *jobPatient) redis.Cmder {
		return p.Del(p.t.Context(), "work:archive:ship:succeeded")
	}, finds: []string{jobKey(succeeded) + ": is not in work:archive:ship:succeeded [added there]"}},
	"lists of others": {does: func(p *jobPatient) redis.Cmder {
		p.ZAdd(p.t.Context(), "work:open:ship", redis.Z{Score: 1, Member: string(cancelled)})
		p.ZAdd(p.t.Context(), "work:open:cron", redis.Z{Score: 1, Member: string(waiting)})
		return p.ZAdd(p.t.Context(), "work:archive:ship:failed", redis.Z{Score: 1, Member: string(nobody)})
	}, finds: []string{
		"work:archive:ship:failed: lists " + nobody.String() + ", which is not there [removed]",
		"work:open:cron: lists " + waiting.String() + ", which is queued, of the type ship [removed]",
		"work:open:ship: lists " + cancelled.String() + ", which is cancelled, of the type ship [removed]",
	}},
	"data of no job, and a job of no data": {does: func(p *jobPatient) redis.Cmder {
		return p.Rename(p.t.Context(), "work:data:"+string(later), "work:data:"+string(nobody))
	}, finds: []string{
		rootKeepsOfJobs(keptByAll, keptByAll-1),
		"work:data:" + string(nobody) + ": is of a job that is not there [removed]", jobKey(later) + ": has no data []",
		shipKeeps(keptByShip, keptByShip-1),
	}, stays: true},
	"jobs that share data": {does: func(p *jobPatient) redis.Cmder {
		p.share()
		return p.Ping(p.t.Context())
	}},
	"sharing that is not noted": {does: func(p *jobPatient) redis.Cmder {
		p.share()
		return p.SRem(p.t.Context(), "work:copies:"+string(succeeded), string(copied))
	}, finds: []string{jobKey(copied) + ": shares data, and is not in work:copies:" + string(succeeded) + " [added there]"}},
	"sharing of others": {does: func(p *jobPatient) redis.Cmder {
		p.share()
		return p.SAdd(p.t.Context(), "work:copies:"+string(succeeded), string(waiting), string(nobody))
	}, finds: []string{
		"work:copies:" + string(succeeded) + ": lists " + waiting.String() + ", which does not share the data [removed]",
		"work:copies:" + string(succeeded) + ": lists " + nobody.String() + ", which does not share the data [removed]",
	}},
	"shared data that no job has": {does: func(p *jobPatient) redis.Cmder {
		p.Set(p.t.Context(), "work:data:schedule:cron:1", "1", 0)
		return p.SAdd(p.t.Context(), "work:copies:schedule:cron:1", string(nobody))
	}, finds: []string{"work:data:schedule:cron:1: is of a job that is not there [removed]"}},
	"shared data that is lost": {does: func(p *jobPatient) redis.Cmder {
		p.share()
		return p.Del(p.t.Context(), "work:data:"+string(succeeded))
	}, finds: []string{
		rootKeepsOfJobs(keptByAll+3*jobs.JobBytes+len("null"), keptByAll+3*jobs.JobBytes+len("null")-1),
		jobKey(succeeded) + ": has no data []", jobKey(copied) + ": has no data []",
		shipKeeps(keptByShip+jobs.JobBytes, keptByShip+jobs.JobBytes-1),
	}, stays: true},
	"a record that says nothing": {does: func(p *jobPatient) redis.Cmder {
		return p.HSet(p.t.Context(), jobKey(later), "status", "lost")
	}, finds: []string{
		"jobs:index:jobs: lists " + later.String() + ", which is lost, of the type ship [removed]",
		"work:job:" + string(later) + ": does not say what a job's record says []",
		"work:open:ship: lists " + later.String() + ", which is lost, of the type ship [removed]",
	}, stays: true},
	"a job of no type": {does: func(p *jobPatient) redis.Cmder {
		return p.HSet(p.t.Context(), jobKey(cancelled), "type", "gone")
	}, finds: []string{
		rootKeepsOfJobs(keptByAll, keptByAll-jobs.JobBytes-1),
		"work:archive:ship:cancelled: lists " + cancelled.String() + ", which is cancelled, of the type gone [removed]",
		jobKey(cancelled) + ": is of the type gone, which is not there []",
		shipKeeps(keptByShip, keptByShip-jobs.JobBytes-1),
	}, stays: true},
	"a job in progress that does not count": {does: func(p *jobPatient) redis.Cmder {
		p.ZRem(p.t.Context(), lane, entryOf(accepted))
		return p.ZAdd(p.t.Context(), lane, redis.Z{Score: 7, Member: entryOf(handedOut)})
	}, finds: []string{
		jobKey(accepted) + ": is in progress, and does not count against the limit of its type [counted]",
		jobKey(handedOut) + ": is in progress, and does not count against the limit of its type [counted]",
	}},
	"a queued job that counts": {does: func(p *jobPatient) redis.Cmder {
		return p.ZAdd(p.t.Context(), lane, redis.Z{Score: -7, Member: entryOf(waiting)})
	}, finds: []string{jobKey(waiting) + ": is queued, and counts as one in progress [put in its place]"}},
	"a lane of others": {does: func(p *jobPatient) redis.Cmder {
		return p.ZAdd(p.t.Context(), lane, redis.Z{Score: -5, Member: entryOf(succeeded)},
			redis.Z{Score: 2, Member: entryOf(nobody)}, redis.Z{Score: 3, Member: "\x92\xa5other\x90"})
	}, finds: []string{
		lane + `: lists job ["other"], which is no job of a service [removed]`,
		lane + ": lists " + succeeded.String() + ", which is succeeded, of the type ship [removed]",
		lane + ": lists " + nobody.String() + ", which is not there [removed]",
	}},
	"an index that is lost": {does: func(p *jobPatient) redis.Cmder {
		return p.SRem(p.t.Context(), "jobs:index:jobs", entryOf(handedOut), entryOf(later))
	}, finds: []string{
		jobKey(handedOut) + ": is not in jobs:index:jobs [added there]", jobKey(later) + ": is not in jobs:index:jobs [added there]",
	}},
	"an index of what has ended": {does: func(p *jobPatient) redis.Cmder {
		return p.SAdd(p.t.Context(), "jobs:index:jobs", entryOf(succeeded), entryOf(nobody))
	}, finds: []string{
		"jobs:index:jobs: lists " + succeeded.String() + ", which is succeeded, of the type ship [removed]",
		"jobs:index:jobs: lists " + nobody.String() + ", which is not there [removed]",
	}},
	"entries that are lost": {does: func(p *jobPatient) redis.Cmder {
		return p.Del(p.t.Context(), "jobs:scheduled:jobs", "jobs:pending:jobs:ann")
	}, finds: []string{
		jobKey(accepted) + ": has no entry in its queue [given one, to be taken now]",
		jobKey(handedOut) + ": has no entry in its queue [given one, to be taken now]",
		jobKey(waiting) + ": has no entry in its queue [given one, to be taken now]",
		jobKey(later) + ": has no entry in its queue [given one, to be taken now]",
	}},
	"a list of another type": {does: func(p *jobPatient) redis.Cmder {
		p.Del(p.t.Context(), "work:open:ship")
		return p.Set(p.t.Context(), "work:open:ship", "something else wrote here", 0)
	}, finds: []string{"work:open:ship: is a string, must be a zset []"}, stays: true},
	"the same, and an account that cannot be counted": {does: func(p *jobPatient) redis.Cmder {
		p.Del(p.t.Context(), "work:open:ship")
		p.HIncrBy(p.t.Context(), "work:type:ship", "kept", 5)
		p.HIncrBy(p.t.Context(), "accounts", "root", 5)
		p.HIncrBy(p.t.Context(), "accounts", "*", 5)
		return p.Set(p.t.Context(), "work:open:ship", "something else wrote here", 0)
	}, finds: []string{"work:open:ship: is a string, must be a zset []"}, stays: true},
}

func TestDoctorOfJobs(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		partition := server.Open(t).Partition("")
		for name, c := range jobDamages {
			t.Run(name, func(t *testing.T) {
				p := newJobPatient(t, server, partition)
				require.NoError(t, c.does(p).Err())
				assert.Equal(t, c.finds, p.examine(false))
				assert.Equal(t, c.finds, p.examine(true))
				if !c.stays {
					assert.Empty(t, p.examine(false), "it is repaired")
				}
			})
		}
	})
}

// TestAnAccountThatChangesWhileItIsRepaired has a job come once its type was set right, and before
// the account of the type's owner is.
func TestAnAccountThatChangesWhileItIsRepaired(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, fix := range []bool{true, false} {
			p, found := newJobPatient(t, server, server.Open(t).Partition("")), []string{}
			p.HIncrBy(t.Context(), "work:type:ship", "kept", -1000)
			p.HIncrBy(t.Context(), "accounts", "root", -1000)
			p.HIncrBy(t.Context(), "accounts", "*", -1000)
			_, err := doctor.New(p.partition, 0).Examine(t.Context(), fix, func(f doctor.Finding) {
				if found = append(found, f.Problem); len(found) == 1 {
					_, err := p.Enqueue(t.Context(), "ship", []jobs.NewJob{{ID: nobody, Data: []byte("1")}}, "", startOfJobs)
					require.NoError(t, err)
				}
			})
			require.NoError(t, err)
			more := jobs.JobBytes + 1
			assert.Equal(t, []string{
				fmt.Sprintf(`says that it keeps "%d" bytes, must be %d`, keptByShip-1000, keptByShip),
				fmt.Sprintf(`says that root keeps "%d" bytes, must be %d`, keptByAll-1000+more, keptByAll+more),
			}, found)
			if fix {
				assert.Empty(t, p.examine(false), "it is repaired")
			}
		}
	})
}

// TestARepairedJobGoesOn loses all entries, and expects the jobs to be handed out after the repair.
func TestARepairedJobGoesOn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p, ctx := newJobPatient(t, server, server.Open(t).Partition("")), t.Context()
		p.Del(ctx, "jobs:scheduled:jobs", "jobs:pending:jobs:ann", "jobs:lane:job:ship")
		require.Len(t, p.examine(true), 6)
		taken, err := p.Queue().Acquire(ctx, bus.QueueJobs, "ben", bus.Failing, startOfJobs)
		require.NoError(t, err)
		assert.Equal(t, handedOut, taken.Task.Payload.(*jobs.Run).ID, "its worker does not have it")
		taken, err = p.Queue().Acquire(ctx, bus.QueueJobs, "eve", bus.Failing, startOfJobs)
		require.NoError(t, err)
		assert.Nil(t, taken.Task, "the limit of the type is kept")
		counts, err := p.Counts(ctx, jobs.Type{Name: "ship"})
		require.NoError(t, err)
		assert.EqualValues(t, 2, counts[0].InProgress)
		job, err := p.Job(ctx, "", accepted)
		require.NoError(t, err)
		assert.Equal(t, jobs.InProgress, job.Status)
		assert.Equal(t, startOfJobs.Add(time.Minute).UTC(), job.Deadline)
		assert.EqualValues(t, 3, p.ZCard(ctx, "jobs:scheduled:jobs").Val())
	})
}
