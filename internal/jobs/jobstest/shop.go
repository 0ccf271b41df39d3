// Package jobstest opens a store of jobs on a test's own Redis, with a clock.
package jobstest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/layout"
	"routemaster/internal/rdb"
	"routemaster/internal/rdb/rdbtest"
)

// Shop is the jobs of a test, with helpers. An error in a helper fails the test.
type Shop struct {
	*jobs.Store
	// All is the top over it.
	All  *jobs.Bus
	T    testing.TB
	Keys layout.Keys
	// Now is the current time of the shop.
	Now time.Time
}

// NewShop makes a shop on a server, whose clock shows a time.
func NewShop(t testing.TB, server *rdbtest.Server, now time.Time) *Shop {
	const namespace = "w:"
	all := jobs.NewBus(rdb.Partitions{server.Open(t).Partition(namespace)})
	return &Shop{all.All()[0], all, t, layout.Keys{Namespace: namespace}, now}
}

// Add makes a type of three attempts, one at a time, with changes.
func (s *Shop) Add(name jobs.TypeName, changes ...func(*jobs.Type)) {
	s.T.Helper()
	t := jobs.Type{
		Name: name, Strategy: jobs.AtLeastOnce, Attempts: 3, Concurrency: 1, Timeout: time.Minute, Retention: time.Hour,
		CreatedAt: s.Now, UpdatedAt: s.Now,
	}
	for _, change := range changes {
		change(&t)
	}
	require.NoError(s.T, s.CreateType(s.T.Context(), t))
}

// AtMostOnce has the jobs of a type tried once, for [Shop.Add].
func AtMostOnce(t *jobs.Type) { t.Strategy, t.Attempts = jobs.AtMostOnce, 1 }

// Put enqueues a job for now, with changes.
func (s *Shop) Put(name jobs.TypeName, changes ...func(*jobs.NewJob)) jobs.ID {
	s.T.Helper()
	job := jobs.NewJob{ID: jobs.NewID(), Data: []byte(`{"b":1.50,"a":[]}`)}
	for _, change := range changes {
		change(&job)
	}
	list, err := s.Enqueue(s.T.Context(), name, []jobs.NewJob{job}, "", s.Now)
	require.NoError(s.T, err)
	require.Len(s.T, list, 1)
	require.Equal(s.T, job.ID, list[0].ID)
	return job.ID
}

// Pass advances the clock, and makes due jobs instant.
func (s *Shop) Pass(d time.Duration) {
	s.T.Helper()
	s.Now = s.Now.Add(d)
	_, err := s.Queue().Schedule(s.T.Context(), bus.QueueJobs, s.Now, 10_000)
	require.NoError(s.T, err)
}

// Show looks a job up.
func (s *Shop) Show(id jobs.ID) jobs.Job {
	s.T.Helper()
	job, err := s.Job(s.T.Context(), "", id)
	require.NoError(s.T, err)
	return job
}
