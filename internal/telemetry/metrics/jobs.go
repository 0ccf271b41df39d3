package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/jobs"
	"routemaster/internal/telemetry"
)

// These metrics of job types are read from Redis by a scrape.
var (
	typeQueued  = describeType("job_type_queued", "Jobs that wait: for their time, their turn, or another attempt.")
	typeWaiting = describeType("job_type_waiting",
		"Jobs that are due, and wait because their type has enough in progress, or is paused.")
	typeInProgress  = describeType("job_type_in_progress", "Jobs that are with their service, or on the way to it.")
	typeConcurrency = describeType("job_type_concurrency", "How many jobs may be in progress at once.")
	typePaused      = describeType("job_type_paused", "1 while a job type is paused, else 0.")
	typeOldest      = describeType("job_type_oldest_age_seconds",
		"Time since the oldest job was enqueued that is due and not in progress, 0 if there is none.")
	busJobsEnded = describe("bus_jobs_ended_total", "Jobs of the whole bus that ended, by job type and status.",
		telemetry.JobTypeTag, "status")

	allOfTypes = []*prometheus.Desc{typeQueued, typeWaiting, typeInProgress, typeConcurrency, typePaused, typeOldest, busJobsEnded}
)

func describeType(name, help string) *prometheus.Desc {
	return describe(name, help, telemetry.JobTypeTag)
}

// AddJobs adds the metrics of job types. Each scrape reads them.
func (r *Registry) AddJobs(types telemetry.JobTypes, now func() time.Time) {
	r.MustRegister(&jobTypes{types: types, now: now})
}

// jobTypes collects what waits for the services that do jobs, and what has ended. It shows nothing
// while Redis cannot be read.
type jobTypes struct {
	types  telemetry.JobTypes
	now    func() time.Time
	shared shared[[]telemetry.JobType]
}

// Describe is part of [prometheus.Collector].
func (j *jobTypes) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range allOfTypes {
		descs <- desc
	}
}

// Collect is part of [prometheus.Collector].
func (j *jobTypes) Collect(metrics chan<- prometheus.Metric) {
	now, err := j.shared.read(j.types.Read)
	if err != nil {
		return
	}
	for _, t := range now {
		j.collectType(metrics, t.CountedType)
		for status, n := range t.Ended {
			metrics <- prometheus.MustNewConstMetric(busJobsEnded, prometheus.CounterValue, float64(n), string(t.Name), string(status))
		}
	}
}

func (j *jobTypes) collectType(metrics chan<- prometheus.Metric, t jobs.CountedType) {
	send := func(desc *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, string(t.Name))
	}
	paused, oldest := 0.0, 0.0
	if t.Paused {
		paused = 1
	}
	if !t.Oldest.IsZero() {
		oldest = max(j.now().Sub(t.Oldest), 0).Seconds()
	}
	send(typeQueued, float64(t.Queued))
	send(typeWaiting, float64(t.Waiting))
	send(typeInProgress, float64(t.InProgress))
	send(typeConcurrency, float64(t.Concurrency))
	send(typePaused, paused)
	send(typeOldest, oldest)
}
