package vendors

import (
	"strings"

	"routemaster/internal/bus"
	"routemaster/internal/telemetry"
)

// Prefixes of names on dashboards of the service that jobs replace, whose two programs sent them.
const (
	Server   = "rickover.server."
	Dequeuer = "rickover.dequeuer."
)

// replaced are the names of its counters that come of one of ours, by the values of our tags
// besides the job type. {type} stands for that.
var replaced = map[string]map[string][]string{
	telemetry.EnqueuedJobs.Counter: {
		"": {Server + "enqueue.success", Server + "enqueue.{type}.success"},
	},
	telemetry.JobRequests.Counter: {
		"create created":   {Server + "type.create.success"},
		"enqueue archived": {Server + "enqueue.error.already_archived"},
		"get queued":       {Server + "job.get.queued.success"},
		"get archived":     {Server + "job.get.archived.success"},
		"get not_found":    {Server + "job.get.not_found"},
		"replay queued":    {Server + "enqueue.replay.success"},
		"replay not_found": {Server + "job.replay.not_found"},
		"report repeated":  {Server + "status_callback.duplicate"},
		"report stale":     {Server + "status_callback.failed_decrement"},
	},
	telemetry.JobAttempts.Counter: {
		"accepted":  append([]string{Dequeuer + "post_job.{type}.accepted"}, dequeued...),
		"succeeded": append([]string{Dequeuer + "post_job.{type}.accepted"}, dequeued...),
		"failed":    append([]string{Dequeuer + "dequeue.post_job.error"}, dequeued...),
		"held":      {Dequeuer + "post_job.unavailable"},
		"lost":      {Dequeuer + "wait_for_job.{type}.timeout", Dequeuer + "wait_for_job.{type}.failed"},
		"retried":   {Dequeuer + "wait_for_job.{type}.attempt_count_decremented"},
	},
	telemetry.EndedJobs.Counter: {
		"web succeeded":    append(archived(Server, "success"), awaited...),
		"web failed":       append(archived(Server, "failed"), awaited...),
		"worker succeeded": archived(Dequeuer, "success"),
		"worker failed":    archived(Dequeuer, "failed"),
	},
}

var (
	dequeued = []string{Dequeuer + "dequeue.success", Dequeuer + "dequeue.{type}.success"}
	awaited  = []string{Dequeuer + "wait_for_job.archived", Dequeuer + "wait_for_job.{type}.archived"}
)

func archived(program, status string) []string {
	const create = "archived_job.create"
	return []string{program + create, program + create + "." + status, program + create + ".{type}." + status}
}

// Replaced returns the counters that the service had that jobs replace, as far as they come of
// counters of ours. A colon of a type's name is an underscore there: it would end the name for the
// agent.
func Replaced(counts map[bus.Counter]int64) (measures []Measure) {
	sums := map[string]int64{}
	for c, n := range counts {
		names, ok := replaced[c.Name]
		if !ok {
			continue
		}
		var job string
		var values []string
		for _, tag := range c.All() {
			if tag.Name == telemetry.JobType {
				job = tag.Value
			} else {
				values = append(values, tag.Value)
			}
		}
		for _, name := range names[strings.Join(values, " ")] {
			sums[strings.ReplaceAll(name, "{type}", strings.ReplaceAll(job, ":", "_"))] += n
		}
	}
	for name, n := range sums {
		measures = append(measures, Measure{Counter: bus.NewCounter(name), Value: n, Verbatim: true})
	}
	return measures
}
