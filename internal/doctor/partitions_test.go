package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/doctor"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
)

// TestEveryDamageOfPartitionsIsFoundAndRepaired breaks a sound bus with partitions in every way.
// Doctor must find exactly that, change nothing unless asked to fix it, and repair it at once; then
// everything arrives.
func TestEveryDamageOfPartitionsIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	all := slices.Concat(relayDamages, acrossDamages)
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, a := range all[:rdbtest.Fewer(len(all))] {
			t.Run(a.name, func(t *testing.T) {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				p := newDividedPatient(t, server.Open(t))
				a.does(p)
				want := []string{}
				for _, line := range a.finds {
					if strings.Contains(line, "%") {
						line = fmt.Sprintf(line+"%[3]s", p.a, p.b, "")
					}
					want = append(want, line)
				}
				before := dump(t, server.Raw)
				assert.ElementsMatch(t, want, p.examine(false))
				assert.Equal(t, before, dump(t, server.Raw), "looking changes nothing")
				assert.ElementsMatch(t, want, p.examine(true))
				fixed := dump(t, server.Raw)
				if a.stays {
					assert.Equal(t, before, fixed, "it is left")
					return
				}
				require.Empty(t, p.examine(true), "it is repaired")
				assert.Equal(t, fixed, dump(t, server.Raw), "a second repair changes nothing")
				p.requireDelivered()
			})
		}
	})
}

// TestTwoRepairsOfPartitionsAtOnce has two examinations repair the same damages.
func TestTwoRepairsOfPartitionsAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newDividedPatient(t, server.Open(t))
		for _, a := range slices.Concat(relayDamages, acrossDamages) {
			if slices.Contains([]string{
				"an outbox without a relay", "more events taken than there are", "a generation that is given again", "tokens that others lack",
				"a token of another client", "a topic of which its home has nothing",
			}, a.name) {
				a.does(p)
			}
		}
		require.Len(t, p.examine(false), 9)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				_, err := doctor.Of(p.Bus, 0).Examine(p.ctx, true, func(doctor.Finding) {})
				assert.NoError(t, err)
			})
		}
		both.Wait()
		assert.Empty(t, p.examine(false))
		p.requireDelivered()
	})
}

// TestPartitionsThatAreHeld are reported, and neither examined nor taken for ones that have lost
// something.
func TestPartitionsThatAreHeld(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newDividedPatient(t, server.Open(t))
		held := dump(t, server.Raw)
		_, err := p.All[1].Hold(p.ctx, 0)
		require.NoError(t, err)
		for _, key := range []string{"api_tokens:by_token", "subscribers:" + string(p.a), "subscribers"} { // as on the way to another node
			require.NoError(t, p.All[1].Rename(p.ctx, p.key(1, key), "aside "+key).Err())
		}
		before := dump(t, server.Raw)
		const isHeld = `01 partition: is missing: the partition is held, or came back without its keys, and was not examined; ` +
			"unless its slot is moving, run `rtm cluster release 1` []"
		assert.Equal(t, []string{isHeld}, p.examine(false))
		assert.Equal(t, []string{isHeld}, p.examine(true))
		assert.Equal(t, before, dump(t, server.Raw))
		for _, key := range []string{"api_tokens:by_token", "subscribers:" + string(p.a), "subscribers"} {
			require.NoError(t, p.All[1].Rename(p.ctx, "aside "+key, p.key(1, key)).Err())
		}
		require.NoError(t, p.All[1].Release(p.ctx))
		assert.Empty(t, p.examine(true))
		assert.Equal(t, held, dump(t, server.Raw))
		p.requireDelivered()
	})
}

// TestALossOfAPartitionThatIsHeld is reported, too: it may be why.
func TestALossOfAPartitionThatIsHeld(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newDividedPatient(t, server.Open(t))
		_, err := p.All[1].Hold(p.ctx, 0)
		require.NoError(t, err)
		require.NoError(t, p.All[1].HSet(p.ctx, p.key(1, "bus"), "id", "x", "lost", "empty", "lost_at", "1795000000000").Err())
		lines := p.examine(false)
		require.Len(t, lines, 2)
		assert.Contains(t, lines[0], "01 bus: Redis came back without the data of the bus. A process noticed it at 2026-")
		assert.Contains(t, lines[1], "01 partition: is missing")
	})
}

