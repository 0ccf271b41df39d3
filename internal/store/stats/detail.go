package stats

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store"
	"routemaster/internal/wire"
)

// Detail is what there is to know of one subscriber.
type Detail struct {
	// Subscriber is without OldestAt.
	bus.Subscriber
	Options     store.OptionsRecord
	DeadLetters DeadLetters
	// PausedUntil is zero unless the subscriber is paused.
	PausedUntil time.Time
	// NextDeliveryAt is when the next delivery can begin at the earliest, in the past if it can
	// now; zero if nothing is queued.
	NextDeliveryAt time.Time
	// Gap is what a gap notice tells that waits and was not tried yet; nil if there is none.
	Gap *Gap
}

// Gap is events that a subscriber has lost.
type Gap struct {
	Events, Batches int64
	// Since and Until are when the first and the last of the batches were created.
	Since, Until time.Time
	// Reason is that of the last loss.
	Reason bus.LossReason
}

// DeadLetters is how much there is of a subscriber's dead letters.
type DeadLetters struct {
	// Bytes are those of the packed events.
	Letters, Events, Bytes int64
	// OldestAt is when the oldest one died; zero if there is none.
	OldestAt time.Time
}

// Detail reads one subscriber, by whichever of its tokens while that is being changed. It fails
// with [bus.ErrNotSubscribed] or [bus.ErrUnavailable], or when a key is not of its type.
func (s *Stats) Detail(ctx context.Context, token bus.Token, now time.Time) (Detail, error) {
	token, err := s.store.Holder(ctx, token)
	if err != nil {
		return Detail{}, err
	}
	found, _, err := s.subscribers(ctx, []rdb.Member{{Name: string(token), Value: string(token)}})
	if err != nil {
		return Detail{}, err
	}
	if len(found) == 0 {
		return Detail{}, bus.ErrNotSubscribed
	}
	d := Detail{Subscriber: found[0]}
	if d.Options, err = s.store.Options(ctx, token); err != nil {
		return Detail{}, err
	}
	if d.DeadLetters, err = s.deadLetters(ctx, token); err != nil {
		return Detail{}, err
	}
	if d.Gap, err = s.gap(ctx, token); err != nil {
		return Detail{}, err
	}
	err = s.readWaits(ctx, &d, now)
	return d, err
}

func (s *Stats) gap(ctx context.Context, token bus.Token) (*Gap, error) {
	told, err := s.redis.HGetAll(ctx, s.keys.Gaps(token)).Result()
	if err != nil || len(told) == 0 {
		return nil, rdb.Wrap("read gap", err)
	}
	figure := func(name string) int64 { return rdb.Integer(told[name], 0) }
	return &Gap{
		Events: figure("events"), Batches: figure("batches"), Since: time.UnixMilli(figure("since")),
		Until: time.UnixMilli(figure("until")), Reason: bus.LossReason(told["reason"]),
	}, nil
}

func (s *Stats) deadLetters(ctx context.Context, token bus.Token) (found DeadLetters, err error) {
	oldest, err := s.redis.ZRangeWithScores(ctx, s.keys.DeadLetters(token), 0, 0).Result()
	if err != nil || len(oldest) == 0 {
		return found, rdb.Wrap("read dead letters", err)
	}
	found.OldestAt = time.UnixMilli(int64(oldest[0].Score))
	var letters rdb.Reply[int64]
	var events, bytes rdb.Reply[string]
	err = s.redis.Reads(ctx, "read dead letters", func(pipe rdb.Commands) {
		letters = pipe.ZCard(ctx, s.keys.DeadLetters(token))
		events = pipe.HGet(ctx, s.keys.DeadLetterEvents(), string(token))
		bytes = pipe.HGet(ctx, s.keys.DeadLetterBytes(), string(token))
	})
	found.Letters, found.Events, found.Bytes = letters.Val(), rdb.Integer(events.Val(), 0), rdb.Integer(bytes.Val(), 0)
	return found, err
}

