package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// jobInstruments are the metrics of the jobs of services, each by job type. Their series begin with
// the first job of a type. Their label is not named job, which Prometheus itself gives to whatever
// it scrapes.
type jobInstruments struct {
	attempts children[*prometheus.CounterVec] // by outcome
	// durations have no quantiles: with one series for each bucket, a thousand types would be too many.
	durations     children[prometheus.Observer]
	lost, expired children[prometheus.Counter]
}

func (m *jobInstruments) register(register promauto.Factory) {
	attempts := register.NewCounterVec(counter("job_attempts_total",
		"Attempts to hand a job to its service, by job type and outcome."), []string{"job_type", "outcome"})
	m.attempts.make = func(job string) *prometheus.CounterVec {
		return attempts.MustCurryWith(prometheus.Labels{"job_type": job})
	}
	durations := register.NewSummaryVec(prometheus.SummaryOpts{
		Namespace: Namespace, Name: "job_attempt_duration_seconds", Help: "Time to the service's answer, by job type.",
	}, []string{"job_type"})
	m.durations.make = func(job string) prometheus.Observer { return durations.WithLabelValues(job) }
	m.lost.make = byJob(register, "job_attempts_lost_total",
		"Attempts of which no report came before the deadline, or whose worker died, by job type.")
	m.expired.make = byJob(register, "jobs_expired_total", "Jobs that expired before they were handed to their service, by job type.")
}

func byJob(register promauto.Factory, name, help string) func(job string) prometheus.Counter {
	counters := register.NewCounterVec(counter(name, help), []string{"job_type"})
	return func(job string) prometheus.Counter { return counters.WithLabelValues(job) }
}

// JobTried notes that a job of a type was handed to its service, or was to be, how that ended, and
// how long it took.
func (r *Recorder) JobTried(job, outcome string, took time.Duration) {
	if r != nil {
		r.metrics.jobs.attempts.of(job).WithLabelValues(outcome).Inc()
		r.metrics.jobs.durations.of(job).Observe(took.Seconds())
	}
}

// JobAttemptLost notes that no report came of an attempt in time.
func (r *Recorder) JobAttemptLost(job string) {
	if r != nil {
		r.metrics.jobs.lost.of(job).Inc()
	}
}

// JobExpired notes that a job expired before it was handed to its service.
func (r *Recorder) JobExpired(job string) {
	if r != nil {
		r.metrics.jobs.expired.of(job).Inc()
	}
}
