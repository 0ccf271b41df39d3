package samples_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/store/storetest"
	"routemaster/internal/telemetry"
)

func TestJobTypesAreScraped(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	invoices, labels := jobs.Type{Name: "invoices", Concurrency: 2}, jobs.Type{Name: "labels", Concurrency: 5, Paused: true}
	reads := 0
	st := storetest.Open(t, rdbtest.Embedded(t))
	require.NoError(t, st.AddCounters(t.Context(), map[bus.Counter]int64{
		telemetry.EndedJobs.Bus("invoices", "failed", "web"): 3, telemetry.EndedJobs.Bus("invoices", "failed", "worker"): 4,
		telemetry.EndedJobs.Bus("labels", "cancelled", "web"): 5,
	}))
	config := busOf(st)
	config.CountJobs = func(context.Context) ([]jobs.CountedType, error) {
		reads++
		return []jobs.CountedType{
			{Type: invoices, Counts: jobs.Counts{Queued: 7, Waiting: 3, InProgress: 2, Oldest: now.Add(-90 * time.Second)}},
			{Type: labels},
			{Type: jobs.Type{Name: "future"}, Counts: jobs.Counts{Queued: 1, Oldest: now.Add(time.Second)}}, // by the clock of another host
		}, nil
	}
	registry := scraped(config, func() time.Time { return now })
	text := page(t, registry)
	for _, line := range []string{
		`job_type_queued{job_type="invoices"} 7`, `job_type_waiting{job_type="invoices"} 3`, `job_type_in_progress{job_type="invoices"} 2`,
		`job_type_concurrency{job_type="invoices"} 2`, `job_type_paused{job_type="invoices"} 0`, `job_type_paused{job_type="labels"} 1`,
		`job_type_oldest_age_seconds{job_type="invoices"} 90`, `job_type_queued{job_type="labels"} 0`,
		`job_type_oldest_age_seconds{job_type="labels"} 0`, `job_type_oldest_age_seconds{job_type="future"} 0`,
		`bus_jobs_ended_total{job_type="invoices",status="failed"} 7`, `bus_jobs_ended_total{job_type="labels",status="expired"} 0`,
		`bus_jobs_ended_total{job_type="labels",status="cancelled"} 5`,
	} {
		assert.Contains(t, text, "\nroutemaster_"+line+"\n")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	page(t, registry)
	assert.Equal(t, 1, reads, "scrapes share a reading")
}

func TestJobTypesAreMissingWhileRedisIsUnavailable(t *testing.T) {
	config := busOf(storetest.Open(t, rdbtest.Embedded(t)))
	config.CountJobs = func(context.Context) ([]jobs.CountedType, error) { return nil, bus.ErrUnavailable }
	assert.NotContains(t, shownOf(t, config, time.Now), "routemaster_job_type")
}

// TestADamagedQueueHidesNoJobTypes has a key of subscribers be of another type: what does not need
// it is shown all the same.
func TestADamagedQueueHidesNoJobTypes(t *testing.T) {
	rdbtest.Each(t, func(t *testing.T, server *rdbtest.Server) {
		b := storetest.NewBus(t, server)
		config := busOf(b.Store)
		config.CountJobs = func(context.Context) ([]jobs.CountedType, error) {
			return []jobs.CountedType{{Type: jobs.Type{Name: "ship"}}}, nil
		}
		require.NoError(t, b.Redis.Set(t.Context(), "subscribers", "rubbish", 0).Err())
		require.NoError(t, b.Redis.HSet(t.Context(), "accounts", "shop", 7).Err())
		text := page(t, scraped(config, time.Now))
		for _, line := range []string{
			"routemaster_redis_up 0", `routemaster_job_type_queued{job_type="ship"} 0`, `routemaster_client_kept_bytes{client="shop"} 7`,
		} {
			assert.Contains(t, text, line+"\n")
		}
		assert.NotContains(t, text, "routemaster_jobs_due")
	})
}
