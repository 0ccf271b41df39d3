package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
)

// once prevents a second POST of a job that is tried once after Redis has lost writes, as in a
// failover with replicas that lag. The replicas confirm that the job was taken before it is sent.
// That it has ended may be lost: then the worker that sent it gets it again, and remembers.
type once struct {
	confirm func(ctx context.Context, name TypeName, id ID, worker bus.WorkerID) error
	now     func() time.Time

	mu sync.Mutex
	// sent is the job that each worker sent last for each type: the jobs of a type are in one
	// partition.
	sent map[sender]sending
	// until is when replicas are asked again that have not confirmed the last that was asked, by the
	// partition that they are of.
	until map[string]time.Time
}

// sender is a worker, as far as it sends the jobs of a type.
type sender struct {
	worker bus.WorkerID
	of     TypeName
}

// sending is a job that was sent. Another may have its id later, but not its number.
type sending struct {
	id       ID
	sequence int64
}

// confirmPause is how long jobs wait after replicas have not confirmed that one was taken.
const confirmPause = time.Second

// begin decides about a job that must not be sent; if it does not decide, the job is to be sent.
func (o *once) begin(ctx context.Context, task *queue.Task, run *Run) (d decision, decided bool) {
	d.Standing = run.Standing
	from, this := sender{task.Worker, run.Type}, sending{run.ID, run.Sequence}
	if o.last(from) == this { // its service may report
		d.accepted(run, o.now())
		return d, true
	}
	if wait := o.requireConfirmed(ctx, task, run); wait > 0 {
		d.Result, d.retryAt = RunUnsent, o.now().Add(wait)
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

// requireConfirmed makes replicas confirm that a job was taken. If they do not, it returns how long
// the job waits. While they do not, one thread asks them now and then, and no other waits for them.
func (o *once) requireConfirmed(ctx context.Context, task *queue.Task, run *Run) (wait time.Duration) {
	if o.confirm == nil {
		return 0
	}
	partition := task.Partition.String()
	if wait := o.askAfter(partition); wait > 0 {
		return wait
	}
	err := o.confirm(ctx, run.Type, run.ID, task.Worker)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		delete(o.until, partition)
		return 0
	case errors.Is(err, ErrNotInProgress): // another worker has it, or none; the replicas are there
		delete(o.until, partition)
	default:
		o.until[partition] = o.now().Add(confirmPause)
	}
	return confirmPause
}

// askAfter returns how long not to ask the replicas of a partition; if it is not above 0, the
// caller asks now. After an unconfirmed job only one thread at a time may ask.
func (o *once) askAfter(partition string) (wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	until, unconfirmed := o.until[partition]
	if !unconfirmed {
		return 0
	}
	wait = until.Sub(o.now())
	if wait <= 0 {
		o.until[partition] = o.now().Add(confirmPause)
	}
	return wait
}
