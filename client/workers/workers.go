// Package workers inspects a bus's workers: the jobs that their threads run and will run next. Only
// root may.
package workers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"routemaster/client"
	"routemaster/client/subscriber"
)

// MaxNext is how many of the next jobs of a queue the bus lists at most.
const MaxNext = 100

// Threads are the threads of all workers. They have the JSON of the bus's GET /threads, without
// nulls.
type Threads struct {
	// Active counts the threads heard from in the last 30 s, including threads of other programs.
	Active int `json:"active"`
	// Silent counts the threads not heard from but still registered. Their jobs are queued again.
	Silent int `json:"silent"`
	// Running lists the jobs that threads run, by queue.
	Running []Job `json:"running"`
	// More is how many threads were not examined.
	More int `json:"more"`
}

// Job is a job in a queue: a delivery, a step of a service's job or of a label, or housekeeping.
type Job struct {
	Queue string `json:"queue"`
	// Job is its kind: "batch" delivers a batch, "job" hands a job to its service, "label" does the
	// work due for a label. It is empty if the bus cannot read the job.
	Job string `json:"job,omitzero"`
	// Arguments are an id, or a state machine and the name of a label.
	Arguments []string `json:"arguments"`
	// DueAt is when it is due; zero if it runs, is due now, or is held.
	DueAt subscriber.Time `json:"due_at,omitzero"`
	// Held is whether the delivery of a batch has to wait for others of its lane, or for the end of a
	// pause that has none.
	Held bool `json:"held,omitzero"`
	// Thread is the thread that runs it; empty if it waits.
	Thread string `json:"thread,omitzero"`
	// Batch is the batch that it delivers; nil for other jobs, or if the batch is gone.
	Batch *Batch `json:"batch,omitzero"`
}

// Batch is a batch of any subscriber.
type Batch struct {
	ID string `json:"id"`
	// Subscriber is the client's name.
	Subscriber string          `json:"subscriber"`
	CreatedAt  subscriber.Time `json:"created_at"`
	// Attempts counts the deliveries that were begun; Events is how many events it has.
	Attempts int `json:"attempts"`
	Events   int `json:"events"`
}

// Get returns the threads of all workers and their jobs.
func Get(ctx context.Context, c *client.Client) (t Threads, err error) {
	_, err = c.Call(ctx, client.Request{Operation: "list threads", Method: http.MethodGet, Path: "/threads"}, &t)
	return t, err
}

// Next returns the jobs of a queue that run next, in that order: at most limit, which is 1 to
// [MaxNext]. The queues are "main", "aux", "jobs" and "machines"; another is a 404.
func Next(ctx context.Context, c *client.Client, queue string, limit int) (some []Job, err error) {
	_, err = c.Call(ctx, client.Request{
		Operation: "list queued jobs", Method: http.MethodGet, Path: "/queues/" + url.PathEscape(queue) + "?limit=" + strconv.Itoa(limit),
	}, &some)
	return some, err
}
