package worker

import (
	"context"
	"time"
)

// maxScheduled is the maximum number of jobs that one call makes instant. It bounds how long the
// call keeps Redis from serving others.
const maxScheduled = 100

// runScheduler makes due jobs of a source instant until the context is done.
func (p *pool) runScheduler(ctx context.Context, s *source) {
	switch {
	case p.Lookahead == 0:
		every(ctx, p.ScheduleInterval, func() { p.schedule(ctx, s) })
	case len(p.sources) == 1:
		p.runWhileNotQuiet(ctx, s)
	default:
		p.runWhenDue(ctx, s)
	}
}

// runWhileNotQuiet is runScheduler for the only source of a pool that looks ahead.
func (p *pool) runWhileNotQuiet(ctx context.Context, s *source) {
	for ctx.Err() == nil {
		if p.isQuiet(ctx, s) {
			pause(ctx, p.Lookahead)
			continue
		}
		ahead, cancel := context.WithTimeout(ctx, p.Lookahead)
		every(ahead, p.ScheduleInterval, func() { p.schedule(ctx, s) })
		cancel()
	}
}

// isQuiet reports whether no job of a source will be due within the time that the scheduler looks
// ahead, as far as is known.
func (p *pool) isQuiet(ctx context.Context, s *source) bool {
	if p.busy.Load() > 0 {
		return false
	}
	due, err := s.Due(ctx, p.Name, p.now().Add(p.Lookahead))
	if err != nil {
		p.report("schedule", err)
	}
	return err != nil || due == 0
}

// runWhenDue is runScheduler for one of several sources of a pool that looks ahead. It asks when
// the next job is due, which costs Redis a fraction of the script, and rests until then. When this
// process puts a job off meanwhile, it touches the source, so that job is on time.
func (p *pool) runWhenDue(ctx context.Context, s *source) {
	for ctx.Err() == nil {
		due := p.nextDue(ctx, s)
		wait := min(due.Sub(p.now()), p.Lookahead)
		s.rest(ctx, min(wait, p.ScheduleInterval), wait)
		if due.After(p.now()) {
			continue
		}
		for moved := 1; moved > 0 && ctx.Err() == nil; {
			moved = p.schedule(ctx, s)
			pause(ctx, p.ScheduleInterval)
		}
	}
}

// nextDue returns when the next job of a source is due: in the far future if there is none, or if
// Redis does not answer.
func (p *pool) nextDue(ctx context.Context, s *source) time.Time {
	due, err := s.NextDue(ctx, p.Name)
	if err != nil {
		p.report("schedule", err)
		pause(ctx, retryInterval)
	}
	return due
}

// schedule makes all jobs of a source instant that are due. It returns how many the last call has
// moved.
func (p *pool) schedule(ctx context.Context, s *source) (moved int) {
	for ctx.Err() == nil {
		var err error
		moved, err = s.Schedule(ctx, p.Name, p.now(), maxScheduled)
		if err != nil {
			p.report("schedule", err)
			pause(ctx, retryInterval)
			return 0
		}
		if moved < maxScheduled {
			return moved
		}
	}
	return moved
}
