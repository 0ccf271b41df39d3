package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
)

// Counters of the jobs of services. The first three have a [JobTypeTag].
const (
	EndedJobsCounter    = "jobs.ended"    // also by [processTag] and status
	JobAttemptsCounter  = "jobs.attempts" // also by outcome
	EnqueuedJobsCounter = "jobs.enqueued"
	JobRequestsCounter  = "jobs.requests" // by request and result
)

// JobTypeTag is the tag of the counters of a job type. It is not named job, which Prometheus itself
// gives to whatever it scrapes.
const JobTypeTag = "job_type"

// Process is the program that has seen how a job ended.
type Process string

// The processes: web is told by services, or by clients that cancel a job; workers see the rest.
const (
	Web    Process = "web"
	Worker Process = "worker"
)

// held is the outcome of an attempt whose service asked for time. The others are those of attempts
// that were accepted, in the counters.
const (
	held    = "held"
	lost    = "lost"    // no report came in time
	retried = "retried" // it failed, as was reported, and the job is tried again
)

// Requests that are counted by what came of them.
const (
	Create  = "create"  // a job type: created
	Enqueue = "enqueue" // archived: a job of the id has ended
	Get     = "get"     // a job: queued (or in progress), archived or not_found
	Replay  = "replay"  // queued or not_found
	Report  = "report"  // repeated or stale
)

// EndedJobs returns the counters of the jobs of a type that ended with a status: their sum is how
// many.
func EndedJobs(job string, status jobs.Status) []bus.Counter {
	return []bus.Counter{endedJobs(Web, job, status), endedJobs(Worker, job, status)}
}

func endedJobs(process Process, job string, status jobs.Status) bus.Counter {
	return bus.NewCounter(EndedJobsCounter, bus.Tag{Name: JobTypeTag, Value: job},
		bus.Tag{Name: "process", Value: string(process)}, bus.Tag{Name: "status", Value: string(status)})
}

func jobAttempts(job, outcome string) bus.Counter {
	return bus.NewCounter(JobAttemptsCounter, bus.Tag{Name: JobTypeTag, Value: job}, bus.Tag{Name: "outcome", Value: outcome})
}

// jobInstruments are the metrics of the jobs of services, each by job type. Their series begin with
// the first job of a type, but for those of [Recorder.JobType].
type jobInstruments struct {
	attempts children[*prometheus.CounterVec] // by outcome
	// durations have no quantiles: with one series for each bucket, a thousand types would be too many.
	durations      children[prometheus.Observer]
	lost           children[prometheus.Counter]
	reports, ended children[*prometheus.CounterVec] // by status
}

func (m *jobInstruments) register(register promauto.Factory) {
	attempts := register.NewCounterVec(counter("job_attempts_total",
		"Attempts to hand a job to its service, by job type and outcome."), []string{JobTypeTag, "outcome"})
	m.attempts.make = func(job string) *prometheus.CounterVec {
		return attempts.MustCurryWith(prometheus.Labels{JobTypeTag: job})
	}
	durations := register.NewSummaryVec(prometheus.SummaryOpts{
		Namespace: Namespace, Name: "job_attempt_duration_seconds", Help: "Time to the service's answer, by job type.",
	}, []string{JobTypeTag})
	m.durations.make = func(job string) prometheus.Observer { return durations.WithLabelValues(job) }
	lost := register.NewCounterVec(counter("job_attempts_lost_total",
		"Attempts of which no report came before the deadline, or whose worker died, by job type."), []string{JobTypeTag})
	m.lost.make = func(job string) prometheus.Counter { return lost.WithLabelValues(job) }
	m.reports.make = byStatus(register, "job_reports_total",
		"Reports of services, by job type and the status that the job had from then on.")
	m.ended.make = byStatus(register, "jobs_ended_total", "Jobs that ended, by job type and status.")
}

// byStatus registers a counter for each job type and status.
func byStatus(register promauto.Factory, name, help string) func(job string) *prometheus.CounterVec {
	counters := register.NewCounterVec(counter(name, help), []string{JobTypeTag, "status"})
	return func(job string) *prometheus.CounterVec {
		return counters.MustCurryWith(prometheus.Labels{JobTypeTag: job})
	}
}

// JobType notes that there is a type. Its attempts are 0 from then on: the increase of a series
// that begins with 1 is not seen.
func (r *Recorder) JobType(job string) {
	if r != nil {
		for _, outcome := range []string{held, "accepted", "succeeded", "failed"} {
			r.metrics.jobs.attempts.of(job).WithLabelValues(outcome)
		}
		r.metrics.jobs.lost.of(job)
	}
}

// JobTried notes that a job of a type was handed to its service, or was to be, how that ended, and
// how long it took.
func (r *Recorder) JobTried(job, outcome string, took time.Duration) {
	if r != nil {
		r.metrics.jobs.attempts.of(job).WithLabelValues(outcome).Inc()
		r.metrics.jobs.durations.of(job).Observe(took.Seconds())
		r.counts.addOne(jobAttempts(job, outcome), 1)
	}
}

// JobAttemptLost notes that no report came of an attempt in time.
func (r *Recorder) JobAttemptLost(job string) {
	if r != nil {
		r.metrics.jobs.lost.of(job).Inc()
		r.counts.addOne(jobAttempts(job, lost), 1)
	}
}

// JobReported notes that a service has reported on a job, which has a status from then on.
func (r *Recorder) JobReported(job string, status jobs.Status) {
	if r == nil {
		return
	}
	r.metrics.jobs.reports.of(job).WithLabelValues(string(status)).Inc()
	if status.IsArchived() {
		r.JobEnded(Web, job, status)
	} else {
		r.counts.addOne(jobAttempts(job, retried), 1)
	}
}

// JobEnded notes that a process has seen a job of a type end, and with which status.
func (r *Recorder) JobEnded(process Process, job string, status jobs.Status) {
	if r != nil {
		r.metrics.jobs.ended.of(job).WithLabelValues(string(status)).Inc()
		r.counts.addOne(endedJobs(process, job, status), 1)
	}
}

// JobsEnqueued notes that a client has enqueued jobs of a type.
func (r *Recorder) JobsEnqueued(job string, number int) {
	if r != nil {
		r.counts.addOne(bus.NewCounter(EnqueuedJobsCounter, bus.Tag{Name: JobTypeTag, Value: job}), int64(number))
	}
}

// JobRequest notes what came of a request that is about a job or a job type, where nothing else
// tells. It is not counted by type, because some are about types that do not exist.
func (r *Recorder) JobRequest(request, result string) {
	if r != nil {
		r.counts.addOne(bus.NewCounter(JobRequestsCounter, bus.Tag{Name: "request", Value: request}, bus.Tag{Name: "result", Value: result}), 1)
	}
}
