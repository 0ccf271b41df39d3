package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/jobs"
)

// source has jobs to fetch, and gives notice of new ones.
type source struct {
	*pulls
	notice chan error
	cancel context.CancelFunc

	lock sync.Mutex
	// queued is how many jobs of a type there are.
	queued map[jobs.TypeName]int
	// order lists the clients in the order of their results, with the reason if one got no job.
	order         []string
	looks, awaits int
	// refused are the types that a request may not wait for.
	refused []jobs.TypeName
}

func (s *source) admit(_ context.Context, name jobs.TypeName) error {
	if slices.Contains(s.refused, name) {
		return jobs.ErrNotClient
	}
	return nil
}

// begin runs a source in a bubble, to whose end it must be stopped.
func begin(t *testing.T) *source {
	s := &source{pulls: newPulls(), notice: make(chan error)}
	ctx, stop := context.WithCancel(t.Context())
	s.cancel = stop
	go s.run(ctx, func(ctx context.Context, longest time.Duration) ([]jobs.TypeName, error) {
		s.locked(func() { s.awaits++ })
		select {
		case err := <-s.notice:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(longest):
			return nil, nil
		}
	})
	return s
}

// fetch waits for a job in a goroutine.
func (s *source) fetch(ctx context.Context, who string, name jobs.TypeName, longest time.Duration) {
	go func() {
		found, err := s.wait(ctx, name, longest, s.admit, func() (found []jobs.Job, err error) {
			s.locked(func() {
				s.looks++
				if s.queued[name] > 0 {
					s.queued[name]--
					s.order = append(s.order, who)
					found = make([]jobs.Job, 1)
				}
			})
			return found, nil
		})
		switch {
		case err != nil:
			s.locked(func() { s.order = append(s.order, who+" failed") })
		case len(found) == 0:
			s.locked(func() { s.order = append(s.order, who+" got none") })
		}
	}()
	synctest.Wait()
}

func (s *source) locked(f func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	f()
}

// add adds jobs of types.
func (s *source) add(queued map[jobs.TypeName]int) { s.locked(func() { s.queued = queued }) }

func TestWhoWaitsFirstIsServedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		defer s.cancel()
		for i := range 5 {
			s.fetch(t.Context(), fmt.Sprint("a", i), "a", 30*time.Second)
		}
		s.fetch(t.Context(), "b0", "b", 30*time.Second)
		s.looks = 0
		s.add(map[jobs.TypeName]int{"a": 3})
		s.notice <- nil
		synctest.Wait()
		assert.Equal(t, []string{"a0", "a1", "a2"}, s.order)
		assert.Equal(t, 5, s.looks, "of those that got a job, and of the heads of the lines then")

		gone, leave := context.WithCancel(t.Context())
		s.fetch(gone, "a5", "a", 30*time.Second)
		s.fetch(t.Context(), "a6", "a", 30*time.Second)
		leave()
		synctest.Wait()
		s.add(map[jobs.TypeName]int{"a": 3, "b": 1})
		time.Sleep(pollInterval) // without a notice
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a5 failed", "a3", "a4", "a6", "b0"}, s.order[3:])
		assert.Zero(t, s.queued["a"])
		assert.Empty(t, s.lines)
	})
}

func TestNobodyWaitsBehindOthersForATypeOfOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		defer s.cancel()
		s.fetch(t.Context(), "head", "a", time.Second)
		s.refused = []jobs.TypeName{"a"}
		s.fetch(t.Context(), "other", "a", time.Second)
		assert.Equal(t, []string{"other failed"}, s.order)
		assert.Len(t, s.lines["a"], 1)
	})
}

func TestNobodyLooksForAClientThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		defer s.cancel()
		gone, leave := context.WithCancel(t.Context())
		leave()
		for range 20 { // its turn has come as well
			s.fetch(gone, "gone", "a", time.Second)
		}
		assert.Zero(t, s.looks)
	})
}

func TestAWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		started := time.Now()
		s.fetch(t.Context(), "one", "a", 2500*time.Millisecond)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, []string{"one got none"}, s.order)
		assert.Equal(t, 2500*time.Millisecond, time.Since(started))
		time.Sleep(pollInterval)
		synctest.Wait()
		awaits := s.awaits
		time.Sleep(time.Hour)
		assert.Equal(t, awaits, s.awaits, "nobody waits")

		s.fetch(t.Context(), "two", "a", 30*time.Second)
		s.notice <- errors.New("redis is unavailable")
		time.Sleep(pollInterval)
		s.cancel()
		synctest.Wait()
		assert.Equal(t, "two got none", s.order[1], "the process ends")
		s.fetch(t.Context(), "three", "a", 30*time.Second)
		assert.Contains(t, s.order[2], "three got none")
	})
}
