package stack

import (
	"context"
	"time"

	"routemaster/tools/bench/load"
)

const (
	// stallTimeout is how long to wait for missing events while nothing arrives.
	stallTimeout = 20 * time.Second
	// PollInterval is how often to look.
	PollInterval = 10 * time.Millisecond
)

// Follow waits until so many events have arrived at a receiver, or no more have arrived for
// [stallTimeout]. It fails if a program has exited.
func (s *Stack) Follow(ctx context.Context, receiver load.Control, events int64) (progress load.Samples, err error) {
	last := time.Now()
	for {
		tally, err := receiver.Tally(ctx)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if len(progress) == 0 || tally.Distinct > progress.Last().Count {
			last = now
		}
		progress = append(progress, load.Sample{At: now, Count: tally.Distinct})
		if tally.Distinct >= events || now.Sub(last) > stallTimeout {
			return progress, nil
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
		if err := load.Sleep(ctx, PollInterval); err != nil {
			return nil, err
		}
	}
}