// TestAPartitionThatIsHeldMeanwhile holds a partition and removes its keys after it was examined.
func TestAPartitionThatIsHeldMeanwhile(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := newDividedPatient(t, server.Open(t))
		p.All[2].HDel(p.ctx, p.key(2, "api_tokens:by_token"), string(p.other))
		p.All[0].HDel(p.ctx, p.key(0, "relays:"+string(p.b)), "01")
		p.All[2].RPush(p.ctx, p.key(2, "unknown"), "x") // which is found last of all
		var lines []string
		_, err := doctor.Of(p.Bus, 0).Examine(p.ctx, true, func(f doctor.Finding) {
			lines = append(lines, line(f))
			if f.Key != "unknown" {
				return
			}
			_, err := p.All[1].Hold(p.ctx, 0)
			assert.NoError(t, err)
			for key := range dump(t, server.Raw) {
				if strings.HasPrefix(key, p.All[1].Namespace()) {
					p.All[1].Del(p.ctx, key)
				}
			}
		})
		require.NoError(t, err)
		assert.Equal(t, []string{
			`02 unknown: is not a key of the layout []`,
			`01 partition: is missing: the partition is held, and was not compared with the others []`,
		}, lines)
		assert.True(t, p.All[0].HExists(p.ctx, p.key(0, "api_tokens:by_token"), string(p.other)).Val(), "its tokens are left in the others")
		assert.True(t, p.All[0].HExists(p.ctx, p.key(0, "relays:"+string(p.a)), "01").Val())
	})
}

// TestAPartitionThatIsAway expects an unavailable partition to be reported, the others to be
// examined, and its repairs not to be reported as done.
func TestAPartitionThatIsAway(t *testing.T) {
	data, servers := storetest.Apart(t, 3)
	all, ctx := store.NewBus(data...), t.Context()
	require.NoError(t, all.PutToken(ctx, "reader--1", "reader"))
	own := all.Of("reader--1").Partition().Number()
	away, other := (own+1)%3, (own+2)%3
	forget := func(number rdb.Number) {
		p := data[number].Partition()
		require.NoError(t, p.HDel(ctx, p.Namespace()+"api_tokens:by_token", "reader--1").Err())
	}
	forget(other)
	servers[away].Kill(t)
	examine := func(fix bool) (lines []string) {
		_, err := doctor.Of(all, 0).Examine(ctx, fix, func(f doctor.Finding) { lines = append(lines, fmt.Sprint(line(f), f.Fixed)) })
		require.NoError(t, err)
		slices.Sort(lines)
		return lines
	}
	want := []string{
		fmt.Sprintf(`%v partition: is away: not examined, or not to the end []false`, away),
		fmt.Sprintf(`%v api_tokens:by_token: lacks reader, of partition %v []false`, other, own),
	}
	slices.Sort(want)
	assert.Equal(t, want, examine(false))
	assert.Equal(t, want, examine(true), "a token is copied to all or none")
	servers[away].Restart(t)
	require.NoError(t, data[away].Partition().Release(ctx)) // it has lost its keys
	examine(true)
	assert.Empty(t, examine(false))
}

// TestDoctorOnACluster breaks partitions on several nodes, one of which has failed over.
func TestDoctorOnACluster(t *testing.T) {
	t.Parallel()
	c := rdbtest.NewCluster(t, storetest.PartitionCount, time.Second)
	p := newDividedPatient(t, c.Open(t))
	c.FailOver(t, p.All[0])
	require.Eventually(t, func() bool { return p.Ping(p.ctx) == nil }, time.Minute, 10*time.Millisecond)
	require.Empty(t, p.examine(true))
	want := []string{}
	for _, a := range slices.Concat(relayDamages, acrossDamages) {
		switch a.name {
		case "an outbox without a relay", "a topic of which its home has nothing", "a token of another client":
			a.does(p)
			for _, line := range a.finds {
				want = append(want, strings.NewReplacer("%[1]s", string(p.a), "%[2]s", string(p.b)).Replace(line))
			}
		}
	}
	assert.Len(t, want, 4)
	assert.ElementsMatch(t, want, p.examine(false))
	assert.ElementsMatch(t, want, p.examine(true))
	assert.Empty(t, p.examine(true))
	p.requireDelivered()
}
