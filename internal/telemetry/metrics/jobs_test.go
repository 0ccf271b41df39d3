package metrics_test

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
	"routemaster/internal/telemetry/metrics"
)

func TestJobTypesAreScraped(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	reads := 0
	registry := metrics.NewRegistry()
	registry.AddJobs(func(context.Context) (map[jobs.TypeName]jobs.Counts, error) {
		reads++
		return map[jobs.TypeName]jobs.Counts{
			"invoices": {Queued: 7, Waiting: 3, InProgress: 2, Oldest: now.Add(-90 * time.Second)},
			"labels":   {},
			"future":   {Queued: 1, Oldest: now.Add(time.Second)}, // by the clock of another host
		}, nil
	}, func() time.Time { return now })
	text := page(t, registry)
	for _, line := range []string{
		`queued{job_type="invoices"} 7`, `waiting{job_type="invoices"} 3`, `in_progress{job_type="invoices"} 2`,
		`oldest_age_seconds{job_type="invoices"} 90`, `queued{job_type="labels"} 0`, `oldest_age_seconds{job_type="labels"} 0`,
		`oldest_age_seconds{job_type="future"} 0`,
	} {
		assert.Contains(t, text, "\nroutemaster_job_type_"+line+"\n")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	page(t, registry)
	assert.Equal(t, 1, reads, "scrapes share a reading")
}

func TestJobTypesAreMissingWhileRedisIsUnavailable(t *testing.T) {
	registry := metrics.NewRegistry()
	registry.AddJobs(func(context.Context) (map[jobs.TypeName]jobs.Counts, error) { return nil, bus.ErrUnavailable }, time.Now)
	assert.NotContains(t, page(t, registry), "routemaster_job_type")
}
