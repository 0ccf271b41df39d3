package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/bus"
)

// Subscriber is the label of metrics that are by subscriber: its public name.
const Subscriber = "subscriber"

// JobType is the label of metrics that are by job type. It is not named job, which Prometheus
// itself gives to whatever it scrapes.
const JobType = "job_type"

// Buckets of histograms, in seconds. Durations span 0.5 ms to 16 s. End-to-end latency spans 5 ms
// to 6 h: it grows while a subscriber is down.
var (
	durationBuckets = prometheus.ExponentialBuckets(0.0005, 2, 16)
	endToEndBuckets = prometheus.ExponentialBuckets(0.005, 4, 12)
)

// Publishing.
var (
	PublishedEvents = counter("events.published", "published_events_total",
		"Events stored, by topic.", "topic", "publisher").but(1).total("bus.published", 0)
	PublishedBytes = counter("events.bytes", "published_bytes_total",
		"Bytes of the events stored, packed.", "topic", "publisher").but(0)
	EnqueuedEvents = counter("events.added", "enqueued_events_total",
		"Events put into subscribers' queues, counted once for each subscriber.", Subscriber).but(0)
	PublishDuration = histogram("publish_duration_seconds",
		"Time from the call of a publish to its answer.", durationBuckets)
	CommitEvents = histogram("commit_events",
		"Events stored by one round trip to Redis.", prometheus.ExponentialBuckets(1, 2, 12))
	DroppedKeys = counter("idempotency_keys.dropped", "idempotency_keys_dropped_total",
		"Idempotency keys dropped before they expired, by reason: limit (of one client), or memory (Redis was about to be full).",
		"reason").from(OverLimit, OutOfMemory)
)

// Values of the reason of [DroppedKeys].
const (
	OverLimit   = "limit"
	OutOfMemory = "memory"
)

// Deliveries. Times are ms in counters of the bus, and squares of ms in delivery.time2.
var (
	Deliveries = counter("delivery.batches", "deliveries_total",
		"Deliveries that ended, by subscriber and status.", Subscriber, "status").from(Success, Failure).total("bus.deliveries", 1)
	DeliveredEvents = counter("delivery.events", "delivered_events_total",
		"Events in deliveries that ended, by subscriber and status.", Subscriber, "status").from(Success, Failure).total("bus.delivered", 1)
	DeliveryDuration = histogram("delivery_duration_seconds",
		"Duration of a delivery, by status.", durationBuckets, "status").from(Success, Failure)
	DeliveryTime       = busCounter("delivery.time", Subscriber, "status")
	DeliveryTimeSquare = busCounter("delivery.time2", Subscriber, "status")
	// FirstBatches are batches whose first attempt has begun, and FirstLatency the sum of how old
	// their oldest events were then. LastLatency is the sum of the ages when the last attempt began.
	FirstBatches = busCounter("latency.batches.count", Subscriber)
	FirstLatency = busCounter("latency.batches.first_attempt", Subscriber)
	LastLatency  = busCounter("latency.batches.last_attempt", Subscriber)
	StartLatency = histogram("delivery_start_latency_seconds",
		"Time from when a batch was due to the start of its first attempt. Batches filled before they were due are left out.",
		durationBuckets)
	EndToEndLatency = histogram("end_to_end_latency_seconds",
		"Time from when a batch's oldest event was stored to the end of its successful delivery.", endToEndBuckets)
	UnreadableEvents = counter("events.unreadable", "events_unreadable_total",
		"Events left out of deliveries because they cannot be read.")
	Connections = counter("", "delivery_connections_total",
		"Connections of deliveries, by whether they were used before.", "reused").from("false", "true")
	RemovedEvents = busCounter("events.removed", Subscriber)
)

// Values of the status of deliveries. Of a partial one only a part was acknowledged or rejected:
// its events count as successful ones.
const (
	Success = "success"
	Failure = "failure"
	Partial = "partial"
)

// Deliveries that did not just go through. Their series begin when that first happens.
var (
	PartialDeliveries = counter("", "partial_deliveries_total",
		"Deliveries of which the subscriber has acknowledged or rejected a part, by subscriber.", Subscriber)
	RejectedEvents = counter("", "rejected_events_total",
		"Events that receipts have rejected, by subscriber.", Subscriber)
	UnreadableReceipts = counter("", "receipts_unreadable_total",
		"Answers of 207 whose receipt cannot be read, by subscriber.", Subscriber)
	Bisections = counter("", "bisections_total",
		"Searches for the event that an endpoint refuses, by subscriber.", Subscriber)
	Slices     = counter("", "slices_total", "Deliveries that carried a part of their batch.")
	Signatures = counter("", "signatures_total", "Signatures of deliveries, by the type of secret.", "type")
)

// Dead letters, replays, and losses.
var (
	DeadLetterEvents = counter("", "dead_letter_events_total",
		"Events that have become dead letters, by subscriber and reason.", Subscriber, "reason").from(texts(bus.DeathReasons)...)
	RedeliveredEvents = counter("events.added", "redelivered_events_total",
		"Events of dead letters that were put back into queues, by subscriber.", Subscriber)
	DroppedDeadLetters = counter("", "dead_letters_dropped_events_total",
		"Events of dead letters that were dropped because these were too many or too old, or Redis was about to be full, by subscriber.",
		Subscriber)
	ReplayedEvents = counter("events.added", "replayed_events_total",
		"Events of topics' histories that were put into queues again, by subscriber.", Subscriber)
	LostEvents = counter("", "gap_events_total",
		"Events that will never reach their subscriber, by subscriber and reason.", Subscriber, "reason").from(texts(bus.LossReasons)...)
)

