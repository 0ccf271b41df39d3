package web

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"routemaster/internal/jobs"
)

// maxPulls is how many requests may wait for jobs at once in one process.
const maxPulls = 1000

// pollInterval is how often jobs are looked for without a notice: limits and pauses end without.
const pollInterval = time.Second

// pulls are the requests that wait for jobs to fetch, of types of one partition. The requests for
// one type stand in a line: only its head looks for jobs, and a request that leaves wakes the next
// one. So a job costs one look, however many requests wait.
type pulls struct {
	// joined has an element when a request may be waiting.
	joined chan struct{}
	// stopped is closed by stop, when requests may no longer wait.
	stopped chan struct{}
	stop    func()

	mu    sync.Mutex
	lines map[jobs.TypeName][]*pull
	count int
}

// pull is a request that waits. Its turn has an element when it has to look.
type pull struct{ turn chan struct{} }

// newPulls makes the pulls of a partition.
func newPulls() *pulls {
	stopped := make(chan struct{})
	return &pulls{
		joined: make(chan struct{}, 1), stopped: stopped, stop: sync.OnceFunc(func() { close(stopped) }),
		lines: map[jobs.TypeName][]*pull{},
	}
}

// run wakes waiting requests until the context is done; then none may wait any longer. It is idle
// while no request waits. Await returns the types that may have jobs to fetch, after the longest
// time at the latest; if it returns none, all types look.
func (p *pulls) run(ctx context.Context, await func(ctx context.Context, longest time.Duration) ([]jobs.TypeName, error)) {
	defer p.stop()
	var looked time.Time // when all have looked
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.joined:
		}
		for more := true; more && ctx.Err() == nil; {
			names, err := await(ctx, pollInterval)
			if err != nil {
				sleep(ctx, pollInterval) // Redis is unavailable, as each look will find
			}
			if len(names) == 0 || time.Since(looked) >= pollInterval {
				names, looked = p.types(), time.Now()
			}
			more = p.wake(names)
		}
	}
}

// sleep waits for a time, or until the context is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// wait calls look, which looks for jobs of a type, until it finds some, fails, or the time is over.
// It does not look for a client that has gone, as its jobs would be lost until their deadline.
// Behind other requests it waits only if admit admits the client, since its own look would find a
// refusal much later.
func (p *pulls) wait(
	ctx context.Context, name jobs.TypeName, longest time.Duration,
	admit func(context.Context, jobs.TypeName) error, look func() ([]jobs.Job, error),
) ([]jobs.Job, error) {
	own := p.join(name)
	defer p.leave(name, own)
	if len(own.turn) == 0 {
		if err := admit(ctx, name); err != nil {
			return nil, err
		}
	}
	over := time.NewTimer(longest)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-over.C:
			return nil, nil
		case <-p.stopped:
			return nil, nil
		case <-own.turn:
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if found, err := look(); err != nil || len(found) > 0 {
			return found, err
		}
	}
}

// join adds a request to the end of a type's line. The head looks at once.
func (p *pulls) join(name jobs.TypeName) *pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := &pull{make(chan struct{}, 1)}
	p.count++
	p.lines[name] = append(p.lines[name], own)
	if len(p.lines[name]) == 1 {
		p.lookNext(name)
	}
	offer(p.joined)
	return own
}

// leave removes a request from its line.
func (p *pulls) leave(name jobs.TypeName, own *pull) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count--
	line := slices.DeleteFunc(p.lines[name], func(other *pull) bool { return other == own })
	if len(line) == 0 {
		delete(p.lines, name)
		return
	}
	p.lines[name] = line
	p.lookNext(name)
}

// types returns the types with waiting requests.
func (p *pulls) types() []jobs.TypeName {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.lines))
}

// wake wakes the heads of the lines of types. It reports whether any request waits.
func (p *pulls) wake(names []jobs.TypeName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if len(p.lines[name]) > 0 {
			p.lookNext(name)
		}
	}
	return p.count > 0
}

// lookNext wakes the head of a type's line. The caller holds the lock.
func (p *pulls) lookNext(name jobs.TypeName) { offer(p.lines[name][0].turn) }

// offer puts an element into a channel that has room for one.
func offer(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
