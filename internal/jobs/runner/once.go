package runner

import (
	"context"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/jobs"
	"routemaster/internal/jobs/jobstore"
	"routemaster/internal/queue"
)

// once has a job that is tried once not be sent again after Redis has forgotten something, as a
// failover does with what replicas do not know. That it was taken they confirm before it is sent.
// That it has ended may be forgotten: then the worker that has sent it has it again, and knows.
type once struct {
	confirm func(ctx context.Context, name jobs.TypeName, id jobs.ID, worker bus.WorkerID) error
	now     func() time.Time

	mu sync.Mutex
	// sent is what each worker has sent last of each type: the jobs of a type are in one partition.
	sent map[sender]sending
	// until is when replicas are asked again that have not confirmed the last that was asked.
	until time.Time
}

// sender is a worker, as far as it sends the jobs of a type.
type sender struct {
	worker bus.WorkerID
	of     jobs.TypeName
}

// sending is a job that was sent. Another may have its id later, but not at the same time (µs).
type sending struct {
	id       jobs.ID
	runAfter time.Time
}

// confirmPause is how long jobs wait after replicas have not confirmed that one was taken.
const confirmPause = time.Second

// begin decides about a job that must not be sent; if it does not decide, the job is to be sent.
func (o *once) begin(ctx context.Context, task *queue.Task, run *jobstore.Run) (d decision, decided bool) {
	d.Standing = run.Standing
	from, this := sender{task.Worker, run.Type}, sending{run.ID, run.RunAfter}
	if o.last(from) == this { // its service may report
		d.accepted(run, o.now())
		return d, true
	}
	if wait := o.requireConfirmed(ctx, task.Worker, run); wait > 0 {
		d.Result, d.retryAt = jobstore.Unsent, o.now().Add(wait)
		return d, true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent[from] = this
	return d, false
}

func (o *once) last(from sender) sending {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent[from]
}

// requireConfirmed has replicas confirm that a job was taken. If they do not, it returns how long
// the job waits. While they do not, no thread waits for them but now and then.
func (o *once) requireConfirmed(ctx context.Context, worker bus.WorkerID, run *jobstore.Run) (wait time.Duration) {
	if o.confirm == nil {
		return 0
	}
	o.mu.Lock()
	wait = o.until.Sub(o.now())
	o.mu.Unlock()
	if wait > 0 {
		return wait
	}
	if err := o.confirm(ctx, run.Type, run.ID, worker); err == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = o.now().Add(confirmPause)
	return confirmPause
}
