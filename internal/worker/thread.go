package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"routemaster/internal/bus"
)

// thread is one of a pool, as the queue knows it.
type thread struct {
	id bus.WorkerID
	// known is how many of its spares are noted: they are always the same, in order.
	known int
	// replaced is whether another thread has taken its place.
	replaced atomic.Bool
}

func (t *thread) isReplaced() bool { return t.replaced.Load() }

// threads are those of a pool. It is safe for concurrent use.
type threads struct {
	mu sync.Mutex
	// all were ever started; those that have ended are started again before others.
	all, ended []*thread
}

// begin returns a thread to start.
func (ts *threads) begin() *thread {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if last := len(ts.ended) - 1; last >= 0 {
		t := ts.ended[last]
		ts.ended = ts.ended[:last]
		t.replaced.Store(false)
		return t
	}
	t := &thread{id: bus.NewWorkerID()}
	ts.all = append(ts.all, t)
	return t
}

func (ts *threads) end(t *thread) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ended = append(ts.ended, t)
}

// ids are those of all threads.
func (ts *threads) ids() (ids []bus.WorkerID) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		ids = append(ids, t.id)
	}
	return ids
}

func (p *pool) startThread(ctx context.Context) {
	t := p.threads.begin()
	p.loops.Go(func() {
		defer p.threads.end(t)
		p.run(ctx, t)
	})
}

// sourcePatience is how long a thread waits for a source before another thread takes its place.
const sourcePatience = 500 * time.Millisecond

// replaceWhileAway has another thread take the place of one that calls a source, should that be
// away, until the function that it returns is called. The job is the thread's, so it has to wait;
// but other sources must not. It ends when it has no job any more.
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
