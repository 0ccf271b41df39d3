package stats

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/bus"
	"routemaster/internal/rdb"
	"routemaster/internal/store/lanes"
	"routemaster/internal/wire"
)

// waiting is what the batches of a subscriber wait for that are of the oldest generation of lanes.
// The others wait for these, but for some that have failed.
type waiting struct {
	// batches is how many there are, inLanes how many of them stand in a lane.
	batches, inLanes int64
	// comeUp are those that come up by themselves.
	comeUp []candidate
	// all is whether these, and the lanes, are all batches, if the numbers agree.
	all bool
}

// candidate is a batch that comes up by itself: the head of a lane, or one that takes in events or
// is to be retried, which may stand in its lane too.
type candidate struct {
	job, lane string
	// oldest is whether it is of the oldest generation.
	oldest bool
}

// failedSearched is how many of the batches that wait for a retry are looked at.
const failedSearched = 100

// nextDelivery is when the next delivery to a subscriber can begin; zero if nothing is queued.
func (s *Stats) nextDelivery(ctx context.Context, token bus.Token, r records, now time.Time) (at time.Time, err error) {
	w := waiting{batches: r.batches}
	if len(r.lanes) > 1 {
		w.batches = r.lanes[0].Batches
	}
	if w.batches <= 0 {
		return at, nil
	}
	if err = s.readWaiting(ctx, token, r.lanes, &w); err != nil {
		return at, err
	}
	at, err = s.earliest(ctx, w, now)
	if held := r.holds.Until(); at.Before(held) {
		at = held
	}
	return at, err
}

func (s *Stats) readWaiting(ctx context.Context, token bus.Token, all lanes.Generations, w *waiting) error {
	var failed rdb.Reply[[]string]
	oldest := all[0]
	names := make([]string, oldest.Lanes)
	lengths, heads := make([]rdb.Reply[int64], oldest.Lanes), make([]rdb.Reply[[]string], oldest.Lanes)
	current := make([]rdb.Reply[[]string], oldest.Lanes)
	err := s.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		for i := range names {
			names[i] = s.jobs.Lane(bus.JobBatch, oldest.Lane(token, i))
			heads[i], lengths[i] = pipe.ZRange(ctx, names[i], 0, 0), pipe.ZCard(ctx, names[i])
			current[i] = pipe.SMembers(ctx, s.keys.CurrentOfLane(token, i))
		}
		failed = pipe.ZRange(ctx, s.keys.Failed(token), 0, failedSearched-1)
	})
	if err != nil {
		return err
	}
	w.all = len(failed.Val()) < failedSearched
	for i, name := range names {
		w.inLanes += lengths[i].Val()
		for _, job := range heads[i].Val() {
			w.add(candidate{job, name, true})
		}
		if len(all) == 1 { // else these are of the last generation
			for _, batch := range current[i].Val() {
				w.add(candidate{jobOf(batch), name, true})
			}
		}
	}
	retried, err := s.placesOf(ctx, token, all, failed.Val())
	for _, c := range retried {
		w.add(c)
	}
	return err
}

// HoldFields are those of [Holds] in Redis: times in ms, paced_until with fractions.
var HoldFields = []string{"paused_until", "throttled_until", "paced_until"}

// ParseHolds reads the values of [HoldFields]. What is missing, or no number, is zero.
func ParseHolds(values []any) Holds {
	var times [3]time.Time
	for i, value := range values {
		text := rdb.Text(value)
		if text == "" { // it is often not there, and an error takes memory
			continue
		}
		if ms, err := strconv.ParseFloat(text, 64); err == nil {
			times[i] = time.UnixMilli(int64(math.Ceil(ms)))
		}
	}
	return Holds{times[0], times[1], times[2]}
}

// Until is until when nothing is delivered, for whatever reason.
func (h Holds) Until() time.Time {
	return slices.MaxFunc([]time.Time{h.Paused, h.Throttled, h.Paced}, time.Time.Compare)
}

// after leaves the times after one.
func (h Holds) after(now time.Time) Holds {
	for _, at := range []*time.Time{&h.Paused, &h.Throttled, &h.Paced} {
		if !at.After(now) {
			*at = time.Time{}
		}
	}
	return h
}

func jobOf(batch string) string {
	return wire.PackJob(bus.Job{Name: bus.JobBatch, Args: []string{batch}})
}

// add adds a candidate, unless it is there.
func (w *waiting) add(c candidate) {
	if !slices.Contains(w.comeUp, c) {
		w.comeUp = append(w.comeUp, c)
	}
}

// placesOf finds the lanes of batches that have failed.
func (s *Stats) placesOf(
	ctx context.Context, token bus.Token, all lanes.Generations, batches []string,
) ([]candidate, error) {
	places := make([]rdb.Reply[[]any], len(batches))
	err := s.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		for i, batch := range batches {
			places[i] = pipe.HMGet(ctx, s.keys.BatchState(bus.BatchID(batch)), lanes.PlaceFields...)
		}
	})
	if err != nil {
		return nil, err
	}
	found := make([]candidate, len(batches))
	for i, batch := range batches {
		generation, lane := all.Place(places[i].Val())
		found[i] = candidate{
			jobOf(batch), s.jobs.Lane(bus.JobBatch, generation.Lane(token, lane)), generation.Name == all[0].Name,
		}
	}
	return found, nil
}

// earliest is when the first of the waiting jobs comes up: now, if one is instant or in flight.
func (s *Stats) earliest(ctx context.Context, w waiting, now time.Time) (time.Time, error) {
	due, turns := make([]rdb.Reply[float64], len(w.comeUp)), make([]rdb.Reply[int64], len(w.comeUp))
	err := s.redis.Reads(ctx, "read subscriber", func(pipe rdb.Commands) {
		for i, c := range w.comeUp {
			due[i], turns[i] = pipe.ZScore(ctx, s.jobs.Scheduled(bus.QueueMain), c.job), pipe.ZRank(ctx, c.lane, c.job)
		}
	})
	if err != nil {
		return now, err
	}
	at, known := bus.Forever, w.inLanes
	for i, c := range w.comeUp {
		stands := turns[i].Err() == nil
		if stands && turns[i].Val() > 0 {
			continue // it waits for the head
		}
		if !stands && c.oldest {
			known++
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
