package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
)

const (
	// maxSlice and maxBatches are how many events and, about, how many batches one step copies: some
	// 3 ms of Redis.
	maxSlice, maxBatches = 1000, 250
	// MaxWaiting is how many events of one replay are in the queue at most.
	MaxWaiting = 10_000
)

// Why replays end that are neither done nor stopped by a request.
const (
	unsubscribed = "the subscriber is not subscribed to the topic any more"
	noHistory    = "the topic keeps no history any more"
	newHistory   = "the topic has fewer events by now: it was deleted and has begun anew, or Redis has lost them"
)

// progress is the result of a step.
type progress int

const (
	// stopped: there is nothing more to do in this run.
	stopped progress = iota
	// waits: there may be more to do in a moment.
	waits
	// copied: a slice was copied.
	copied
)

// copier goes on with one replay, during one run.
type copier struct {
	*Replays
	Replay
	now  time.Time
	done *CopiedByReplays
	// waiting is how many of its events are in the queue: so many or fewer, as it is not counted
	// after each slice. lastSeen is how many there were when it was last counted, unless a slice was
	// copied since.
	waiting, lastSeen int
	// lanes and maxEvents are the subscriber's; maxEvents is 0 until they are read.
	lanes     Lanes
	maxEvents int
}

func newCopier(r *Replays, replay Replay, now time.Time, done *CopiedByReplays) *copier {
	return &copier{Replays: r, Replay: replay, now: now, done: done, waiting: math.MaxInt, lastSeen: math.MaxInt}
}

// step copies a slice if there is room in the queue, or closes the replay if it is over.
func (c *copier) step(ctx context.Context) (progress, error) {
	if c.State != ReplayRunning {
		return stopped, c.close(ctx)
	}
	if err := c.readSubscriber(ctx); err != nil {
		return stopped, err
	}
	size := min(maxSlice, maxBatches*c.maxEvents, int(c.To-c.Next)+1)
	if c.waiting > MaxWaiting-size {
		before := c.lastSeen
		if err := c.count(ctx); err != nil {
			return stopped, err
		}
		c.lastSeen = c.waiting
		switch hasRoom := c.waiting <= MaxWaiting-size; {
		case !hasRoom && c.waiting < before:
			return waits, nil
		case !hasRoom:
			return stopped, nil // the next run looks again
		}
	}
	return c.copy(ctx, size)
}

// readSubscriber reads how the subscriber wants its batches.
func (c *copier) readSubscriber(ctx context.Context) (err error) {
	if c.maxEvents > 0 {
		return nil
	}
	if c.lanes, err = c.store.Lanes(ctx, c.Subscriber); err != nil {
		return err
	}
	text, err := c.redis.HGet(ctx, c.keys.Subscriber(c.Subscriber), "max_events").Result()
	c.maxEvents = max(1, int(rdb.Integer(text, bus.DefaultMaxEvents)))
	return rdb.Wrap("read subscriber", err)
}

// count counts the events of the replay that are in the queue, and forgets the batches that are
// not: they were delivered, or have died, or were removed.
func (c *copier) count(ctx context.Context) error {
	key := c.keys.ReplayBatches(c.ID)
	batches, err := c.redis.SMembers(ctx, key).Result()
	if err != nil {
		return rdb.Wrap("count replayed events", err)
	}
	waiting := 0
	for some := range slices.Chunk(batches, rdb.KeysPerTrip) {
		lengths := make([]rdb.Reply[int64], len(some))
		err := c.redis.Reads(ctx, "count replayed events", func(pipe rdb.Commands) {
			for i, batch := range some {
				lengths[i] = pipe.LLen(ctx, c.keys.Batch(bus.BatchID(batch)))
			}
		})
		if err != nil {
			return err
		}
		var gone []any
		for i, length := range lengths {
			if events := int(length.Val()) - BatchHeader; events > 0 {
				waiting += events
			} else {
				gone = append(gone, some[i])
			}
		}
		if len(gone) > 0 {
			if err := c.redis.SRem(ctx, key, gone...).Err(); err != nil {
				return rdb.Wrap("count replayed events", err)
			}
		}
	}
	c.waiting = waiting
	return nil
}

// copy copies the next events, at most size of them.
func (c *copier) copy(ctx context.Context, size int) (progress, error) {
	read, err := c.historyOf(c.Topic).Read(ctx, c.Topic, c.Next, size)
	switch {
	case errors.Is(err, ErrNoHistory), errors.Is(err, bus.ErrTopicUnknown):
		return stopped, c.fail(ctx, ReplayFailed, noHistory)
	case err != nil:
		return stopped, err
	case read.Last < c.To || len(read.Entries) == 0 && read.First <= c.To:
		return stopped, c.fail(ctx, ReplayFailed, newHistory)
	}
	lost := min(max(read.First-c.Next, 0), c.To-c.Next+1)
	entries := read.Entries[:min(int64(len(read.Entries)), c.To-c.Next-lost+1)]
	return c.put(ctx, entries, lost)
}

