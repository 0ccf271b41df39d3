package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
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

// JobTypes is what a scrape reads of job types.
type JobTypes struct {
	// Count reads all types, and how many jobs of each there are.
	Count func(context.Context) ([]jobs.CountedType, error)
	// Counters reads counters of the bus. One that has never counted is 0.
	Counters func(context.Context, []bus.Counter) (map[bus.Counter]int64, error)
}

// AddJobs adds the metrics of job types. Each scrape reads them.
func (r *Registry) AddJobs(types JobTypes, now func() time.Time) {
	r.MustRegister(&jobTypes{types: types, now: now})
}

// jobTypes collects what waits for the services that do jobs, and what has ended. It shows nothing
// while Redis cannot be read.
type jobTypes struct {
	types  JobTypes
	now    func() time.Time
	shared shared[typesReading]
}

// typesReading is what was read from Redis at one time.
type typesReading struct {
	types []jobs.CountedType
	ended map[bus.Counter]int64
}

// Describe is part of [prometheus.Collector].
func (j *jobTypes) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range allOfTypes {
		descs <- desc
	}
}

// Collect is part of [prometheus.Collector].
func (j *jobTypes) Collect(metrics chan<- prometheus.Metric) {
	now, err := j.shared.read(j.read)
	if err != nil {
		return
	}
	for _, t := range now.types {
		j.collectType(metrics, t)
		for _, status := range jobs.Archived {
			var sum int64
			for _, c := range telemetry.EndedJobs(string(t.Name), status) {
				sum += now.ended[c]
			}
			metrics <- prometheus.MustNewConstMetric(busJobsEnded, prometheus.CounterValue, float64(sum), string(t.Name), string(status))
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

// read reads the types and, if there are any, how many of their jobs have ended.
func (j *jobTypes) read(ctx context.Context) (now typesReading, err error) {
	if now.types, err = j.types.Count(ctx); err != nil {
		return now, err
	}
	var counters []bus.Counter
	for _, t := range now.types {
		for _, status := range jobs.Archived {
			counters = append(counters, telemetry.EndedJobs(string(t.Name), status)...)
		}
	}
	now.ended, err = j.types.Counters(ctx, counters)
	return now, err
}
