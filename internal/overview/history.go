package overview

import (
	"maps"
	"sync"
	"time"
)

// Subject names the bus if both fields are empty, else a subscriber or a topic.
type Subject struct{ Subscriber, Topic string }

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

// History holds past figures in memory, in a ring of slots for each [Range]. For 1,000 subscribers
// and 500 topics it takes less than 10 MB. It is safe for concurrent use.
type History struct {
	mu    sync.RWMutex
	rings map[string]*ring
}

// NewHistory makes an empty history.
func NewHistory() *History { return &History{rings: map[string]*ring{}} }

// Add adds a slot to the ring of a range, unless the ring has a newer one, or one of the same step.
func (h *History) Add(over Range, s Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[over.Name]
	if r == nil {
		r = &ring{over: over, lines: map[Subject]*line{}}
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

// Coverage is how many the newest slot has room for, nil if there is none.
func (h *History) Coverage() *Coverage {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if r := h.rings[Fast.Name]; r != nil {
		return new(r.coverage)
	}
	return nil
}

// Track is a [Tracks].
func (h *History) Track(of Subject, over Range) (Track, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	r := h.rings[over.Name]
	if r == nil || r.lines[of] == nil {
		return Track{}, false
	}
	last := r.end
	return Track{
		End: time.UnixMilli((last + 1) * over.Step.Milliseconds()), Step: over.Step, Steps: over.Points,
		last: func(f Figure, steps int) []float32 {
			h.mu.RLock()
			defer h.mu.RUnlock()
			return r.values(of, f, last, steps)
		},
	}, true
}

// Number counts the steps of a range from the Unix epoch on: it is that in which a time is.
func (r Range) Number(at time.Time) int64 { return at.UnixMilli() / r.Step.Milliseconds() }

// maxGap is the maximum number of steps that a rate is computed over. If slots between are missing,
// the rate is the mean of these steps, and their counts are spread over them.
const maxGap = 3

// ring has the last slots of a range.
type ring struct {
	over Range
	// end is the number of the newest slot.
	end   int64
	lines map[Subject]*line
	// coverage is the coverage of the newest slot.
	coverage Coverage
}

// line holds the figures of a subject in a ring, from first on, and their totals in its last slot.
type line struct {
	first   Figure
	columns []Column
	last    []float64
	number  int64
	at      time.Time
}

// add adds a slot.
func (r *ring) add(s Slot) {
	number := r.over.Number(s.At)
	if number <= r.end {
		return
	}
	for n := max(r.end+1, number-int64(r.over.Points)+1); n <= number; n++ {
		for _, l := range r.lines {
			for i := range l.columns {
				l.columns[i].Forget(r.place(n))
			}
		}
	}
	r.end, r.coverage = number, s.coverage()
	bus, end := s.numbers(), Took
	if r.over == Fast { // times of longer ranges are not shown, and would take memory
		end = Waited + 1
	}
	r.put(Subject{}, s.At, Out, bus[:])
	for _, sub := range s.Subscribers {
		now := sub.numbers()
		r.put(Subject{Subscriber: sub.Name}, s.At, Out, now[:end])
	}
	for _, topic := range s.Topics {
		r.put(Subject{Topic: topic.Name}, s.At, In, []float64{float64(topic.Events)})
	}
	maps.DeleteFunc(r.lines, func(_ Subject, l *line) bool { return number-l.number >= int64(r.over.Points) })
}

// place is where the columns have a step.
func (r *ring) place(number int64) int { return int(number % int64(r.over.Points)) }

// follows reports whether the newest slot is soon enough after the last of a line for a rate.
func (r *ring) follows(l *line) bool { return l.number > 0 && r.end-l.number <= maxGap }

// put notes the numbers of the newest slot about a subject, which are of the figures from first on,
// unless it has some already. The bus has, so a subscriber or a topic whose name in Redis is empty
// is not taken for it.
func (r *ring) put(of Subject, at time.Time, first Figure, now []float64) {
	l := r.lines[of]
	if l != nil && l.number == r.end {
		return
	}
	if l == nil {
		l = &line{first: first, columns: make([]Column, len(now)), last: make([]float64, len(now))}
		r.lines[of] = l
	}
	for i, number := range now {
		figure, c := first+Figure(i), &l.columns[i]
		switch {
		case !figure.isTotal():
			c.Set(r.place(r.end), float32(number), r.over.Points)
		case !r.follows(l) || number < l.last[i]:
		case figure.isRate():
			c.Set(r.place(r.end), float32((number-l.last[i])/at.Sub(l.at).Seconds()), r.over.Points)
		default:
			share := float32((number - l.last[i]) / float64(r.end-l.number))
			for n := l.number + 1; n <= r.end; n++ {
				c.Set(r.place(n), share, r.over.Points)
			}
		}
	}
	copy(l.last, now)
	l.number, l.at = r.end, at
}

// values returns the values of a figure at the given number of steps, up to the last one. Steps
// that the ring no longer has are unknown.
func (r *ring) values(of Subject, f Figure, last int64, steps int) []float32 {
	l, first := r.lines[of], last-int64(steps)+1
	values := make([]float32, steps)
	has := l != nil && f >= l.first && int(f-l.first) < len(l.columns)
	place := r.place(first)
	for i := range values {
		values[i] = nan
		if has && first+int64(i) > r.end-int64(r.over.Points) {
			values[i] = l.columns[f-l.first].At(place)
		}
		if place++; place == r.over.Points {
			place = 0
		}
	}
	return values
}
