package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
)

// TestQueueSizesAreAboutWhatRedisUses compares the sizes of queues with the memory of Redis, for
// batches of one event and of many.
func TestQueueSizesAreAboutWhatRedisUses(t *testing.T) {
	rdbtest.OneGoroutine(t)
	t.Parallel()
	for _, max := range []int{1, 100} {
		t.Run(fmt.Sprint(max), func(t *testing.T) {
			f := newFixture(t, rdbtest.Real(t))
			ctx := t.Context()
			f.AddSubscriber(storetest.Alice, time.Hour, max, "widgets")
			f.PublishEvents("widgets", 1, max, 0) // so that all scripts and keys are there
			used := func() int64 {
				memory, err := f.Partition.Memory(ctx)
				require.NoError(t, err)
				return memory.Used
			}
			size := func() int64 {
				sizes, err := f.QueueSizes(ctx, storetest.Alice)
				require.NoError(t, err)
				return sizes[storetest.Alice]
			}
			usedBefore, sizeBefore := used(), size()
			const events = 20_000
			for n := 1; n <= events; n += 1000 {
				f.PublishEvents("widgets", n, n+999, n)
			}
			assert.InEpsilon(t, used()-usedBefore, size()-sizeBefore, 0.25)

			none, err := f.QueueSizes(ctx, storetest.Bob)
			require.NoError(t, err)
			assert.Equal(t, map[bus.Token]int64{}, none)
		})
	}
}
