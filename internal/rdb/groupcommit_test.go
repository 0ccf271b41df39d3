package rdb

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fixture is a queue whose first commit goes on until it is released.
type fixture struct {
	*CommitQueue[int]
	released chan struct{}
	mu       sync.Mutex
	commits  [][]int
	contexts []context.Context // of the commits
	failure  error             // of the first commit
}

func newFixture(limits CommitLimits) *fixture {
	f := &fixture{released: make(chan struct{})}
	f.CommitQueue = NewCommitQueue(limits, func(ctx context.Context, calls []int) error {
		<-f.released
		f.mu.Lock()
		defer f.mu.Unlock()
		f.commits = append(f.commits, calls)
		f.contexts = append(f.contexts, ctx)
		if len(f.commits) > 1 {
			return nil
		}
		return f.failure
	})
	return f
}

// begin does a call in the background, and returns once it is committed or waits.
func (f *fixture) begin(ctx context.Context, item int, size CommitSize) (result chan error) {
	result = make(chan error, 1)
	go func() { result <- f.Do(ctx, item, size) }()
	synctest.Wait()
	return result
}

var (
	wide = CommitLimits{Waiting: 100, WaitingBytes: 100, Units: 100, Bytes: 100}
	one  = CommitSize{Units: 1, Bytes: 1}
)

func TestWhatComesDuringACommitIsCommittedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(wide)
		assert.Equal(t, -1, f.Waiting())
		var results []chan error
		for n := range 5 {
			results = append(results, f.begin(t.Context(), n, one))
			assert.Equal(t, n, f.Waiting())
		}
		close(f.released)
		for _, result := range results {
			require.NoError(t, <-result)
		}
		assert.Equal(t, [][]int{{0}, {1, 2, 3, 4}}, f.commits, "in order of arrival")
		assert.Equal(t, -1, f.Waiting())
	})
}

func TestACommitIsBounded(t *testing.T) {
	for name, limits := range map[string]CommitLimits{
		"by units": {Waiting: 100, WaitingBytes: 100, Units: 3, Bytes: 100},
		"by bytes": {Waiting: 100, WaitingBytes: 100, Units: 100, Bytes: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(limits)
			for n := range 5 {
				f.begin(t.Context(), n, one)
			}
			f.begin(t.Context(), 5, CommitSize{Units: 9, Bytes: 9}) // a single one is always accepted
			f.begin(t.Context(), 6, one)
			close(f.released)
			synctest.Wait()
			assert.Equal(t, [][]int{{0}, {1, 2, 3}, {4}, {5}, {6}}, f.commits, name)
		})
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	for name, limits := range map[string]CommitLimits{
		"by calls": {Waiting: 3, WaitingBytes: 100, Units: 100, Bytes: 100},
		"by bytes": {Waiting: 100, WaitingBytes: 3, Units: 100, Bytes: 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(limits)
			var accepted []chan error
			for n := range 4 {
				accepted = append(accepted, f.begin(t.Context(), n, one))
			}
			require.ErrorIs(t, f.Do(t.Context(), 4, one), ErrFull, name)
			close(f.released)
			for _, result := range accepted {
				require.NoError(t, <-result)
			}
			require.NoError(t, f.Do(t.Context(), 5, one), "there is room again")
			assert.Equal(t, [][]int{{0}, {1, 2, 3}, {5}}, f.commits, name)
		})
	}
}

func TestACallerWhoLeavesIsNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(wide)
		why := errors.New("the client has left")
		gone, leave := context.WithCancelCause(t.Context())
		first, waits, stays := f.begin(gone, 1, one), f.begin(gone, 2, one), f.begin(t.Context(), 3, one)
		leave(why)
		assert.ErrorIs(t, <-waits, why)
		close(f.released)
		assert.NoError(t, <-first, "it was in a commit, on which others may depend")
		assert.NoError(t, <-stays)
		assert.Equal(t, [][]int{{1}, {3}}, f.commits)
	})
}

