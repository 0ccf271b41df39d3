package doctor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/doctor"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestEveryDamageIsFoundAndRepaired breaks a sound bus in every way. Doctor must find exactly that,
// change nothing unless asked to fix it, and repair it at once; then everything is delivered.
func TestEveryDamageIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	all := slices.Concat(damages, optionDamages, laneDamages, historyDamages, replayDamages, skipped)
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, a := range all[:rdbtest.Fewer(len(all))] {
			t.Run(a.name, func(t *testing.T) {
				require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
				p := newPatient(t, server)
				a.does(p)
				want := []string{}
				for _, line := range a.finds {
					if strings.Contains(line, "%") {
						line = fmt.Sprintf(line+"%[5]s", p.running, p.waiting, p.current, p.bobs, "")
					}
					want = append(want, line)
				}
				before := dump(t, server.Raw)
				assert.ElementsMatch(t, want, p.examine(false))
				assert.Equal(t, before, dump(t, server.Raw), "looking changes nothing")
				assert.ElementsMatch(t, want, p.examine(true))
				fixed := dump(t, server.Raw)
				if !a.stays {
					assert.Empty(t, p.examine(true), "it is repaired")
				} else {
					p.examine(true)
				}
				assert.Equal(t, fixed, dump(t, server.Raw), "a second repair changes nothing")
				if a.stays {
					return
				}
				got := p.drain()
				assert.Len(t, got, 5+eventsOfPatient-a.loses, "%v", slices.Sorted(maps.Keys(got)))
				p.RequireSound()
			})
		}
	})
}

// TestTwoRepairsAtOnce has two examinations repair the same damage, time and again.
func TestTwoRepairsAtOnce(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for range 10 {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			p := newPatient(t, server)
			loses := 0
			for _, a := range slices.Concat(damages, optionDamages) {
				if slices.Contains([]string{
					"a batch that is not in the index", "an entry of the index without a batch", "a batch without a job", "a batch in a lane without a job",
					"a job that two workers have", "jobs for batches that are gone", "another's batch as current and in the lane",
					"leftovers of a deleted subscriber", "wrong gauges", "a worker that a scrub does not find", "housekeeping in two states, and not in the index",
					"subscriptions of which one side is left", "a subscription to no topic", "a subscriber and a topic that are not listed",
				}, a.name) {
					a.does(p)
					loses += a.loses
				}
			}
			var both sync.WaitGroup
			var told [2]int
			for i := range told {
				both.Go(func() {
					_, err := p.doctor().Examine(p.ctx, true, func(doctor.Finding) { told[i]++ })
					assert.NoError(t, err)
				})
			}
			both.Wait()
			assert.Empty(t, p.examine(false), "told: %v", told)
			got := p.drain()
			assert.Len(t, got, 5+eventsOfPatient-loses)
			for event, times := range got {
				assert.Equal(t, 1, times, event)
			}
			p.RequireSound()
		}
	})
}

// TestARepairKeepsASubscription removes half of a subscription to a topic without publishes.
func TestARepairKeepsASubscription(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		for _, key := range []string{"", "topics:alice--1", "subscribers:rarely"} {
			require.NoError(t, server.Raw.FlushAll(t.Context()).Err())
			p := &patient{fixture: newFixture(t, server), ctx: t.Context()}
			p.AddSubscriber(alice, 0, 1, "rarely", "widgets")
			p.Redis.SRem(p.ctx, "topics", "rarely")
			if key != "" {
				p.Redis.SRem(p.ctx, key, "rarely", "alice--1")
			}
			p.examine(true)
			p.PublishEvents("rarely", 1, 1, 0)
			assert.Equal(t, map[string]int{"alice--1 1": 1}, p.drain(), key)
			p.RequireSound()
		}
	})
}

// TestOnlyThoseThatFailAreCounted has a subscriber that was served, and one whose delivery failed.
func TestOnlyThoseThatFailAreCounted(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		f := newFixture(t, server)
		f.AddSubscriber(alice, 0, 1, "widgets")
		f.AddSubscriber(bob, 0, 1, "gadgets")
		for topic, result := range map[bus.TopicName]storetest.Result{
			"widgets": {Health: 1, Delivered: 1},
			"gadgets": {Health: -1, Failure: bus.EndpointFailure, RetryAt: after(1000)},
		} {
			f.PublishEvents(topic, 1, 1, 0)
			f.Complete(f.Take("w1", 0), result)
		}
		require.NotZero(t, f.Redis.Exists(t.Context(), "delivery:"+string(alice)).Val())
		stats, err := f.doctor().Examine(t.Context(), false, func(doctor.Finding) {})
		require.NoError(t, err)
		assert.Equal(t, 1, stats.Failing)
	})
}

// TestRedisThatRefusesScripts is not in order, whatever is in it.
func TestRedisThatRefusesScripts(t *testing.T) {
	server := rdbtest.Real(t)
	if server.IsCluster() {
		t.Skip("it sets the access rules of one server")
	}
	p := newPatient(t, server)
	for i, want := range []string{"scripts: redis refuses to run them (NOPERM), so nothing was examined: publishers get 503, and nothing is delivered []", ""} {
		right := []string{"-evalsha", "+evalsha"}[i]
		require.NoError(t, server.Raw.Do(t.Context(), "acl", "setuser", "default", right).Err())
		assert.Equal(t, want, strings.Join(p.examine(false), "\n"))
	}
}
