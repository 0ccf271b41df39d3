package overview

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Subject is what a track is about: the bus if both are empty, else a subscriber or a topic.
type Subject struct{ Subscriber, Topic string }

// Point is what the history has of one step of time. Where it has nothing, all of it is NaN. Of a
// topic only In is known.
type Point struct {
	// In and Out are events/s that were published and acknowledged.
	In, Out float32
	// Succeeded and Failed are deliveries in the step, Dropped events.
	Succeeded, Failed, Dropped float32
	// Queued is a number of events, Oldest an age in seconds, Health from 0 to 100 (of the bus, that
	// of the worst). Used is Redis' memory in bytes, of the bus only.
	Queued, Oldest, Health, Used float32

	// These are of the bus only. Unreadable and Scrubbed count events that could not be read, and
	// threads that were taken for dead, in the step. Busy is the share of the workers' threads that
	// deliver, from 0 to 1, NaN if there is no thread; Waiting is the number of instant jobs of main.
	Unreadable, Scrubbed, Busy, Waiting float32
}

// Track is what the history has of a subject: a point for each step, oldest first. The last one
// ends at End.
type Track struct {
	End    time.Time
	Step   time.Duration
	Points []Point
}

// Range is how far back a track goes.
type Range struct {
	Name   string
	Step   time.Duration
	Points int
}

// The ranges of the history.
var (
	// Fast is 15 min in steps of 10 s.
	Fast = Range{"15m", 10 * time.Second, 90}
	// Slow is 6 h in steps of 2 min.
	Slow = Range{"6h", 2 * time.Minute, 180}
	// Day is 24 h in steps of 10 min, of the bus only.
	Day = Range{"24h", 10 * time.Minute, 144}
)

// Ranges are all ranges, the shortest first.
var Ranges = []Range{Fast, Slow, Day}

// Tracks finds what the figures of a subject have been. It is false if the history has nothing of
// it.
type Tracks func(of Subject, over Range) (Track, bool)

// History has what the figures have been, in memory: a ring of slots for each [Range]. For 1,000
// subscribers and 500 topics it takes less than 10 MB. It is safe for concurrent use.
type History struct {
	mu    sync.RWMutex
	rings map[string]*ring
}

// NewHistory makes an empty history.
func NewHistory() *History { return &History{rings: map[string]*ring{}} }

// Add adds a slot to the ring of a range, unless it is older than what is there, or of the same
// step.
func (h *History) Add(over Range, s Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[over.Name]
	if r == nil {
		r = &ring{over: over, tracks: map[Subject]*track{}}
		h.rings[over.Name] = r
	}
	r.add(s)
}

// End is the number of the newest slot in the ring of a range, as [Range.Number] counts; 0 if it is
// empty.
func (h *History) End(over Range) int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if r := h.rings[over.Name]; r != nil {
		return r.end
	}
	return 0
}

// Track is a [Tracks].
func (h *History) Track(of Subject, over Range) (Track, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if r := h.rings[over.Name]; r != nil {
		return r.track(of)
	}
	return Track{}, false
}

// Number counts the steps of a range from the Unix epoch on: it is that in which a time is.
func (r Range) Number(at time.Time) int64 { return at.UnixMilli() / r.Step.Milliseconds() }

// maxGap is over how many steps a rate is computed. If slots between are missing, it is the mean of
// all these steps, and the counts of all of them stand in the last.
const maxGap = 3

// ring has the last slots of a range.
type ring struct {
	over Range
	// end is the number of the newest slot.
	end    int64
	tracks map[Subject]*track
	// short is whether the newest slot had no room for all.
	short bool
}

// track has a subject's points in a ring, and the totals of its last slot.
type track struct {
	// points has the columns of each step one after the other: there is a subject for each of
	// thousands of names, and most have less than a [Point] has.
	points []float32
	last   columns
	number int64
	at     time.Time
}

// columns are the numbers of a slot about a subject: first totals, then gauges.
type columns struct{ totals, gauges []float64 }

func (c columns) width() int { return len(c.totals) + len(c.gauges) }

func busColumns(s Slot) columns {
	c := subscriberColumns(s.Bus)
	c.totals = append(c.totals, float64(s.Events), float64(s.Unreadable), float64(s.Scrubbed))
	c.gauges = append(c.gauges, float64(s.Used), float64(s.Busy)/float64(s.Threads), float64(s.Waiting)) // 0/0 is NaN
	return c
}

func subscriberColumns(t Totals) columns {
	return columns{
		[]float64{float64(t.Sent), float64(t.Succeeded), float64(t.Failed), float64(t.Dropped)},
		[]float64{float64(t.Queued), t.Oldest.Seconds(), float64(t.Health)},
	}
}

