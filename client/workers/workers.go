// Package workers is for programs that look at the work of a bus's workers: what their threads run,
// and what they run next. Only root may.
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

// Threads is what the threads of all workers do. Its JSON is that of the bus's GET /threads,
// without what is null.
type Threads struct {
	// Active is how many threads were heard of in the last 30 s, those of other programs included.
	Active int `json:"active"`
	// Silent is how many were not, and are still noted. What they ran is queued again.
	Silent int `json:"silent"`
	// Running is what threads run, by queue.
	Running []Job `json:"running"`
	// More is how many threads were not looked at.
	More int `json:"more"`
}

// Job is a job in a queue: a delivery, what is to be done for a job of a service or for a label, or
// housekeeping.
type Job struct {
	Queue string `json:"queue"`
	// Job is what it does: "batch" delivers a batch, "job" hands a job to its service, "label" does
	// what is due for a label. It is empty if the bus cannot read the job.
	Job string `json:"job,omitzero"`
	// Arguments say what it is about: an id, or a state machine and the name of a label.
	Arguments []string `json:"arguments"`
	// DueAt is zero if it is to run now, runs, or is held.
	DueAt subscriber.Time `json:"due_at,omitzero"`
	// Held is whether the delivery of a batch has to wait for others of its lane, or for the end of
	// a pause that has none.
	Held bool `json:"held,omitzero"`
	// Thread is the thread that runs it; empty if it waits.
	Thread string `json:"thread,omitzero"`
	// Batch is what it delivers; nil if that is no batch, or one that is gone.
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

// Get returns what the threads of all workers do.
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
