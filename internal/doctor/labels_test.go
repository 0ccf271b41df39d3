package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/doctor"
	"routemaster/internal/machines"
	"routemaster/internal/machines/engine"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/queue"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// One machine's name contains the separator of keys. No server listens at the webhooks' addresses.
const yaml = `
state_machines:
  m:
    states:
      - {gate: g, triggers: [{metadata: go}], exit_condition: metadata.go, next: a}
      - {action: a, webhook: "http://127.0.0.1:9/", next: end}
      - {gate: end, exit_condition: false}
  e:x:
    states:
      - {action: a, webhook: "http://127.0.0.1:9/", attempts: 1, next: end}
      - {gate: end, exit_condition: false}
  p:
    states:
      - {gate: end, exit_condition: false}
    publish: {topic: moves, url: "https://app.example/<label>"}
`

// labelPatient is labels in all that may be: waiting in a gate, pending (its gate is evaluated
// again each minute), acting (its action is tried again later), asked for (since a worker has it),
// deleted, errored, and with a move that cannot be published for an hour.
type labelPatient struct {
	rdbtest.Raw
	*machinestest.Fixture
	partition *rdb.Partition
}

func newLabelPatient(t *testing.T, server *rdbtest.Server) *labelPatient {
	require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
	f := machinestest.New(t, server)
	f.Apply(yaml)
	f.Tell = func(context.Context, *queue.Task) queue.Result { return queue.Result{RetryAt: f.Now.Add(time.Hour)} }
	f.Create("p", "told", `{}`)
	f.Create("m", "waiting", `{}`)
	f.Create("m", "pending", `{}`)
	f.Change("m", "pending", `{"go": false}`)
	f.Create("m", "acting", `{}`)
	f.Change("m", "acting", `{"go": true}`)
	f.Create("e:x", "errored", `{}`)
	f.Create("m", "deleted", `{}`)
	require.NoError(t, f.Delete(t.Context(), f.Machine("m"), "deleted", f.Now))
	f.Create("m", "asked", `{}`)
	_, err := f.Merge(t.Context(), "m", "asked", machines.Object{"go": false}, false)
	require.NoError(t, err)
	require.NotNil(t, f.Take("worker"))
	_, err = f.Merge(t.Context(), "m", "asked", machines.Object{"go": false}, false)
	require.NoError(t, err)
	return &labelPatient{server.Raw, f, f.Partitions[0]}
}

// keptByRoot is the size in bytes of all labels; root has made them.
var keptByRoot = 3*engine.SizeOf(int64(len(`{}`)), 0) + 2*engine.SizeOf(int64(len(`{"go":false}`)), 0) +
	engine.SizeOf(int64(len(`{"go":true}`)), 1) + engine.LabelBytes

func rootKeepsOfLabels(said, must int64) string {
	return fmt.Sprintf(`accounts: says that root keeps "%d" bytes, must be %d [set right]`, said, must)
}

// key is a key of the labels in full.
func key(rest string) string { return machinestest.Namespace + "machines:" + rest }

func (p *labelPatient) zadd(list, name string) redis.Cmder {
	return p.ZAdd(p.T.Context(), key(list), redis.Z{Member: name})
}

// forget loses the queue.
func (p *labelPatient) forget() redis.Cmder {
	q := machinestest.Namespace + "jobs:"
	return p.Del(p.T.Context(), q+"index:machines", q+"scheduled:machines", q+"instant:machines", q+"pending:machines:worker")
}

// examine returns the findings of an examination, in order.
func (p *labelPatient) examine(fix bool) (lines []string) {
	p.T.Helper()
	_, err := doctor.New(p.partition, 0).Examine(p.T.Context(), fix, func(f doctor.Finding) {
		lines = append(lines, fmt.Sprintf("%s: %s [%s]", f.Key, f.Problem, f.Remedy))
	})
	require.NoError(p.T, err)
	slices.Sort(lines)
	return lines
}

