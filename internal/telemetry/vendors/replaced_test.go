package vendors_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
	"routemaster/internal/telemetry/vendors"
)

func TestWhatTheReplacedServiceCounted(t *testing.T) {
	tag := func(name, value string) bus.Tag { return bus.Tag{Name: name, Value: value} }
	attempts := func(job, outcome string) bus.Counter {
		return bus.NewCounter(telemetry.JobAttempts.Counter, tag("job_type", job), tag("outcome", outcome))
	}
	ended := telemetry.EndedJobs.Bus
	got := map[string]int64{}
	for _, m := range vendors.Replaced(map[bus.Counter]int64{
		ended("ship", "succeeded", "web"): 5, ended("pay", "failed", "worker"): 1, ended("pay", "expired", "worker"): 1,
		attempts("ship", "accepted"): 4, attempts("ship", "succeeded"): 2, attempts("pay", "failed"): 1,
		attempts("ship", "held"): 3, attempts("pay", "lost"): 7, attempts("pay", "retried"): 8,
		bus.NewCounter(telemetry.EnqueuedJobs.Counter, tag("job_type", "ship")):                         6,
		bus.NewCounter(telemetry.EnqueuedJobs.Counter, tag("job_type", "pay")):                          1,
		bus.NewCounter(telemetry.JobRequests.Counter, tag("request", "report"), tag("result", "stale")): 9,
		bus.NewCounter(telemetry.EnqueuedJobs.Counter, tag("job_type", "Mail:daily")):                   1,
		bus.NewCounter("events.published", tag("topic", "widgets")):                                     1,
	}) {
		assert.True(t, m.Verbatim && !m.Gauge)
		assert.NotContains(t, got, m.Name, "it is sent twice")
		got[m.Name] = m.Value
	}
	assert.Equal(t, map[string]int64{
		"rickover.server.archived_job.create": 5, "rickover.server.archived_job.create.success": 5,
		"rickover.server.archived_job.create.ship.success": 5,
		"rickover.dequeuer.wait_for_job.archived":          5, "rickover.dequeuer.wait_for_job.ship.archived": 5,
		"rickover.dequeuer.archived_job.create": 1, "rickover.dequeuer.archived_job.create.failed": 1,
		"rickover.dequeuer.archived_job.create.pay.failed": 1,
		"rickover.dequeuer.post_job.ship.accepted":         6, "rickover.dequeuer.dequeue.post_job.error": 1,
		"rickover.dequeuer.dequeue.success": 7, "rickover.dequeuer.dequeue.ship.success": 6, "rickover.dequeuer.dequeue.pay.success": 1,
		"rickover.dequeuer.post_job.unavailable": 3, "rickover.dequeuer.wait_for_job.pay.timeout": 7,
		"rickover.dequeuer.wait_for_job.pay.failed": 7, "rickover.dequeuer.wait_for_job.pay.attempt_count_decremented": 8,
		"rickover.server.enqueue.success": 8, "rickover.server.enqueue.Mail_daily.success": 1, "rickover.server.enqueue.ship.success": 6, "rickover.server.enqueue.pay.success": 1,
		"rickover.server.status_callback.failed_decrement": 9,
	}, got)
}
