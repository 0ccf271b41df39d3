package worker

import "context"

// maxScheduled is the maximum number of jobs that one call makes instant. It bounds how long the
// call keeps Redis from serving others.
const maxScheduled = 100

// runScheduler makes due jobs of a source instant until the context is done.
func (p *pool) runScheduler(ctx context.Context, s *source) {
	if p.Lookahead == 0 {
		every(ctx, p.ScheduleInterval, func() { p.schedule(ctx, s) })
		return
	}
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

// schedule makes all jobs of a source instant that are due.
func (p *pool) schedule(ctx context.Context, s *source) {
	for ctx.Err() == nil {
		moved, err := s.Schedule(ctx, p.Name, p.now(), maxScheduled)
		if err != nil {
			p.report("schedule", err)
			pause(ctx, retryInterval)
			return
		}
		if moved < maxScheduled {
			return
		}
	}
}
