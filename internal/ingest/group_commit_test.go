package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/ingest"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store"
	"routemaster/internal/store/storetest"
	"routemaster/internal/wire"
	"routemaster/internal/wire/wiretest"
)

// soon is the timeout of tests; a wait takes that long only if the test fails.
const soon = time.Minute

// fixture is an ingest on a real Redis, which can be frozen to keep a commit under way.
type fixture struct {
	*ingest.Ingest
	t      *testing.T
	server *rdbtest.Server
	store  *store.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server := rdbtest.Real(t)
	// Requests must not time out while Redis is frozen, however long the test takes.
	client := server.Open(t, func(o *rdb.Options) { o.URL += "&read_timeout=5m" })
	st := store.New(client.Partition(""), store.Options{})
	for _, name := range []string{"alice", "bob", "subscriber"} {
		require.NoError(t, st.PutToken(t.Context(), bus.Token(name), bus.ClientName(name)))
	}
	timeout, maxEvents := time.Hour, 10_000
	require.NoError(t, st.Subscribe(t.Context(), "subscriber", bus.Subscription{
		Topics: []bus.TopicName{"widgets", "gadgets"}, Callback: "https://s.example/", Timeout: &timeout, MaxEvents: &maxEvents,
	}, time.UnixMilli(0)))
	return &fixture{ingest.New(store.NewBus(st), ingest.Options{}), t, server, st}
}

// publish publishes events with numbers from first on.
func (f *fixture) publish(ctx context.Context, publisher bus.Token, topic bus.TopicName, first, events int) error {
	var packed []wire.PackedEvent
	for n := first; n < first+events; n++ {
		packed = append(packed, wiretest.Pack(f.t, topic, fmt.Sprintf(`{"type":"update","url":"https://x.example/%d"}`, n)))
	}
	return f.Publish(ctx, publisher, topic, packed, nil)
}

// begin publishes in the background.
func (f *fixture) begin(ctx context.Context, publisher bus.Token, topic bus.TopicName, number int) (result chan error) {
	result = make(chan error, 1)
	go func() { result <- f.publish(ctx, publisher, topic, number, 1) }()
	return result
}

// waitForQueue waits until so many requests wait for the next commit.
func (f *fixture) waitForQueue(waiting int) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return f.Waiting() == waiting }, soon, time.Millisecond)
}

// stored are the numbers of the events in all batches, in order.
func (f *fixture) stored() (numbers []int) {
	f.t.Helper()
	ctx := f.t.Context()
	for _, bid := range f.server.Raw.ZRange(ctx, "batches:index", 0, -1).Val() {
		for _, event := range f.server.Raw.LRange(ctx, "batch:"+bid, 3, -1).Val() {
			_, rest, _ := strings.Cut(event, "x.example/")
			n, err := strconv.Atoi(strings.TrimSuffix(rest, "\xa1d\xc0"))
			require.NoError(f.t, err)
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (f *fixture) scriptsRun() int {
	f.t.Helper()
	info := f.server.Raw.Info(f.t.Context(), "commandstats").Val()
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	calls, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(calls)
	require.NoError(f.t, err, info)
	return n
}

func TestWhatComesDuringACommitIsCommittedTogether(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	require.NoError(t, f.publish(ctx, "alice", "widgets", 1, 1))
	before := f.scriptsRun()

	f.server.Freeze(t)
	results := []chan error{f.begin(ctx, "alice", "widgets", 2)}
	f.waitForQueue(0)
	for n := range 50 {
		results = append(results, f.begin(ctx, "alice", "widgets", 3+n))
		f.waitForQueue(n + 1)
	}
	f.server.Thaw(t)
	for _, result := range results {
		require.NoError(t, <-result)
	}
	assert.Equal(t, 2, f.scriptsRun()-before, "one for the first, one for the fifty that came meanwhile")
	var want []int
	for n := 1; n <= 52; n++ {
		want = append(want, n)
	}
	assert.Equal(t, want, f.stored(), "in order of arrival")
}

func TestABadRequestFailsNoOther(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	require.NoError(t, f.publish(ctx, "alice", "widgets", 1, 1))
	f.server.Freeze(t)
	first := f.begin(ctx, "alice", "widgets", 2)
	f.waitForQueue(0)
	good := f.begin(ctx, "alice", "widgets", 3)
	f.waitForQueue(1)
	bad := f.begin(ctx, "bob", "widgets", 4) // it is alice's topic
	f.waitForQueue(2)
	unknown := f.begin(ctx, "nobody", "gadgets", 5)
	f.waitForQueue(3)
	other := f.begin(ctx, "bob", "gadgets", 6)
	f.waitForQueue(4)
	f.server.Thaw(t)
	assert.NoError(t, <-first)
	assert.NoError(t, <-good)
	assert.ErrorIs(t, <-bad, bus.ErrTopicClaimed)
	assert.ErrorIs(t, <-unknown, bus.ErrTokenUnknown)
	assert.NoError(t, <-other)
	assert.Equal(t, []int{1, 2, 3, 6}, f.stored())
}

func TestACallerWhoLeavesIsNotCommitted(t *testing.T) {
	f := newFixture(t)
	gone, leave := context.WithCancelCause(t.Context())
	f.server.Freeze(t)
	leader := f.begin(gone, "alice", "widgets", 1)
	f.waitForQueue(0)
	waiting := f.begin(gone, "alice", "widgets", 2)
	f.waitForQueue(1)
	stays := f.begin(t.Context(), "alice", "widgets", 3)
	f.waitForQueue(2)
	why := errors.New("the client has left")
	leave(why)
	assert.ErrorIs(t, <-waiting, why)
	f.server.Thaw(t)
	assert.NoError(t, <-leader, "it had been taken into a commit, on which others depend")
	assert.NoError(t, <-stays)
	assert.Equal(t, []int{1, 3}, f.stored())
}

func TestARedisThatDoesNotAnswerFailsEachCommit(t *testing.T) {
	f := newFixture(t)
	f.server.Kill(t)
	var results []chan error
	for n := range 20 {
		results = append(results, f.begin(t.Context(), "alice", "widgets", n))
	}
	for _, result := range results {
		assert.ErrorIs(t, <-result, bus.ErrUnavailable)
	}
	f.server.Restart(t)
	require.Eventually(t, func() bool { return f.store.PutToken(t.Context(), "alice", "alice") == nil }, soon, time.Millisecond)
	assert.NoError(t, f.publish(t.Context(), "alice", "widgets", 100, 1), "nothing is stuck")
}

// TestManyPublishersAtOnce publishes from many clients at once while some leave at random moments.
// Each acknowledged event is stored once, in its publisher's order.
func TestManyPublishersAtOnce(t *testing.T) {
	const publishers, requests = 16, 200
	f := newFixture(t)
	var mu sync.Mutex
	acknowledged := map[int]bool{}
	var running sync.WaitGroup
	for p := range publishers {
		running.Go(func() {
			for n := range requests {
				number := p*1000 + n
				ctx, cancel := context.WithCancel(t.Context())
				if p%4 == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1000))*time.Microsecond, cancel)
				}
				err := f.publish(ctx, "alice", "widgets", number, 1)
				cancel()
				if err == nil {
					mu.Lock()
					acknowledged[number] = true
					mu.Unlock()
				} else {
					assert.ErrorIs(t, err, context.Canceled)
				}
			}
		})
	}
	running.Wait()
	last := map[int]int{}
	for _, number := range f.stored() {
		publisher := number / 1000
		assert.Greater(t, number, last[publisher]-1, "in order")
		last[publisher] = number + 1
		delete(acknowledged, number)
	}
	assert.Empty(t, acknowledged, "lost")
	storetest.RequireSound(t, f.store)
}

