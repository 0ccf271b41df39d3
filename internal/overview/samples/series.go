package samples

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"routemaster/internal/layout"
	"routemaster/internal/overview"
	"routemaster/internal/rdb"
)

// The rings in Redis, by the names in their keys. The day's ring is a hash.
const (
	fastRing = "fast"
	slowRing = "slow"
)

// SeriesInterval is how often a worker is ready to write a slot. Of all workers one does.
const SeriesInterval = 10 * time.Second

// turnTTL is how long a turn keeps other workers from writing: a little less than the interval.
const turnTTL = SeriesInterval - time.Second

// The series take at most 2 % of the memory limit, and a slot at most 64 KiB: see [slotSize].
const (
	seriesShare = 0.02
	maxSlotSize = 64 << 10
	// keySize is Redis's overhead of a key in bytes.
	keySize = 128
	// minLimit is the memory limit in bytes below which no slot is written.
	minLimit = 20_000_000
	// slotsPerTrip is the maximum number of slots that one round trip reads.
	slotsPerTrip = 30
)

// slotSize is how many bytes a slot may have, 0 if there is no room for series. Redis takes memory
// in blocks whose sizes are four to each power of two: a slot fits into one.
func slotSize(memoryLimit int64) int {
	if memoryLimit < minLimit {
		return 0
	}
	size := int(min(seriesShare*float64(memoryLimit)/float64(overview.Fast.Points+overview.Slow.Points), maxSlotSize))
	block := 1 << max(bits.Len(uint(size))-3, 0)
	return size - size%block - keySize
}

// series are the rings of slots in Redis.
type series struct {
	redis *rdb.Partition
	keys  layout.Keys
}

func newSeries(p *rdb.Partition) *series { return &series{p, layout.Keys{Namespace: p.Namespace()}} }

// take takes the turn to write a slot, if no other worker has it. Now is by Redis' clock, so that
// all workers number the slots alike.
func (s *series) take(ctx context.Context) (mine bool, now time.Time, err error) {
	var turn rdb.Reply[bool]
	var clock rdb.Reply[time.Time]
	var left rdb.Reply[time.Duration]
	err = s.redis.Pipelined(ctx, "take turn", func(pipe rdb.Commands) {
		turn = pipe.SetNX(ctx, s.keys.SeriesTurn(), "1", turnTTL)
		clock = pipe.Time(ctx)
		left = pipe.TTL(ctx, s.keys.SeriesTurn())
	})
	if err == nil && left.Val() == -1 { // no worker sets one without end; it would stop the history
		err = rdb.Wrap("end turn", s.redis.Expire(ctx, s.keys.SeriesTurn(), turnTTL).Err())
	}
	return err == nil && turn.Val(), clock.Val(), err
}

// write writes a slot to the rings in place of an old one, each as often as its step.
func (s *series) write(ctx context.Context, slot overview.Slot, size int) error {
	packed := pack(slot, size)
	if packed == nil {
		return nil
	}
	slot.Shorten(0)
	day := pack(slot, size)
	err := s.redis.Pipelined(ctx, "write series", func(pipe rdb.Commands) {
		set := func(ring string, over overview.Range) {
			pipe.Set(ctx, s.keys.SeriesSlot(ring, over.Number(slot.At)%int64(over.Points)), packed, ttl(over))
		}
		set(fastRing, overview.Fast)
		set(slowRing, overview.Slow)
		number := overview.Day.Number(slot.At) % int64(overview.Day.Points)
		pipe.HSet(ctx, s.keys.SeriesDay(), strconv.FormatInt(number, 10), day)
		pipe.Expire(ctx, s.keys.SeriesDay(), ttl(overview.Day))
	})
	return err
}

func ttl(over overview.Range) time.Duration { return 2 * time.Duration(over.Points) * over.Step }

// WriteSlot writes a slot of any time, for benchmarks with a history. It fails with
// [bus.ErrUnavailable].
func WriteSlot(ctx context.Context, p *rdb.Partition, slot overview.Slot) error {
	return newSeries(p).write(ctx, slot, maxSlotSize)
}

// last reads the slots of the last so much time before now, oldest first.
func (s *series) last(ctx context.Context, now time.Time, window time.Duration) ([]overview.Slot, error) {
	slots, err := s.readRing(ctx, fastRing, overview.Fast, overview.Fast.Number(now.Add(-window)), overview.Fast.Number(now))
	slots = slices.DeleteFunc(slots, func(slot overview.Slot) bool {
		age := now.Sub(slot.At)
		return age <= 0 || age >= window
	})
	slices.SortFunc(slots, compareSlots)
	return slots, err
}