// labelDamages are the damages and their findings, by name.
var labelDamages = map[string]struct {
	does  func(p *labelPatient) redis.Cmder
	finds []string
	stays bool // some of it is not repaired
}{
	"nothing": {does: func(p *labelPatient) redis.Cmder { return p.Ping(p.T.Context()) }},
	"a list that is lost": {does: func(p *labelPatient) redis.Cmder {
		return p.Del(p.T.Context(), key("labels:e:x:a"))
	}, finds: []string{"machines:label:e:x/errored: is not in machines:labels:e:x:a [added there]"}},
	"a label in two lists, and in another than its own": {does: func(p *labelPatient) redis.Cmder {
		p.ZRem(p.T.Context(), key("labels:m:a"), "acting")
		p.zadd("labels:m:end", "acting")
		return p.zadd("labels:m:a", "waiting")
	}, finds: []string{
		"machines:label:m/acting: is not in machines:labels:m:a [added there]",
		"machines:labels:m:a: lists waiting, which is in g [removed]",
		"machines:labels:m:end: lists acting, which is in a [removed]",
	}},
	"lists of nobody": {does: func(p *labelPatient) redis.Cmder {
		p.zadd("labels:m:a", "deleted")
		p.zadd("errored:m", "deleted")
		p.zadd("names:m", "deleted")
		p.zadd("names:e:x", "nobody")
		p.zadd("errored:m", "nobody")
		return p.zadd("labels:e:x:a", "nobody")
	}, finds: []string{
		"machines:errored:m: lists deleted, which is deleted [removed]",
		"machines:errored:m: lists nobody, which is not there [removed]",
		"machines:labels:e:x:a: lists nobody, which is not there [removed]",
		"machines:labels:m:a: lists deleted, which is deleted [removed]",
		"machines:names:e:x: lists nobody, which is not there [removed]",
		"machines:names:m: lists deleted, which is deleted [removed]",
	}},
	"the names of a machine": {does: func(p *labelPatient) redis.Cmder {
		return p.Del(p.T.Context(), key("names:e:x"))
	}, finds: []string{"machines:label:e:x/errored: is not in machines:names:e:x [added there]"}},
	"errored labels": {does: func(p *labelPatient) redis.Cmder {
		p.Del(p.T.Context(), key("errored:e:x"))
		return p.zadd("errored:m", "waiting")
	}, finds: []string{
		"machines:errored:m: lists waiting, which is not errored [removed]",
		"machines:label:e:x/errored: is not in machines:errored:e:x [added there]",
	}},
	"a record that is lost": {does: func(p *labelPatient) redis.Cmder {
		return p.Del(p.T.Context(), key("label:m/acting"))
	}, finds: []string{
		rootKeepsOfLabels(keptByRoot, keptByRoot-engine.SizeOf(11, 1)),
		"machines:history:m/acting: is of a label that is not there [removed]",
		"machines:labels:m:a: lists acting, which is not there [removed]",
		"machines:metadata:m/acting: is of a label that is not there []",
		"machines:names:m: lists acting, which is not there [removed]",
	}, stays: true},
	"labels of before there were accounts": {does: func(p *labelPatient) redis.Cmder {
		p.Del(p.T.Context(), machinestest.Namespace+"accounts")
		for _, id := range []string{"m/waiting", "m/pending", "m/asked", "m/acting", "p/told", "e:x/errored"} {
			p.HDel(p.T.Context(), key("label:"+id), "by")
		}
		return p.Ping(p.T.Context())
	}, finds: []string{
		fmt.Sprintf(`accounts: says that machines keeps "" bytes, must be %d [set right]`, keptByRoot-engine.LabelBytes),
		"machines:label:e:x/errored: is in nobody's account [put in that of the machines]",
		"machines:label:m/acting: is in nobody's account [put in that of the machines]",
		"machines:label:m/asked: is in nobody's account [put in that of the machines]",
		"machines:label:m/pending: is in nobody's account [put in that of the machines]",
		"machines:label:m/waiting: is in nobody's account [put in that of the machines]",
		"machines:label:p/told: is in nobody's account [put in that of the machines]",
	}},
	"what expires of accounts": { // which workers remove
		does: func(p *labelPatient) redis.Cmder {
			return p.HSet(p.T.Context(), machinestest.Namespace+"accounts", "@99999999999999", 100, "@99999999999999/*", 100, "@99999999999999/~root", 100,
				"@1700000000000/root", -100_000, "@1800000000000/root", "1.5", "@1900000000000/root", "1e3")
		},
	},
	"a state that is not defined": {does: func(p *labelPatient) redis.Cmder {
		p.Del(p.T.Context(), key("labels:m:g"))
		p.zadd("labels:m:gone", "waiting")
		p.zadd("labels:m:gone", "pending")
		p.zadd("labels:m:gone", "asked")
		for _, name := range []string{"waiting", "pending", "asked"} {
			p.HSet(p.T.Context(), key("label:m/"+name), "state", "gone")
		}
		return p.Ping(p.T.Context())
	}, finds: []string{
		"machines:label:m/asked: is in gone, which is not defined: apply definitions with ?move=m.gone:STATE []",
		"machines:label:m/pending: is in gone, which is not defined: apply definitions with ?move=m.gone:STATE []",
		"machines:label:m/waiting: is in gone, which is not defined: apply definitions with ?move=m.gone:STATE []",
	}, stays: true},
	"metadata of others": {does: func(p *labelPatient) redis.Cmder {
		return p.Rename(p.T.Context(), key("metadata:m/waiting"), key("metadata:m/deleted"))
	}, finds: []string{
		rootKeepsOfLabels(keptByRoot, keptByRoot-2),
		"machines:label:m/waiting: has no metadata []",
		"machines:metadata:m/deleted: is of a label that is deleted [removed]",
	}, stays: true},
	"entries that are lost": {does: (*labelPatient).forget, finds: []string{
		"machines:label:m/acting: has no entry in its queue [given one, to be taken now]",
		"machines:label:m/asked: has no entry in its queue [given one, to be taken now]",
		"machines:label:m/pending: has no entry in its queue [given one, to be taken now]",
		"machines:outbox:p: has no entry in its queue [given one, to be taken now]",
	}},
	"an outbox with what is no move": {does: func(p *labelPatient) redis.Cmder {
		p.HIncrBy(p.T.Context(), key("published:p"), "count", 3)
		p.LPush(p.T.Context(), key("outbox:p"), "x")
		return p.RPush(p.T.Context(), key("outbox:p"), `{"topic":"moves"}`+"\ntold\n{}", strings.Repeat("x", 61)+"\ntold\n[1,null,null]")
	}, finds: []string{
		`machines:outbox:p: has "x", which is no move [removed]`,
		`machines:outbox:p: has "` + strings.Repeat("x", 60) + `"..., which is no move [removed]`,
		`machines:outbox:p: has "{\"topic\":\"moves\"}\ntold\n{}", which is no move [removed]`,
	}},
	"a last move that is none": {does: func(p *labelPatient) redis.Cmder {
		return p.HSet(p.T.Context(), key("published:p"), "count", "7", "last", "8")
	}, finds: []string{`machines:published:p: has last "8", must be a number up to count [removed]`}},
	"moves without numbers": {does: func(p *labelPatient) redis.Cmder {
		return p.Del(p.T.Context(), key("published:p"))
	}, finds: []string{`machines:published:p: has count "", must be 1 or more [begun anew]`}},
	"numbers that are none": {does: func(p *labelPatient) redis.Cmder {
		return p.HSet(p.T.Context(), key("published:p"), "count", "many", "last", "x")
	}, finds: []string{`machines:published:p: has count "many", must be 1 or more [begun anew]`}},
	"an outbox of another type": {does: func(p *labelPatient) redis.Cmder {
		return p.Set(p.T.Context(), key("outbox:m"), "something else wrote here", 0)
	}, finds: []string{"machines:outbox:m: is a string, must be a list []"}, stays: true},
	"numbers of another type": {does: func(p *labelPatient) redis.Cmder {
		p.Del(p.T.Context(), key("published:p"))
		return p.Set(p.T.Context(), key("published:p"), "something else wrote here", 0)
	}, finds: []string{"machines:published:p: is a string, must be a hash []"}, stays: true},
	"a list of another type": {does: func(p *labelPatient) redis.Cmder {
		return p.Set(p.T.Context(), key("labels:m:other"), "something else wrote here", 0)
	}, finds: []string{"machines:labels:m:other: is a string, must be a zset []"}, stays: true},
}

