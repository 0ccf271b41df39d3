package jobs_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
)

// stood is a job, and when it was enqueued.
type stood struct {
	id   jobs.ID
	at   time.Time
	name jobs.TypeName
}

// newestFirst are the ids of jobs in the order of lists.
func newestFirst(all []stood) (ids []jobs.ID) {
	slices.SortFunc(all, func(a, b stood) int {
		if order := b.at.Compare(a.at); order != 0 {
			return order
		}
		return strings.Compare(string(b.id), string(a.id))
	})
	for _, one := range all {
		ids = append(ids, one.id)
	}
	return ids
}

// TestListsAreMerged has jobs of types of all partitions, some at the same moment.
func TestListsAreMerged(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		ctx, names := t.Context(), s.addAll()
		beside := s.typeIn(0, 1)
		s.add(beside)
		assert.Empty(t, s.pages(false, jobs.Filter{Limit: 1}))
		random := rand.New(rand.NewPCG(1, 2))
		var all []stood
		for n := range 60 {
			name := append(names, beside)[random.IntN(4)]
			all = append(all, stood{id(n), s.put(name, n), name})
			if random.IntN(3) > 0 || slices.ContainsFunc(all, func(o stood) bool { return o.name == name && o.at.Equal(s.now) }) {
				s.now = s.now.Add(time.Microsecond) // or the next of a type would be a little later than now
			}
		}
		isOf := func(name jobs.TypeName) func(stood) bool { return func(o stood) bool { return o.name == name } }
		without := func(remove func(stood) bool) []jobs.ID {
			return newestFirst(slices.DeleteFunc(slices.Clone(all), remove))
		}
		s.fetch(names[2], 3)
		for _, limit := range []int{1, 2, 3, 7, 59, 60, 100} {
			assert.Equal(t, newestFirst(all), s.pages(false, jobs.Filter{Limit: limit}), "%d", limit)
			assert.Equal(t, without(func(o stood) bool { return !isOf(names[1])(o) }), s.pages(false, jobs.Filter{Type: names[1], Limit: limit}))
			assert.Len(t, s.pages(false, jobs.Filter{Status: jobs.InProgress, Limit: limit}), 3)
			assert.Len(t, s.pages(false, jobs.Filter{Status: jobs.Queued, Limit: limit}), 57)
			assert.Empty(t, s.pages(true, jobs.Filter{Limit: limit}))
		}

		var archived []stood
		for _, i := range random.Perm(len(all)) {
			s.now = s.now.Add(time.Second)
			_, err := s.Of(all[i].name).Cancel(ctx, all[i].name, all[i].id, s.now)
			require.NoError(t, err)
			archived = append(archived, stood{all[i].id, s.now, all[i].name})
		}
		for _, limit := range []int{1, 7, 100} {
			assert.Equal(t, newestFirst(archived), s.pages(true, jobs.Filter{Limit: limit}))
			assert.Equal(t, newestFirst(archived), s.pages(true, jobs.Filter{Status: jobs.Cancelled, Limit: limit}))
			assert.Empty(t, s.pages(true, jobs.Filter{Status: jobs.Failed, Limit: limit}))
		}
		_, _, err := s.Open(ctx, jobs.Filter{Before: "never", Limit: 1})
		var invalid *bus.Invalid
		require.ErrorAs(t, err, &invalid)
		s.bus.RequireSound()
	})
}

// TestJobsOfOneIDAndMomentAreOnOnePage although only one was asked for: the cursor of a page cannot
// say that the next begins between them.
func TestJobsOfOneIDAndMomentAreOnOnePage(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		names := s.addAll()
		s.put(names[1], 1)
		s.now = s.now.Add(time.Second)
		for _, name := range names {
			s.put(name, 7)
		}
		page, next, err := s.Open(t.Context(), jobs.Filter{Limit: 1})
		require.NoError(t, err)
		require.Len(t, page, 3)
		page, next, err = s.Open(t.Context(), jobs.Filter{Limit: 1, Before: next})
		require.NoError(t, err)
		require.Len(t, page, 1)
		assert.Equal(t, id(1), page[0].ID)
		assert.Empty(t, next)
	})
}

// TestAPageLooksOnlySoFar has a few jobs of a status behind hundreds of another one in a partition,
// and others before and behind these in the next partition.
func TestAPageLooksOnlySoFar(t *testing.T) {
	each(t, func(t *testing.T, s *shops) {
		ctx, names := t.Context(), s.addAll()
		var list []jobs.NewJob
		for n := range 1700 {
			list = append(list, jobs.NewJob{ID: id(1000 + n), Data: []byte("1")})
		}
		var want []stood
		put := func(name jobs.TypeName, n int) {
			s.now = s.now.Add(time.Second)
			want = append(want, stood{id(n), s.put(name, n), name})
		}
		put(names[0], 1)
		put(names[1], 2)
		s.now = s.now.Add(time.Second)
		_, err := s.Of(names[0]).Enqueue(ctx, names[0], list, "", s.now)
		require.NoError(t, err)
		put(names[1], 3)
		put(names[0], 4)
		// All but those four are in progress, though no worker fetches them in this order.
		marked := s.bus.All[0]
		require.NoError(t, marked.Pipelined(ctx, "mark", func(pipe rdb.Commands) {
			for _, job := range list {
				pipe.HSet(ctx, layout.Keys{Namespace: marked.Namespace()}.Job(string(job.ID)), "status", "in-progress")
			}
		}))
		page, next, err := s.Open(ctx, jobs.Filter{Status: jobs.Queued, Limit: 10})
		require.NoError(t, err)
		assert.Len(t, page, 2, "it goes on behind some of the others")
		assert.NotEmpty(t, next)
		for _, limit := range []int{1, 2, 10} {
			assert.Equal(t, newestFirst(want), s.pages(false, jobs.Filter{Status: jobs.Queued, Limit: limit}), "%d", limit)
		}
	})
}
