package doctor_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/rdb/rdbtest"
)

const eventsOfLongQueue = 2500

// damageLongQueue makes a queue of as many instant jobs, and breaks some of them. It returns the
// batches without a job, the jobs in several places, and the jobs without a batch.
func damageLongQueue(p *patient) (jobless, several, gone []string) {
	p.AddSubscriber(alice, 0, 1, "widgets")
	for i := 0; i < eventsOfLongQueue; i += 500 {
		p.PublishEvents("widgets", i+1, i+500, i)
	}
	require.Empty(p.T, p.examine(false))
	queue := p.Redis.LRange(p.ctx, "jobs:instant:main", 0, -1).Val()
	require.Len(p.T, queue, eventsOfLongQueue)
	for _, i := range []int{0, 1, 999, 1000, 1001, 2000, 2498, 2499} {
		p.Redis.LRem(p.ctx, "jobs:instant:main", 1, queue[i])
		jobless = append(jobless, queue[i][len(jobHead):])
	}
	for _, i := range []int{5, 1500, 2400} { // instant three times
		p.Redis.LPush(p.ctx, "jobs:instant:main", queue[i])
		p.Redis.RPush(p.ctx, "jobs:instant:main", queue[i])
		several = append(several, queue[i][len(jobHead):])
	}
	for _, i := range []int{10, 1600, 2300} { // also scheduled
		p.Redis.ZAdd(p.ctx, "jobs:scheduled:main", redis.Z{Score: 1, Member: queue[i]})
		several = append(several, queue[i][len(jobHead):])
	}
	for _, i := range []int{20, 1700, 2200} {
		bid := fmt.Sprintf("GONE%016d", i)
		p.Redis.LInsertBefore(p.ctx, "jobs:instant:main", queue[i], job(bid))
		gone = append(gone, bid)
	}
	return jobless, several, gone
}

// TestALongQueue has a queue that is read in several slices.
func TestALongQueue(t *testing.T) {
	t.Parallel()
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		p := &patient{fixture: newFixture(t, server), ctx: t.Context()}
		jobless, several, gone := damageLongQueue(p)
		var want []string
		for _, bid := range jobless {
			want = append(want, fmt.Sprintf("batch:%s: has no job [given one, to be run now]", bid))
		}
		for _, bid := range several {
			want = append(want, fmt.Sprintf(`job ["batch" "%s"]: is in more than one place [reduced to one]`, bid))
		}
		for _, bid := range gone {
			want = append(want, fmt.Sprintf(`job ["batch" "%s"]: is for a batch that is not there [removed]`, bid))
		}
		before := dump(t, p.Redis)
		assert.ElementsMatch(t, want, p.examine(false))
		assert.Equal(t, before, dump(t, p.Redis))
		assert.ElementsMatch(t, want, p.examine(true))
		assert.Empty(t, p.examine(true))
		got := p.drain()
		assert.Len(t, got, eventsOfLongQueue)
		for event, times := range got {
			require.Equal(t, 1, times, event)
		}
		p.RequireSound()
	})
}

// TestAJobThatCameInSinceIsNotMissing makes a job, unseen by the scan, instant before the doctor
// looks again, and others after it.
func TestAJobThatCameInSinceIsNotMissing(t *testing.T) {
	server := rdbtest.Embedded(t)
	p := &patient{fixture: newFixture(t, server), ctx: t.Context()}
	p.AddSubscriber(alice, 0, 1, "widgets")
	p.PublishEvents("widgets", 1, 50, 0)
	back := p.Redis.LIndex(p.ctx, "jobs:instant:main", 25).Val()
	p.Redis.LRem(p.ctx, "jobs:instant:main", 1, back)
	var once sync.Once
	server.OnCommand(func(name string, arguments ...string) {
		if name == "EVALSHA" && slices.Contains(arguments, "LPOS") && slices.Contains(arguments, back) {
			once.Do(func() {
				p.Redis.LPush(p.ctx, "jobs:instant:main", back)
				p.publishNow("widgets", 51, 69)
			})
		}
	})
	assert.Empty(t, p.examine(true))
	assert.Empty(t, p.examine(true))
	assert.Len(t, p.drain(), 69)
}
