package migrate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/migrate"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
)

func TestMain(m *testing.M) { rdbtest.Main(m) }

// original changes Redis as the last version of the Ruby original does, step by step.
type original struct{ *storetest.Bus }

// ingest stores an event for one subscriber, as the original's web does: three steps between which
// anything may happen. It fails when the original would answer 500.
func (o original) ingest(token bus.Token, event wire.PackedEvent, maxEvents int, now, deadline int64) error {
	ctx := o.T.Context()
	current := o.Redis.SRandMember(ctx, "batches:current:"+string(token)).Val()
	bid := o.Redis.Eval(ctx, `
		local bid = ARGV[1]
		if bid == '' or redis.call('SISMEMBER', KEYS[1], bid) == 0 then
			bid = ARGV[2]
			redis.call('SADD', KEYS[1], bid)
			redis.call('ZADD', 'batches:index', ARGV[5], bid)
			redis.call('RPUSH', 'batches:' .. bid, ARGV[4], ARGV[5], 0)
			redis.call('HINCRBY', 'batches:gauges:batch', ARGV[4], 1)
		end
		redis.call('RPUSH', 'batches:' .. bid, ARGV[3])
		redis.call('HINCRBY', 'batches:gauges:event', ARGV[4], 1)
		if redis.call('LLEN', 'batches:' .. bid) - 3 >= tonumber(ARGV[6]) then redis.call('SREM', KEYS[1], bid) end
		return bid`,
		[]string{"batches:current:" + string(token)}, current, newUID(), []byte(event), string(token), now, maxEvents).Val().(string)
	o.enqueue(bid, deadline)
	length := o.Redis.LLen(ctx, "batches:"+bid).Val()
	if length > 0 && length < 3 {
		return fmt.Errorf("batch %s is inconsistent", bid)
	}
	if length-3 >= int64(maxEvents) {
		o.Redis.Eval(ctx, `
			if redis.call('ZREM', 'jobs:scheduled:main', ARGV[1]) == 1 then redis.call('LPUSH', 'jobs:instant:main', ARGV[1]) end
			return 1`, nil, storetest.Job(bid))
	}
	return nil
}

// enqueue adds a batch's job, unless it is there.
func (o original) enqueue(bid string, deadline int64) {
	o.Redis.Eval(o.T.Context(), `
		if redis.call('SADD', 'jobs:index:main', ARGV[1]) == 1 then redis.call('ZADD', 'jobs:scheduled:main', ARGV[2], ARGV[1]) end
		return 1`, nil, storetest.Job(bid), deadline)
}

// take takes a job as the original's worker does, and closes its batch, if it finds it. It returns
// nothing when there is no job.
func (o original) take(worker string, lastSeen time.Time) (bid string) {
	ctx := o.T.Context()
	o.Redis.HSet(ctx, "workers", worker, lastSeen.UnixMilli())
	packed := o.Redis.LMove(ctx, "jobs:instant:main", "jobs:pending:main:"+worker, "RIGHT", "LEFT").Val()
	if packed == "" {
		return ""
	}
	bid = packed[len(storetest.Job("")):]
	o.Redis.SRem(ctx, "batches:current:"+o.Redis.LIndex(ctx, "batches:"+bid, 0).Val(), bid)
	return bid
}

// finish does what the original's worker does after a delivery, or when it does not find the batch.
func (o original) finish(worker, bid string) {
	o.Redis.Eval(o.T.Context(), `
		local key = 'batches:' .. ARGV[1]
		local header, length = redis.call('LRANGE', key, 0, 2), redis.call('LLEN', key)
		redis.call('DEL', key)
		redis.call('ZREM', 'batches:index', ARGV[1])
		if length >= 3 then
			redis.call('HINCRBY', 'batches:gauges:batch', header[1], -1)
			redis.call('HINCRBY', 'batches:gauges:event', header[1], 3 - length)
		end
		redis.call('LREM', 'jobs:pending:main:' .. ARGV[2], 0, ARGV[3])
		redis.call('SREM', 'jobs:index:main', ARGV[3])
		return 1`, nil, bid, worker, storetest.Job(bid))
}

func newUID() string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	uid := make([]byte, bus.UIDLen)
	for i := range uid {
		uid[i] = digits[rand.IntN(len(digits))]
	}
	return string(uid)
}

// left is a bus that the original has left: Alice, whose batches have two events, has 1 to 5; Bob
// has 1 to 3 in one batch that takes in events. Both wait for their time.
type left struct {
	original
	ctx context.Context
}

func newLeft(t *testing.T, server *rdbtest.Server) *left {
	f := storetest.NewBus(t, server)
	l := &left{original{f}, t.Context()}
	f.AddSubscriber(storetest.Alice, 500*time.Millisecond, 2, "widgets")
	f.AddSubscriber(storetest.Bob, time.Hour, 10, "widgets")
	for i := range 5 {
		require.NoError(t, l.ingest(storetest.Alice, storetest.Packed(t, "widgets", i+1), 2, storetest.After(i).UnixMilli(), storetest.After(i+500).UnixMilli()))
	}
	for i := range 3 {
		require.NoError(t, l.ingest(storetest.Bob, storetest.Packed(t, "widgets", i+1), 10, storetest.After(i).UnixMilli(), time.Now().Add(time.Minute).UnixMilli()))
	}
	return l
}

const eventsOfLeft = 8

// batchesOf are the UIDs of a subscriber's batches, oldest first, wherever they are.
func (l *left) batchesOf(token bus.Token) (bids []string) {
	for _, bid := range l.Redis.ZRange(l.ctx, "batches:index", 0, -1).Val() {
		for _, key := range []string{"batches:", "batch:"} {
			if l.Redis.LIndex(l.ctx, key+bid, 0).Val() == string(token) {
				bids = append(bids, bid)
			}
		}
	}
	return bids
}

// migrate returns the counts and the reports of a run.
func (l *left) migrate(m migrate.Options) (migrate.Result, []string) {
	l.T.Helper()
	reports := []string{}
	m.Report = func(u migrate.Unmoved) {
		state := "refused"
		if u.Later {
			state = "later"
		}
		reports = append(reports, fmt.Sprintf("%s: %s [%s]", u.Key, u.Reason, state))
	}
	done, err := migrate.Run(l.ctx, l.Partition, m)
	require.NoError(l.T, err)
	slices.Sort(reports)
	return done, reports
}

func (l *left) apply() (migrate.Result, []string) {
	l.T.Helper()
	return l.migrate(migrate.Options{Apply: true})
}

// drain delivers all batches, due or not, and returns the numbers of each subscriber's events in
// the order of their delivery.
func (l *left) drain() map[bus.Token][]int {
	got := map[bus.Token][]int{}
	for range 3 {
		l.MakeInstant(1 << 40)
		for task := l.Take("w9", 1<<40); task != nil; task = l.Take("w9", 1<<40) {
			if task.Delivery != nil {
				got[task.Delivery.Subscriber] = append(got[task.Delivery.Subscriber], storetest.Numbers(l.T, task)...)
			}
			l.Complete(task, storetest.Done)
		}
	}
	return got
}

func cutUID(key, prefix string) (string, bool) {
	if len(key) == len(prefix)+bus.UIDLen && key[:len(prefix)] == prefix {
		return key[len(prefix):], true
	}
	return "", false
}

func sortedCopy(numbers []int) []int { return slices.Sorted(slices.Values(numbers)) }