// TestRequestsThatOpenTooManyBatchesOnlyTogetherAreStored queues ten requests for a commit. Each is
// small enough, but not all of them together.
func TestRequestsThatOpenTooManyBatchesOnlyTogetherAreStored(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	timeout, one := time.Hour, 1
	for n := range 501 {
		token := bus.Token(fmt.Sprintf("s--%d", n))
		require.NoError(t, f.store.PutToken(ctx, token, "s"))
		require.NoError(t, f.store.Subscribe(ctx, token, bus.Subscription{
			Topics: []bus.TopicName{"widgets"}, Callback: "https://s.example/", Timeout: &timeout, MaxEvents: &one,
		}, time.UnixMilli(0)))
	}
	f.server.Freeze(t)
	results := []chan error{f.begin(ctx, "alice", "gadgets", 1)} // the commit that the others wait for
	f.waitForQueue(0)
	for n := range 10 {
		result := make(chan error, 1)
		go func() { result <- f.publish(ctx, "alice", "widgets", 10*n, 10) }()
		results = append(results, result)
		f.waitForQueue(n + 1)
	}
	f.server.Thaw(t)
	for _, result := range results {
		require.NoError(t, <-result)
	}
	assert.Equal(t, int64(501*100+1), f.server.Raw.ZCard(ctx, "batches:index").Val(), "one for each event, and the one that takes all")
	require.ErrorIs(t, f.publish(ctx, "alice", "widgets", 0, 100), bus.ErrTooManyBatches, "one request may not")
}

// TestAPartitionThatHangsHoldsUpItsTopicsOnly has two partitions, each on a Redis of its own, and
// freezes one.
func TestAPartitionThatHangsHoldsUpItsTopicsOnly(t *testing.T) {
	all, servers := storetest.Apart(t, 2, func(o *rdb.Options) { o.URL += "&read_timeout=5m" })
	for _, st := range all {
		require.NoError(t, st.PutToken(t.Context(), "alice", "alice"))
	}
	stores := store.NewBus(all...)
	f := &fixture{Ingest: ingest.New(stores, ingest.Options{}), t: t, server: servers[0]}
	var topics [2]bus.TopicName // by home
	for n := 0; topics[0] == "" || topics[1] == ""; n++ {
		topic := bus.TopicName(fmt.Sprintf("topic_%c", 'a'+n))
		topics[stores.Home(topic).Partition().Number()] = topic
	}
	f.server.Freeze(t)
	hanging := []chan error{f.begin(t.Context(), "alice", topics[0], 1)}
	f.waitForQueue(0)
	hanging = append(hanging, f.begin(t.Context(), "alice", topics[0], 2))
	f.waitForQueue(1)
	for n := range 10 {
		require.NoError(t, f.publish(t.Context(), "alice", topics[1], n, 1))
	}
	f.waitForQueue(1)
	f.server.Thaw(t)
	for _, result := range hanging {
		require.NoError(t, <-result)
	}
}