func TestDoctorOfLabels(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for name, c := range labelDamages {
			t.Run(name, func(t *testing.T) {
				p := newLabelPatient(t, server)
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

// TestARepairedLabelGoesOn loses all entries, and expects a worker to process the labels after the
// repair.
func TestARepairedLabelGoesOn(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newLabelPatient(t, server)
		p.forget()
		require.Len(t, p.examine(true), 4)
		assert.Equal(t, 4, p.Work(), "the moves were to be published, too")
		assert.Equal(t, 2, p.Show("m", "acting").Attempts)
		for _, name := range []machines.LabelName{"asked", "pending"} {
			assert.Equal(t, p.Now.Add(time.Minute), p.Show("m", name).NextAt, "its gate was evaluated")
		}
		p.RequireSound(t)
	})
}

// TestAReview has a gate become an action: until a worker has been through its labels, these need
// no entry.
func TestAReview(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newLabelPatient(t, server)
		p.Apply(`
state_machines:
  m:
    states:
      - {action: g, webhook: "http://127.0.0.1:9/", next: a}
      - {action: a, webhook: "http://127.0.0.1:9/", next: end}
      - {gate: end, exit_condition: false}
  e:x:
    states:
      - {action: a, webhook: "http://127.0.0.1:9/", attempts: 1, next: end}
      - {gate: end, exit_condition: false}
  p:
    states:
      - {gate: end, exit_condition: false}
`)
		assert.Empty(t, p.examine(false))
		p.Pass(time.Hour)
		assert.Empty(t, p.examine(false))
		q := machinestest.Namespace + "jobs:"
		entry := doctor.EntryOfLabel("m/waiting")
		require.EqualValues(t, 1, p.ZRem(t.Context(), q+"scheduled:machines", entry).Val())
		require.EqualValues(t, 1, p.SRem(t.Context(), q+"index:machines", entry).Val())
		assert.Equal(t, []string{
			"machines:label:m/waiting: has no entry in its queue [given one, to be taken now]",
		}, p.examine(false))
	})
}