// load adds the missing slots to a history.
func (s *series) load(ctx context.Context, h *overview.History) error {
	now, err := s.redis.Time(ctx).Result()
	if err != nil {
		return rdb.Wrap("read series", err)
	}
	if err := s.loadRing(ctx, h, fastRing, overview.Fast, now); err != nil {
		return err
	}
	if err := s.loadRing(ctx, h, slowRing, overview.Slow, now); err != nil {
		return err
	}
	if h.End(overview.Day) == overview.Day.Number(now) {
		return nil
	}
	days, err := s.redis.HVals(ctx, s.keys.SeriesDay()).Result()
	if err != nil {
		return rdb.Wrap("read series", err)
	}
	addAll(h, overview.Day, unpackAll(days), now)
	return nil
}

func (s *series) loadRing(ctx context.Context, h *overview.History, ring string, over overview.Range, now time.Time) error {
	last := over.Number(now)
	slots, err := s.readRing(ctx, ring, over, max(h.End(over)+1, last-int64(over.Points)+1), last)
	if err != nil {
		return err
	}
	addAll(h, over, slots, now)
	return nil
}

// readRing reads a ring at the places of the slots from first to last.
func (s *series) readRing(
	ctx context.Context, ring string, over overview.Range, first, last int64,
) (slots []overview.Slot, err error) {
	var keys []string
	for n := first; n <= last; n++ {
		keys = append(keys, s.keys.SeriesSlot(ring, n%int64(over.Points)))
	}
	for some := range slices.Chunk(keys, slotsPerTrip) {
		values, err := s.redis.MGet(ctx, some...).Result()
		if err != nil {
			return nil, rdb.Wrap("read series", err)
		}
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = rdb.Text(value)
		}
		slots = append(slots, unpackAll(texts)...)
	}
	return slots, nil
}

// unpackAll unpacks the texts that are slots, and skips the others.
func unpackAll(texts []string) (slots []overview.Slot) {
	for _, text := range texts {
		if slot, err := unpack(text); err == nil {
			slots = append(slots, slot)
		}
	}
	return slots
}

// compareSlots orders slots, the oldest first.
func compareSlots(a, b overview.Slot) int { return cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()) }

// addAll adds slots that are in the range to a history.
func addAll(h *overview.History, over overview.Range, slots []overview.Slot, now time.Time) {
	last := over.Number(now)
	slots = slices.DeleteFunc(slots, func(s overview.Slot) bool {
		n := over.Number(s.At)
		return n > last || n <= last-int64(over.Points)
	})
	slices.SortFunc(slots, compareSlots)
	for _, slot := range slots {
		h.Add(over, slot)
	}
}

// Recorder writes the history of a bus, taking turns with other workers.
type Recorder struct {
	collector *Collector
	series    *series
	flush     func(context.Context)
}

// NewRecorder makes a recorder of the samples of a collector. Flush adds the counts of this process
// to the counters, before each slot: else slots would have one flush more or less.
func NewRecorder(c *Collector, flush func(context.Context)) *Recorder {
	return &Recorder{c, newSeries(c.config.Stores.First().Partition()), flush}
}

// Tick writes a slot if it is this worker's turn, and removes the entries of processes that have
// died. Workers call it every [SeriesInterval]. It fails with [bus.ErrUnavailable].
func (r *Recorder) Tick(ctx context.Context) error {
	mine, now, err := r.series.take(ctx)
	if err != nil || !mine {
		return err
	}
	forgotten := r.collector.processes.forget(ctx, now)
	r.flush(ctx)
	return cmp.Or(r.record(ctx, now), forgotten)
}

// record writes a slot of now, by Redis' clock.
func (r *Recorder) record(ctx context.Context, now time.Time) error {
	sample := r.collector.Collect(ctx, Record)
	if sample.Redis != "" || slices.ContainsFunc(overview.RecordedParts, sample.Lacks) {
		return nil // a gap
	}
	limit, _, _ := r.collector.config.Memory.Marks(0)
	if sample.Memory != nil {
		limit = sample.Memory.Max
	}
	slot := overview.SlotOf(sample)
	slot.At = now
	return r.series.write(ctx, slot, slotSize(limit))
}