// Housekeeping.
var (
	DroppedEvents = counter("events.autodropped", "autodropped_events_total",
		"Events dropped because Redis was about to be full, by subscriber.", Subscriber).total("bus.autodropped", 0)
	DroppedHistory = counter("", "history_dropped_events_total",
		"Events of histories dropped because Redis was about to be full, by topic.", "topic")
	DroppedBatches = counter("", "autodropped_batches_total",
		"Batches dropped because Redis was about to be full.")
	DroppedArchivedJobs = counter("", "archived_jobs_dropped_total",
		"Archived jobs dropped because Redis was about to be full.")
	ScrubbedJobs    = counter("jobs.scrubbed", "scrubbed_jobs_total", "Requeued jobs of dead workers.")
	ScrubbedWorkers = counter("workers.scrubbed", "scrubbed_workers_total", "Dead workers removed.")
)

// queues are shown by every process, with how many threads it has for each.
var queues = texts(bus.Queues[:])

func texts[T ~string](values []T) (list []string) {
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}

// Processes.
var (
	// Processes counts starts and stops of web and worker.
	Processes     = busCounter("process", "type", "status")
	WorkerThreads = gauge("worker_threads", "Threads of this process, by queue; 0 in web.", "queue").from(queues...)
	BusyThreads   = gauge("worker_threads_busy", "Threads of this process that run a job, by queue.", "queue").from(queues...)
	HTTPRequests  = counter("", "http_requests_total",
		"Requests to web, by the pattern of their route, method and class of status; none if the client left before.",
		"route", "method", "status").from(StatusClasses[:]...)
	HTTPDuration = histogram("http_request_duration_seconds",
		"Time from the head of a request to the end of its answer, by the pattern of its route and method.",
		prometheus.ExponentialBuckets(0.001, 4, 8), "route", "method")
)

// StatusClasses are the values of the status of [HTTPRequests], by the first digit of a status. The
// first is for a request without an answer, because the client has left.
var StatusClasses = [6]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// Jobs of services. A series begins with the first job of its type, except series known from the
// start.
var (
	JobAttempts = counter("jobs.attempts", "job_attempts_total",
		"Attempts to hand a job to its service, by job type and outcome.", JobType, "outcome")
	JobDuration     = summary("job_attempt_duration_seconds", "Time to the service's answer, by job type.", JobType)
	LostJobAttempts = counter("", "job_attempts_lost_total",
		"Attempts of which no report came before the deadline, or whose worker died, by job type.", JobType)
	// JobOutcomes are outcomes of attempts that were accepted: lost, as no report came in time, and
	// retried, as a report has it.
	JobOutcomes = busCounter("jobs.attempts", JobType, "outcome")
	JobReports  = counter("", "job_reports_total",
		"Reports of services, by job type and the status that the job had from then on.", JobType, "status")
	// EndedJobs are also by the process that has seen how a job ended: web is told by services, or
	// by clients that cancel a job; workers see the rest.
	EndedJobs = counter("jobs.ended", "jobs_ended_total",
		"Jobs that ended, by job type and status.", JobType, "status", "process").but(2)
	EnqueuedJobs = busCounter("jobs.enqueued", JobType)
	// JobRequests counts the results of requests that no other metric shows. They are not by type,
	// because some are about types that do not exist.
	JobRequests = busCounter("jobs.requests", "request", "result")
)

// Values of the outcome of [JobAttempts] and [JobOutcomes], besides the outcomes that services
// report. Held says that the service asked for time.
const (
	Held    = "held"
	Lost    = "lost"
	Retried = "retried"
)

// Values of the request of [JobRequests], and their results.
const (
	Create  = "create"  // a job type: created
	Enqueue = "enqueue" // archived: a job of the id has ended
	Get     = "get"     // a job: queued (or in progress), archived or not_found
	Replay  = "replay"  // queued or not_found
	Report  = "report"  // repeated or stale
)

// Values of the process of [EndedJobs].
const (
	Web    = "web"
	Worker = "worker"
)

// Machines. The operator's definitions bound their series.
var (
	LabelSteps = counter("", "label_steps_total",
		"What workers have done for labels, by the state in which the label was, and outcome.", "machine", "state", "outcome")
	// BusLabelSteps are steps with one of [BusOutcomes].
	BusLabelSteps = busCounter("labels.steps", "machine", "outcome")
	Webhooks      = counter("", "machine_webhooks_total",
		"Calls of actions' webhooks, by the status of the answer, 0 without one.", "machine", "state", "status")
	WebhookDuration = summary("machine_webhook_duration_seconds", "Time to the answer of an action's webhook.", "machine", "state")
	Feeds           = counter("", "machine_feeds_total",
		"Requests to feeds, by the status of the answer, 0 without one.", "machine", "feed", "status")
	HeardEvents = counter("", "machine_events_total",
		"Events of topics that machines have heard, by topic and what became of them.", "machine", "topic", "outcome")
	PublishedMoves = counter("", "machine_moves_published_total", "Moves of labels that were published.", "machine")
	DroppedMoves   = counter("", "machine_moves_dropped_total",
		"Moves of labels that cannot be published: their URL is too long, or the machine publishes no more.", "machine")
)

// BusOutcomes are the outcomes of [BusLabelSteps]: moves of labels, and what holds them up. Other
// outcomes are left out, because most evaluations leave a gate closed.
var BusOutcomes = []string{Moved, "failed", "attempted", "errored"}

// Moved is the outcome of a step after which a label was in another state.
const Moved = "moved"
