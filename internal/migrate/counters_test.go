package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

func TestMigrateHidesTokensInCounters(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		gone := "carol--0123456789abcdef0123456789abcdef"
		counter := func(name string, values ...string) bus.Counter {
			var tags []bus.Tag
			for i, value := range values {
				tags = append(tags, bus.Tag{Name: []string{"queue", "status"}[i], Value: value})
			}
			return bus.NewCounter(name, tags...)
		}
		require.NoError(t, l.AddCounters(l.ctx, map[bus.Counter]int64{
			counter("events.added", string(storetest.Alice)): 5, counter("events.added", "alice"): 2,
			counter("delivery.batches", gone, "success"): 3, counter("jobs.scrubbed", "main"): 1,
		}))
		l.Redis.HSet(l.ctx, "counters", "\xc1", 1)
		before := rdbtest.Dump(t, l.Redis)
		would, _ := l.migrate(migrate.Options{})
		assert.Equal(t, before, rdbtest.Dump(t, l.Redis))
		done, _ := l.apply()
		assert.Equal(t, would, done)
		assert.Equal(t, 2, done.Renamed)
		counts, err := l.Counters(l.ctx)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Counter]int64{
			counter("events.added", "alice"): 7, counter("delivery.batches", string(bus.PublicName(bus.Token(gone), "")), "success"): 3, counter("jobs.scrubbed", "main"): 1,
		}, counts)
		done, _ = l.apply()
		assert.True(t, done.NothingLeft(), done)
	})
}

func TestMigrateLeavesCountersThatAreNoNumbers(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		l := newLeft(t, server)
		counter := bus.NewCounter("events.added", bus.Tag{Name: "queue", Value: string(storetest.Alice)})
		require.NoError(t, l.AddCounters(l.ctx, map[bus.Counter]int64{counter: 5}))
		field := l.Redis.HKeys(l.ctx, "counters").Val()[0]
		l.Redis.HSet(l.ctx, "counters", field, "1.5")
		l.Redis.HSet(l.ctx, "batches:gauges:event", "carol--3", 0)
		would, reports := l.migrate(migrate.Options{})
		assert.Equal(t, []string{"counters: 1 counters with a token in their name whose value is no integer [refused]"}, reports)
		done, applied := l.apply()
		assert.Equal(t, would, done)
		assert.Equal(t, reports, applied)
		assert.Equal(t, 1, done.Removed, "it goes on")
		assert.Equal(t, "1.5", l.Redis.HGet(l.ctx, "counters", field).Val())
	})
}