// add adds a slot.
func (r *ring) add(s Slot) {
	number := r.over.Number(s.At)
	if number <= r.end {
		return
	}
	for n := max(r.end+1, number-int64(r.over.Points)+1); n <= number; n++ {
		for _, t := range r.tracks {
			t.clear(n, r.over.Points)
		}
	}
	r.end = number
	was, known := r.tracks[Subject{}]
	var before track
	if known {
		before = *was
	}
	r.put(Subject{}, s.At, busColumns(s))
	grown := slices.Repeat([]float64{math.NaN()}, eventsTotal+1)
	for _, sub := range s.Subscribers {
		add(grown, r.put(Subject{Subscriber: sub.Name}, s.At, subscriberColumns(sub.Totals)))
	}
	for _, topic := range s.Topics {
		add(grown[eventsTotal:], r.put(Subject{Topic: topic.Name}, s.At, columns{totals: []float64{float64(topic.Events)}}))
	}
	short := s.Left > 0
	if known && r.follows(before) && !short && !r.short {
		if len(s.Subscribers) == 0 { // none has anything, now
			copy(grown, make([]float64, eventsTotal))
		}
		if len(s.Topics) == 0 {
			grown[eventsTotal] = 0
		}
		r.setGrowth(grown, s.At.Sub(before.at))
	}
	r.short = short
	maps.DeleteFunc(r.tracks, func(_ Subject, t *track) bool { return number-t.number >= int64(r.over.Points) })
}

// setGrowth notes by how much the totals of the bus have grown in the newest step: the sum of what
// those of its subscribers and topics did. The sum of their totals also changes when one leaves, or
// comes back with all it ever had.
func (r *ring) setGrowth(grown []float64, in time.Duration) {
	point := r.tracks[Subject{}].point(r.end, r.over.Points)
	for i, n := range grown {
		if isRate(i) {
			n /= in.Seconds()
		}
		point[i] = float32(n)
	}
}

// add adds what is known.
func add(sum, some []float64) {
	for i, n := range some {
		switch {
		case math.IsNaN(n):
		case math.IsNaN(sum[i]):
			sum[i] = n
		default:
			sum[i] += n
		}
	}
}

// follows reports whether the newest slot is soon enough after the last of a track for a rate.
func (r *ring) follows(t track) bool { return t.number > 0 && r.end-t.number <= maxGap }

// put notes the numbers of the newest slot about a subject. It returns by how much each total has
// grown, NaN where that is not known.
func (r *ring) put(of Subject, at time.Time, now columns) (grown []float64) {
	t := r.tracks[of]
	if t == nil {
		t = &track{points: make([]float32, r.over.Points*now.width())}
		for i := range t.points {
			t.points[i] = nan
		}
		r.tracks[of] = t
	}
	point := t.point(r.end, r.over.Points)
	for i, total := range now.totals {
		grown = append(grown, math.NaN())
		if r.follows(*t) && total >= t.last.totals[i] {
			grown[i] = total - t.last.totals[i]
			point[i] = float32(grown[i])
			if isRate(i) {
				point[i] /= float32(at.Sub(t.at).Seconds())
			}
		}
	}
	for i, gauge := range now.gauges {
		point[len(now.totals)+i] = float32(gauge)
	}
	t.last, t.number, t.at = now, r.end, at
	return grown
}

// isRate reports whether a total is shown by the second: events are, deliveries and drops are not.
func isRate(total int) bool { return total == 0 || total == eventsTotal }

// eventsTotal is which total of the bus is the sum of its topics. Those before are of subscribers.
const eventsTotal = 4

// point is where the columns of a step are.
func (t *track) point(number int64, points int) []float32 {
	width := len(t.points) / points
	at := int(number%int64(points)) * width
	return t.points[at : at+width]
}

func (t *track) clear(number int64, points int) {
	for i := range t.point(number, points) {
		t.point(number, points)[i] = nan
	}
}

var nan = float32(math.NaN())

// track returns the points of a subject.
func (r *ring) track(of Subject) (Track, bool) {
	t := r.tracks[of]
	if t == nil {
		return Track{}, false
	}
	result := Track{End: time.UnixMilli((r.end + 1) * r.over.Step.Milliseconds()), Step: r.over.Step}
	for n := r.end - int64(r.over.Points) + 1; n <= r.end; n++ {
		result.Points = append(result.Points, pointOf(of, t.point(n, r.over.Points)))
	}
	return result, true
}

func pointOf(of Subject, c []float32) Point {
	p := Point{nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan}
	switch {
	case of.Topic != "":
		p.In = c[0]
	case of.Subscriber != "":
		p.Out, p.Succeeded, p.Failed, p.Dropped, p.Queued, p.Oldest, p.Health = c[0], c[1], c[2], c[3], c[4], c[5], c[6]
	default:
		p.Out, p.Succeeded, p.Failed, p.Dropped, p.In, p.Unreadable, p.Scrubbed = c[0], c[1], c[2], c[3], c[4], c[5], c[6]
		p.Queued, p.Oldest, p.Health, p.Used, p.Busy, p.Waiting = c[7], c[8], c[9], c[10], c[11], c[12]
	}
	return p
}
