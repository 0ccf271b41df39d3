package inspect_test

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

var (
	published = bus.NewCounter("events.published", bus.Tag{Name: "topic", Value: "widgets"}, bus.Tag{Name: "publisher", Value: "shop"})
	scrubbed  = bus.NewCounter("jobs.scrubbed")
)

// The fields as the Ruby original writes them: MessagePack.dump([name, tags.to_a.sort]).
const (
	publishedField = "\x92\xb0events.published\x92\x92\xa9publisher\xa4shop\x92\xa5topic\xa7widgets"
	scrubbedField  = "\x92\xadjobs.scrubbed\x90"
)

func TestCountersAreStoredAsDocumented(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.NewBus(t, server)
		ctx := t.Context()
		for range 2 {
			increments := map[bus.Counter]int64{published: 3, scrubbed: 1}
			require.NoError(t, st.AddCounters(ctx, increments))
			assert.Empty(t, increments, "all are stored")
		}
		assert.Equal(t, map[string]string{publishedField: "6", scrubbedField: "2"}, server.Raw.HGetAll(ctx, "counters").Val())

		server.Raw.HSet(ctx, "counters", "not a counter", "7", "\x92\xa1a\x91\x91\xa1b", "7")
		counters, err := st.Counters(ctx)
		require.NoError(t, err)
		assert.Equal(t, map[bus.Counter]int64{published: 6, scrubbed: 2}, counters)
		storetest.RequireSound(t, st.Store)
	})
}

func TestSomeCountersAreRead(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.NewBus(t, server)
		ctx := t.Context()
		counts, err := st.ReadCounters(ctx, []bus.Counter{published})
		require.NoError(t, err)
		assert.Equal(t, map[bus.Counter]int64{published: 0}, counts, "none has counted")
		counts, err = st.ReadCounters(ctx, nil)
		require.NoError(t, err)
		assert.Empty(t, counts)

		want := map[bus.Counter]int64{published: math.MaxInt64, bus.NewCounter("zero"): 0}
		for i := range 1234 { // in more than one trip
			want[bus.NewCounter("many", bus.Tag{Name: "queue", Value: strconv.Itoa(i)})] = int64(i)
		}
		stored := maps.Clone(want)
		stored[bus.NewCounter("another")] = 7
		require.NoError(t, st.AddCounters(ctx, stored))
		server.Raw.HSet(ctx, "counters", scrubbedField, "many")
		counts, err = st.ReadCounters(ctx, append(slices.Collect(maps.Keys(want)), scrubbed))
		require.NoError(t, err)
		assert.Equal(t, want, counts, "neither what was not asked for, nor what is no number")

		server.Raw.Del(ctx, "counters")
		server.Raw.Set(ctx, "counters", "x", 0)
		counts, err = st.ReadCounters(ctx, []bus.Counter{published})
		require.NoError(t, err)
		assert.Empty(t, counts, "something else is there")
	})
	server := rdbtest.Real(t)
	st := storetest.NewBus(t, server)
	server.Kill(t)
	_, err := st.ReadCounters(t.Context(), []bus.Counter{published})
	require.ErrorIs(t, err, bus.ErrUnavailable)
}

func TestACounterThatCannotGrowBeginsAnew(t *testing.T) {
	server := rdbtest.Real(t) // the embedded engine starts at the minimum by itself
	st := storetest.NewBus(t, server)
	ctx := t.Context()
	server.Raw.HSet(ctx, "counters", publishedField, strconv.FormatInt(math.MaxInt64-1, 10), scrubbedField, "many")
	other := bus.NewCounter("other")
	require.NoError(t, st.AddCounters(ctx, map[bus.Counter]int64{published: 3, scrubbed: 4, other: 5}))
	counters, err := st.Counters(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[bus.Counter]int64{published: 3, scrubbed: 4, other: 5}, counters)
	require.NoError(t, st.AddCounters(ctx, map[bus.Counter]int64{published: 3}))
}

func TestCountersAreKeptWhileRedisIsFullOrAway(t *testing.T) {
	server := rdbtest.Real(t)
	st := storetest.NewBus(t, server)
	ctx := t.Context()
	increments := map[bus.Counter]int64{published: 3, scrubbed: 1}
	require.NoError(t, server.Raw.ConfigSet(ctx, "maxmemory", "1").Err())
	require.ErrorIs(t, st.AddCounters(ctx, increments), bus.ErrUnavailable)
	assert.Equal(t, map[bus.Counter]int64{published: 3, scrubbed: 1}, increments)
	require.NoError(t, server.Raw.ConfigSet(ctx, "maxmemory", "0").Err())
	server.Kill(t)
	require.ErrorIs(t, st.AddCounters(ctx, increments), bus.ErrUnavailable)
	assert.Equal(t, map[bus.Counter]int64{published: 3, scrubbed: 1}, increments)
}

func TestSwapMonitoredReturnsWhatWasThereBefore(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		st := storetest.NewBus(t, server)
		first, second := map[bus.Counter]int64{published: 3, scrubbed: 1}, map[bus.Counter]int64{published: 4}
		for _, c := range []struct{ now, before map[bus.Counter]int64 }{
			{first, map[bus.Counter]int64{}}, {second, first}, {first, second},
		} {
			before, err := st.SwapMonitored(t.Context(), c.now)
			require.NoError(t, err)
			assert.Equal(t, c.before, before)
		}
		storetest.RequireSound(t, st.Store)
	})
}
