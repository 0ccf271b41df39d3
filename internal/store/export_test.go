package store

import (
	"context"
	"time"

	"routemaster/internal/bus"
)

// FormerBatches lets tests be as late as a request that was held up.
func (s *Store) FormerBatches(token bus.Token) *OldestBatches { return s.formerBatches(token) }

// ReplayStopped, ReplayWaits and ReplayCopied are the results of a step of a replay.
const ReplayStopped, ReplayWaits, ReplayCopied = stopped, waits, copied

// ReplayCopier lets tests take the steps of a replay.
type ReplayCopier struct{ *copier }

// NewReplayCopier begins a run.
func NewReplayCopier(r *Replays, replay Replay, now time.Time) ReplayCopier {
	return ReplayCopier{newCopier(r, replay, now, &CopiedByReplays{Events: map[bus.Token]int{}, Lost: map[bus.Token]int{}})}
}

// Step takes one step.
func (c ReplayCopier) Step(ctx context.Context) (progress, error) { return c.step(ctx) }

// Twin returns a run of another worker with the same state.
func (c ReplayCopier) Twin() ReplayCopier { return NewReplayCopier(c.Replays, c.Replay, c.now) }

// ReadSubscriber reads how the subscriber wants its batches, which Copy does not.
func (c ReplayCopier) ReadSubscriber(ctx context.Context) error { return c.readSubscriber(ctx) }

// Copy copies a slice, whatever the queue's length.
func (c ReplayCopier) Copy(ctx context.Context) (progress, error) { return c.copy(ctx, maxSlice) }

// Lanes are the subscriber's, as they were read.
func (c ReplayCopier) Lanes() Lanes { return c.lanes }

// Done returns how many events the run has copied.
func (c ReplayCopier) Done() map[bus.Token]int { return c.done.Events }

// CutSizes returns the number of events in each batch that a slice is cut into.
func CutSizes(entries []HistoryEntry, lanes Lanes, maxEvents int) (sizes []int) {
	for _, b := range cut(entries, lanes, maxEvents) {
		sizes = append(sizes, len(b.events))
	}
	return sizes
}
