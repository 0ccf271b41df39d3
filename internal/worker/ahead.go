package worker

import (
	"context"
	"slices"
	"sync"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
)

// spares are the workers of tasks that were taken ahead, for the threads of a pool: they must be
// noted as alive while these run. It is safe for concurrent use.
type spares struct {
	mu  sync.Mutex
	ids []bus.WorkerID
}

// add adds those of some tasks.
func (s *spares) add(tasks []*queue.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range tasks {
		s.ids = append(s.ids, task.Worker)
	}
}

// all returns all of them.
func (s *spares) all() []bus.WorkerID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

// workers are those of the threads, with their spares.
func (p *pool) workers() []bus.WorkerID { return slices.Concat(p.threads, p.spares.all()) }

// runAhead runs a task, and those that were taken ahead with it, one after the other. It begins no
// other once one is to be run again, [queue.AheadTime] has passed, or the context is done. One of
// those taken ahead that is to be run again is no more in task.Ahead: it is returned with its
// result, to be completed after the task.
func (p *pool) runAhead(ctx context.Context, task *queue.Task) (result queue.Result, failed *queue.Task, failure queue.Result) {
	start := p.now()
	result = p.handle(ctx, task)
	p.slots.release(standing(task))
	if !result.RetryAt.IsZero() {
		return result, nil, failure
	}
	for i, ahead := range task.Ahead {
		if ctx.Err() != nil || p.now().Sub(start) >= queue.AheadTime {
			break
		}
		one := p.handle(ctx, ahead)
		if !one.RetryAt.IsZero() {
			task.Ahead = slices.Delete(slices.Clone(task.Ahead), i, i+1)
			return result, ahead, one
		}
		result.Ahead = append(result.Ahead, one)
	}
	return result, nil, failure
}