// stepArgs are the first arguments of lua/replay_step.lua, under the same names there.
type stepArgs struct {
	ID string
	// Before and After are positions of the next event: as it was read, and after the slice. Lost is
	// how many events before the slice the history has lost.
	Before, After, Lost int64
	Now                 int64  // ms
	Lanes               string // the version for which the batches are
	// OptionsVersion is for a subscriber without one, Notice the UID of a gap notice.
	OptionsVersion, Notice string
	LeftSince              int64 // when the oldest event that is left was received (ms)
}

func (a stepArgs) list() []any {
	return []any{a.ID, a.Before, a.After, a.Lost, a.Now, a.Lanes, a.OptionsVersion, a.Notice, a.LeftSince}
}

// put puts the next entries of the history into the queue, before which it has lost some events.
func (c *copier) put(ctx context.Context, entries []HistoryEntry, lost int64) (progress, error) {
	events := int64(len(entries))
	next, leftSince := c.Next+lost+events, c.now.UnixMilli()
	if events > 0 {
		leftSince = entries[0].ReceivedAt
	}
	args := stepArgs{
		ID: string(c.ID), Before: c.Next, After: next, Lost: lost, Now: c.now.UnixMilli(), Lanes: c.lanes.Version,
		OptionsVersion: bus.NewOptionsVersion(), Notice: string(bus.NewBatchID()), LeftSince: leftSince,
	}.list()
	for _, b := range cut(entries, c.lanes, c.maxEvents) {
		args = append(append(args, string(bus.NewBatchID()), b.lane, len(b.events)), b.events...)
	}
	reply, err := c.redis.Run(ctx, scriptReplayStep, args...).List()
	switch {
	case err != nil:
		return stopped, rdb.Wrap("copy replay", err)
	case reply[0] == int64(0):
		return c.refused(ctx, rdb.Text(reply[1]))
	}
	c.Next, c.Copied, c.Skipped = next, c.Copied+events, c.Skipped+lost
	c.waiting, c.lastSeen = c.waiting+len(entries), math.MaxInt
	if events > 0 {
		c.done.Events[c.Subscriber] += len(entries)
	}
	if lost > 0 {
		c.done.Lost[c.Subscriber] += int(lost)
	}
	if reply[1] == "1" {
		c.ended(ReplayDone, "")
	}
	return copied, nil
}

// refused goes on after a slice that was not copied.
func (c *copier) refused(ctx context.Context, why string) (progress, error) {
	switch why {
	case "stale":
		c.maxEvents = 0 // to read the lanes again
		return waits, nil
	case "not subscribed":
		return stopped, c.fail(ctx, ReplayCancelled, unsubscribed)
	}
	return stopped, nil // it was cancelled, or another run copies
}

// fail ends the replay before it is done.
func (c *copier) fail(ctx context.Context, state ReplayState, why string) error {
	ran, err := c.end(ctx, "", c.ID, state, why)
	if ran {
		c.ended(state, why)
	}
	if errors.Is(err, ErrReplayUnknown) { // its subscriber is gone
		return nil
	}
	return err
}

// ended notes that the replay has ended.
func (c *copier) ended(state ReplayState, why string) {
	c.State, c.Error = state, why
	c.done.Ended = append(c.done.Ended, c.Replay)
}

// close closes a replay that is over, once its events have left the queue.
func (c *copier) close(ctx context.Context) error {
	if err := c.count(ctx); err != nil || c.waiting > 0 {
		return err
	}
	return rdb.Wrap("close replay", c.redis.Run(ctx, scriptReplayClose, string(c.ID), keptFor.Milliseconds()).Err())
}

// batch is events of one lane.
type batch struct {
	lane   int
	events []any
}

// cut puts events of a history into batches of one lane each, in order, with at most maxEvents
// events.
func cut(entries []HistoryEntry, lanes Lanes, maxEvents int) (batches []*batch) {
	filling := map[int]*batch{}
	for _, entry := range entries {
		lane := lanes.Of(entry.Event)
		if b := filling[lane]; b == nil || len(b.events) == maxEvents {
			filling[lane] = &batch{lane: lane}
			batches = append(batches, filling[lane])
		}
		filling[lane].events = append(filling[lane].events, string(entry.Event))
	}
	return batches
}
