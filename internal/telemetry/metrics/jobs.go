package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/jobs"
)

// These metrics of job types are read from Redis by a scrape. Their label is not named job, which
// Prometheus itself gives to whatever it scrapes.
var (
	typeQueued  = describe("job_type_queued", "Jobs that wait: for their time, their turn, or another attempt.", "job_type")
	typeWaiting = describe("job_type_waiting", "Jobs that are due, and wait because their type has enough in progress, or is paused.",
		"job_type")
	typeInProgress = describe("job_type_in_progress", "Jobs that are with their service, or on the way to it.", "job_type")
	typeOldest     = describe("job_type_oldest_age_seconds", "Time since the oldest job that has not ended was enqueued, 0 if there is none.",
		"job_type")
)

// JobCounts reads how many jobs of each type there are.
type JobCounts func(context.Context) (map[jobs.TypeName]jobs.Counts, error)

// AddJobs adds the metrics of job types. Each scrape reads them.
func (r *Registry) AddJobs(counts JobCounts, now func() time.Time) {
	r.MustRegister(&jobTypes{counts: counts, now: now})
}

// jobTypes collects what waits for the services that do jobs. It shows nothing while Redis cannot
// be read.
type jobTypes struct {
	counts JobCounts
	now    func() time.Time
	shared shared[map[jobs.TypeName]jobs.Counts]
}

// Describe is part of [prometheus.Collector].
func (j *jobTypes) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{typeQueued, typeWaiting, typeInProgress, typeOldest} {
		descs <- desc
	}
}

// Collect is part of [prometheus.Collector].
func (j *jobTypes) Collect(metrics chan<- prometheus.Metric) {
	counts, err := j.shared.read(j.counts)
	if err != nil {
		return
	}
	for name, c := range counts {
		send := func(desc *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, string(name))
		}
		send(typeQueued, float64(c.Queued))
		send(typeWaiting, float64(c.Waiting))
		send(typeInProgress, float64(c.InProgress))
		if c.Oldest.IsZero() {
			send(typeOldest, 0)
		} else {
			send(typeOldest, max(j.now().Sub(c.Oldest), 0).Seconds())
		}
	}
}