func TestACommitOutlivesTheCallerThatLeadsIt(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	ran := false
	q := NewCommitQueue(wide, func(ctx context.Context, _ []int) error {
		ran = ctx.Err() == nil
		return nil
	})
	require.NoError(t, q.Do(gone, 1, one))
	assert.True(t, ran)
}

// TestACommitHasTheTimeOfTheMostPatient has a commit whose callers all have a deadline, and one of
// which only some have.
func TestACommitHasTheTimeOfTheMostPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(CommitLimits{Waiting: 100, WaitingBytes: 100, Units: 2, Bytes: 100})
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		f.begin(within(time.Second), 0, one)
		f.begin(within(time.Minute), 1, one)
		f.begin(within(time.Hour), 2, one)
		f.begin(within(time.Second), 3, one)
		f.begin(t.Context(), 4, one)
		begun := time.Now()
		close(f.released)
		synctest.Wait()
		require.Equal(t, [][]int{{0}, {1, 2}, {3, 4}}, f.commits)
		for n, want := range []time.Duration{time.Second, time.Hour, 0} {
			deadline, limited := f.contexts[n].Deadline()
			assert.Equal(t, want > 0, limited)
			if limited {
				assert.Equal(t, begun.Add(want), deadline)
			}
		}
	})
}

func TestThoseWhoWaitForACommitThatFailsFailWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(wide)
		f.failure = errors.New("no answer in time")
		first, second, third := f.begin(t.Context(), 1, one), f.begin(t.Context(), 2, one), f.begin(t.Context(), 3, one)
		close(f.released)
		assert.NoError(t, <-first, "it has a result of its own")
		assert.Equal(t, f.failure, <-second)
		assert.Equal(t, f.failure, <-third)
		require.NoError(t, f.Do(t.Context(), 4, one), "the next is tried")
		assert.Equal(t, [][]int{{1}, {4}}, f.commits)
	})
}

// TestAPanicEndsTheCommitForAll makes a commit panic under two calls. Neither the second nor later
// calls may wait for ever.
func TestAPanicEndsTheCommitForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released, commits := make(chan struct{}), 0
		q := NewCommitQueue(wide, func(context.Context, []int) error {
			<-released
			if commits++; commits == 2 {
				panic("in a commit")
			}
			return nil
		})
		panicked := make(chan any, 3)
		for n := range 3 {
			go func() {
				defer func() { panicked <- recover() }()
				_ = q.Do(t.Context(), n, one)
			}()
			synctest.Wait()
		}
		close(released)
		assert.Nil(t, <-panicked)
		synctest.Wait()
		assert.ElementsMatch(t, []any{"in a commit", nil}, []any{<-panicked, <-panicked}, "who led it, and who waited for it")
		require.NoError(t, q.Do(t.Context(), 4, one), "nothing is stuck")
	})
}

func TestCallersAtOnce(t *testing.T) {
	const callers, each = 16, 500
	total := 0 // one commit at a time needs no lock
	q := NewCommitQueue(CommitLimits{Waiting: callers, WaitingBytes: 100, Units: 5, Bytes: 100}, func(_ context.Context, calls []*int) error {
		for _, c := range calls {
			*c++
			total++
		}
		return nil
	})
	var running sync.WaitGroup
	for caller := range callers {
		running.Go(func() {
			for range each {
				done := 0
				ctx, cancel := context.WithCancel(t.Context())
				if caller%4 == 0 {
					time.AfterFunc(0, cancel)
				}
				if q.Do(ctx, &done, one) == nil {
					assert.Equal(t, 1, done)
				} else {
					assert.Zero(t, done)
				}
				cancel()
			}
		})
	}
	running.Wait()
	assert.LessOrEqual(t, total, callers*each)
	assert.Equal(t, -1, q.Waiting())
}
