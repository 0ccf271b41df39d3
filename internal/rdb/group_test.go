package rdb_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// answer returns its argument: a list that begins with 0 or 1, or, for any other argument, an error
// of its own.
var answer = rdb.NewScript(nil, `
redis.call('INCR', ARGV[1] .. 'count')
if ARGV[2] == '0' or ARGV[2] == '1' then return { tonumber(ARGV[2]), ARGV[3] } end
return redis.error_reply('ERR ' .. ARGV[3])`)

// frozen is a group whose Redis is frozen, with two callers that have begun, so that all others
// wait.
type frozen struct {
	*rdb.Group
	server *rdbtest.Server
	done   sync.WaitGroup
}

func freeze(t *testing.T, adjust ...func(*rdb.Options)) *frozen {
	t.Helper()
	f := &frozen{server: rdbtest.Real(t)}
	f.Group = f.server.Open(t, adjust...).Partition("").NewGroup()
	require.NoError(t, f.Run(t.Context(), increment).Err(), "it is connected")
	f.server.Freeze(t)
	f.done.Go(func() { f.Run(t.Context(), increment) })
	f.begin(t, -1, func() { f.Run(t.Context(), increment) })
	return f
}

// begin has a caller wait, as one of so many others.
func (f *frozen) begin(t *testing.T, others int, call func()) {
	t.Helper()
	f.done.Go(call)
	require.Eventually(t, func() bool { return f.Waiting() == others+1 }, time.Minute, time.Millisecond)
}

func (f *frozen) thaw(t *testing.T) {
	t.Helper()
	f.server.Thaw(t)
	f.done.Wait()
}

func TestCallersShareARoundTrip(t *testing.T) {
	f := freeze(t)
	got := make([]int, 50)
	for i := range got {
		f.begin(t, i, func() { got[i], _ = f.Run(t.Context(), increment).Int() })
	}
	f.server.Thaw(t)
	before := f.server.Reads(t)
	f.done.Wait()
	assert.LessOrEqual(t, f.server.Reads(t)-before, 5, "two, two for the fifty others, and the one that asks")
	slices.Sort(got)
	assert.Len(t, slices.Compact(got), 50, "each its own result")
	assert.Equal(t, "53", f.server.Raw.Get(t.Context(), "count").Val(), "each ran once")
}

func TestEachCallerHasItsOwnResult(t *testing.T) {
	f := freeze(t)
	var changed, unchanged, failed rdb.Change
	var plain rdb.Result
	// Redis does not know this script yet.
	f.begin(t, 0, func() { changed = f.Change(t.Context(), answer, 1, "one") })
	f.begin(t, 1, func() { unchanged = f.Change(t.Context(), answer, 0, "two") })
	f.begin(t, 2, func() { failed = f.Change(t.Context(), answer, "fail", "three") })
	f.begin(t, 3, func() { plain = f.Run(t.Context(), answer, 1, "four") })
	f.thaw(t)
	assert.Equal(t, rdb.Change{Changed: true, Results: []any{"one"}}, changed)
	assert.Equal(t, rdb.Change{Results: []any{"two"}}, unchanged)
	assert.ErrorContains(t, failed.Err, "three")
	list, err := plain.List()
	require.NoError(t, err)
	assert.Equal(t, []any{int64(1), "four"}, list)
	assert.Equal(t, "7", f.server.Raw.Get(t.Context(), "count").Val(), "each ran once")
}

func TestReplicasConfirmChangesOnly(t *testing.T) {
	f := freeze(t, func(o *rdb.Options) { o.MinReplicas = 1 })
	var changed, unchanged rdb.Change
	var plain rdb.Result
	f.begin(t, 0, func() { changed = f.Change(t.Context(), answer, 1, "one") })
	f.begin(t, 1, func() { unchanged = f.Change(t.Context(), answer, 0, "two") })
	f.begin(t, 2, func() { plain = f.Run(t.Context(), answer, 1, "three") })
	f.thaw(t)
	assert.ErrorIs(t, rdb.Wrap("change", changed.Err), bus.ErrUnavailable)
	assert.Equal(t, rdb.Change{Results: []any{"two"}}, unchanged, "there is nothing to confirm")
	assert.NoError(t, plain.Err(), "nobody asked for it")
}

func TestACallerWhoLeavesRunsNothing(t *testing.T) {
	f := freeze(t)
	why := errors.New("the client has left")
	gone, leave := context.WithCancelCause(t.Context())
	var run, change error
	f.begin(t, 0, func() { run = f.Run(gone, answer, 1, "").Err() })
	f.begin(t, 1, func() { change = f.Change(gone, answer, 1, "").Err })
	leave(why)
	require.Eventually(t, func() bool { return f.Waiting() == 0 }, time.Minute, time.Millisecond)
	f.thaw(t)
	assert.ErrorIs(t, run, why)
	assert.ErrorIs(t, change, why)
	assert.Equal(t, "3", f.server.Raw.Get(t.Context(), "count").Val())
}

func TestWhatCallersSendIsBounded(t *testing.T) {
	f := freeze(t)
	f.begin(t, 0, func() { f.Run(t.Context(), answer, 1, strings.Repeat("x", 8<<20)) })
	f.begin(t, 1, func() { f.Run(t.Context(), answer, 1, make([]byte, 8<<20)) }) // in the other queue
	for _, err := range []error{f.Run(t.Context(), answer, 1, "").Err(), f.Change(t.Context(), answer, 1, "").Err} {
		assert.ErrorIs(t, err, bus.ErrOverloaded)
		assert.ErrorIs(t, rdb.Wrap("run", err), bus.ErrUnavailable, "for who repeats what Redis has not answered")
	}
	f.thaw(t)
	assert.NoError(t, f.Run(t.Context(), answer, 1, "").Err())
}

func TestARedisThatIsGoneFailsAllCallers(t *testing.T) {
	server := rdbtest.Real(t)
	group := server.Open(t).Partition("").NewGroup()
	server.Kill(t)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			assert.ErrorIs(t, rdb.Wrap("run", group.Run(t.Context(), increment).Err()), bus.ErrUnavailable)
			assert.ErrorIs(t, rdb.Wrap("change", group.Change(t.Context(), answer, 1, "").Err), bus.ErrUnavailable)
		})
	}
	callers.Wait()
	server.Restart(t)
	require.Eventually(t, func() bool { return group.Run(t.Context(), increment).Err() == nil }, time.Minute, time.Millisecond)
}

func TestThoseWhoWaitForARedisThatDoesNotAnswerFailWithIt(t *testing.T) {
	server := rdbtest.Real(t)
	group := server.Open(t).Partition("").NewGroup()
	require.NoError(t, group.Late(t.Context(), increment))
	server.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, rdb.Wrap("run", group.Late(ctx, increment)), bus.ErrUnavailable)
	server.Thaw(t)
	server.Kill(t)
	assert.NoError(t, group.Late(t.Context(), increment), "the next connection may lead to a new master")
}