// waiting is what the batches of a subscriber wait for.
type waiting struct {
	// batches is how many there are, inLane how many of them stand in the lane.
	batches, inLane int64
	// comeUp are the jobs that come up by themselves: the head of the lane, and those of batches
	// that take in events or are to be retried, which may stand in the lane too.
	comeUp []string
	// all is whether these, and the lane, are all batches, if the numbers agree.
	all bool
	// blockedUntil is until when none is delivered.
	blockedUntil time.Time
}

// failedSearched is how many of the batches that wait for a retry are looked at.
const failedSearched = 100

// readWaits finds until when a subscriber is paused, and when the next delivery can begin.
func (s *Stats) readWaits(ctx context.Context, d *Detail, now time.Time) error {
	w, paused, err := s.readWaiting(ctx, d.Token)
	if err != nil {
		return err
	}
	if paused.After(now) {
		d.PausedUntil = paused
	}
	if w.batches <= 0 {
		return nil
	}
	at, err := s.earliest(ctx, w, now, s.jobs.Lane(bus.JobBatch, string(d.Token)))
	if at.Before(w.blockedUntil) {
		at = w.blockedUntil
	}
	d.NextDeliveryAt = at
	return err
}

func (s *Stats) readWaiting(ctx context.Context, token bus.Token) (w waiting, paused time.Time, err error) {
	var state rdb.Reply[[]any]
	var batches rdb.Reply[string]
	var inLane rdb.Reply[int64]
	var head, current, failed rdb.Reply[[]string]
	err = s.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		state = pipe.HMGet(ctx, s.keys.Delivery(token), "paused_until", "throttled_until", "paced_until")
		batches = pipe.HGet(ctx, s.keys.BatchGauge(), string(token))
		lane := s.jobs.Lane(bus.JobBatch, string(token))
		head, inLane = pipe.ZRange(ctx, lane, 0, 0), pipe.ZCard(ctx, lane)
		current = pipe.SMembers(ctx, s.keys.Current(token))
		failed = pipe.ZRange(ctx, s.keys.Failed(token), 0, failedSearched-1)
	})
	if err != nil {
		return w, paused, err
	}
	for i, until := range state.Val() {
		ms, _ := strconv.ParseFloat(rdb.Text(until), 64)
		at := time.UnixMilli(int64(math.Ceil(ms)))
		if i == 0 {
			paused = at
		}
		if at.After(w.blockedUntil) {
			w.blockedUntil = at
		}
	}
	w.batches, w.inLane = rdb.Integer(batches.Val(), 0), inLane.Val()
	w.comeUp, w.all = head.Val(), len(failed.Val()) < failedSearched
	for _, batch := range slices.Concat(current.Val(), failed.Val()) {
		if job := wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{batch}}); !slices.Contains(w.comeUp, job) {
			w.comeUp = append(w.comeUp, job)
		}
	}
	return w, paused, nil
}

// earliest is when the first of the waiting jobs comes up: now, if one is instant or in flight.
func (s *Stats) earliest(ctx context.Context, w waiting, now time.Time, lane string) (time.Time, error) {
	due, places := make([]rdb.Reply[float64], len(w.comeUp)), make([]rdb.Reply[float64], len(w.comeUp))
	err := s.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		for i, job := range w.comeUp {
			due[i], places[i] = pipe.ZScore(ctx, s.jobs.Scheduled(bus.QueueMain), job), pipe.ZScore(ctx, lane, job)
		}
	})
	if err != nil {
		return now, err
	}
	at, known := bus.Forever, w.inLane
	for i := range w.comeUp {
		isHead, stands := i == 0 && w.inLane > 0, places[i].Err() == nil
		if !stands {
			known++
		} else if !isHead {
			continue // it waits for the head
		}
		comesUp := now
		if due[i].Err() == nil {
			comesUp = time.UnixMilli(int64(due[i].Val()))
		}
		if comesUp.Before(at) {
			at = comesUp
		}
	}
	if w.all && known < w.batches && now.Before(at) { // the others are due, and no worker has seen them
		at = now
	}
	return at, nil
}
