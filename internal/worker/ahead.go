package worker

import (
	"context"
	"sync"
	"time"

	"routemaster/internal/queue"
)

// runAhead runs a task, and the tasks taken ahead with it, one after the other. It begins no other
// once one is to be run again, [queue.AheadTime] has passed, or the context is done. The ones that
// ran, and the ones left in task.Ahead, are completed with the task. A task taken ahead that is to
// be run again is returned with its result, to be completed after the task.
func (p *pool) runAhead(ctx context.Context, s *source, task *queue.Task) (result queue.Result, failed *queue.Task, failure queue.Result) {
	if len(task.Ahead) == 0 {
		result = p.handle(ctx, task)
		p.slots.release(standing(task))
		p.shares.end(task, result.Hosts, p.now())
		return result, nil, failure
	}
	defer func() { p.shares.end(task, nil, p.now()) }()
	rest := p.startWaiting(ctx, s, task.Ahead)
	result = p.handle(ctx, task)
	p.slots.release(standing(task))
	var done []*queue.Task
	for result.RetryAt.IsZero() && failed == nil {
		next := rest.next(ctx)
		if next == nil {
			break
		}
		if one := p.handle(ctx, next); one.RetryAt.IsZero() {
			done, result.Ahead = append(done, next), append(result.Ahead, one)
		} else {
			failed, failure = next, one
		}
	}
	task.Ahead = append(done, rest.stop()...)
	return result, failed, failure
}

// waiting are tasks that were taken ahead, and are not begun. [queue.AheadTime] after they were
// taken they are given back: the one before them may take long, and others may run them.
type waiting struct {
	until time.Time
	timer *time.Timer
	// mu is held while they are given back, too.
	mu    sync.Mutex
	tasks []*queue.Task
}

func (p *pool) startWaiting(ctx context.Context, s *source, tasks []*queue.Task) *waiting {
	w := &waiting{until: time.Now().Add(queue.AheadTime), tasks: tasks}
	w.timer = time.AfterFunc(queue.AheadTime, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.tasks) == 0 {
			return
		}
		if err := s.GiveBack(context.WithoutCancel(ctx), w.tasks, p.now()); err != nil {
			p.report("give back", err) // they are when the task before them is completed
			return
		}
		w.tasks = nil
	})
	return w
}

// next takes the next task to begin, nil if there is none.
func (w *waiting) next(ctx context.Context) (next *queue.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) == 0 || ctx.Err() != nil || !time.Now().Before(w.until) {
		return nil
	}
	next, w.tasks = w.tasks[0], w.tasks[1:]
	return next
}

// stop returns the tasks that are left. They are not given back any more.
func (w *waiting) stop() (left []*queue.Task) {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	left, w.tasks = w.tasks, nil
	return left
}
