package worker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/queue"
)

// thread is one of a pool, as the queue knows it.
type thread struct {
	id bus.WorkerID
	// replaced is whether another thread has taken its place.
	replaced atomic.Bool
	// woken gets a value when a source is added to returned.
	woken chan struct{}

	mu sync.Mutex
	// spares are the workers of tasks that were taken ahead for it: always the same, in order.
	spares []bus.WorkerID
	// returned are sources that were away since the thread has last asked them for a job.
	returned []*source
}

func (t *thread) isReplaced() bool { return t.replaced.Load() }

// mayGoOn is whether the thread may take another job in the step that completes one.
func (t *thread) mayGoOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.isReplaced() && len(t.returned) == 0
}

// use notes the workers of tasks that were taken ahead.
func (t *thread) use(ahead []*queue.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range ahead[min(len(t.spares), len(ahead)):] {
		t.spares = append(t.spares, task.Worker)
	}
}

// workers are the thread and its spares.
func (t *thread) workers() []bus.WorkerID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]bus.WorkerID{t.id}, t.spares...)
}

// lookAgain makes the thread ask a source for a job, even if the source does not offer one.
func (t *thread) lookAgain(s *source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.returned, s) {
		t.returned = append(t.returned, s)
	}
	select {
	case t.woken <- struct{}{}:
	default: // it has not seen the one before
	}
}

// nextReturned takes a source that the thread is to ask, nil if there is none.
func (t *thread) nextReturned() *source {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.returned) == 0 {
		return nil
	}
	s := t.returned[0]
	t.returned = t.returned[1:]
	return s
}

// reuseTimeout is for how long a thread that has ended may be started again. Until then it stays
// registered as alive, or it might be taken for dead as soon as it has a job again. It is short: if
// Redis forgets that the thread has completed its last job, that job goes to another worker only
// after it.
const reuseTimeout = 2 * heartbeatInterval

// threads are the threads of a pool. It is safe for concurrent use.
type threads struct {
	mu sync.Mutex
	// all has every thread ever started. Ended ones are started again before new ones are made.
	all []*thread
	// ended has the time when each thread that does not run ended.
	ended map[*thread]time.Time
}

// begin returns a thread to start.
func (ts *threads) begin() *thread {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for t, at := range ts.ended {
		switch age := time.Since(at); {
		case age < reuseTimeout:
			delete(ts.ended, t)
			t.replaced.Store(false)
			return t
		case age > 2*bus.ForgetAfter: // Redis has forgotten it by now
			delete(ts.ended, t)
			ts.all = slices.DeleteFunc(ts.all, func(other *thread) bool { return other == t })
		}
	}
	t := &thread{id: bus.NewWorkerID(), woken: make(chan struct{}, 1)}
	ts.all = append(ts.all, t)
	return t
}

// end notes that a thread has ended.
func (ts *threads) end(t *thread) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.ended == nil {
		ts.ended = map[*thread]time.Time{}
	}
	ts.ended[t] = time.Now()
}

// list returns all that were ever started.
func (ts *threads) list() []*thread {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return slices.Clone(ts.all)
}

// alive are the workers of the threads that run, or may be started again, with their spares.
func (ts *threads) alive() (ids []bus.WorkerID) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		if at, hasEnded := ts.ended[t]; !hasEnded || time.Since(at) < reuseTimeout {
			ids = append(ids, t.workers()...)
		}
	}
	return ids
}

func (p *pool) startThread(ctx context.Context) {
	t := p.threads.begin()
	p.loops.Go(func() {
		p.run(ctx, t)
		p.threads.end(t)
	})
}

// sourcePatience is how long a thread waits for a source before another thread takes its place.
const sourcePatience = 500 * time.Millisecond

// replaceWhileAway lets another thread take the place of one that calls a source, if the source is
// unavailable, until the returned function is called. The job is the thread's, so the thread has to
// wait; but other sources must not. The thread ends when it has no job any more.
func (p *pool) replaceWhileAway(ctx context.Context, t *thread) (arrived func()) {
	if len(p.sources) == 1 || t.isReplaced() {
		return func() {}
	}
	var mu sync.Mutex
	done := false
	timer := time.AfterFunc(sourcePatience, func() {
		mu.Lock()
		defer mu.Unlock()
		if !done && ctx.Err() == nil {
			t.replaced.Store(true)
			p.startThread(ctx)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done = true
		timer.Stop()
	}
}
