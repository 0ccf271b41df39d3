package overview

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Thing identifies what numbers belong to.
type Thing struct{ Kind, Name string }

// Moments are a few moments in order, oldest first, with some numbers of things at each. The zero
// value has none.
type Moments struct {
	all    []moment
	traces map[Thing]*Trace
}

type moment struct {
	at      time.Time
	partial bool
}

// Trace has the numbers of a thing.
type Trace struct {
	of      *Moments
	width   int
	numbers []int64 // a row for each moment
}

// unknownNumber stands for a number that is not known.
const unknownNumber = math.MinInt64

// Begin adds a moment without numbers. It drops moments that are not before it, because clocks may
// be set back, and moments older than kept. Partial marks a moment at which some things are
// missing.
func (m *Moments) Begin(at time.Time, kept time.Duration, partial bool) {
	before := slices.DeleteFunc(slices.Clone(m.all), func(one moment) bool { return !one.at.Before(at) })
	from := slices.IndexFunc(before, func(one moment) bool { return at.Sub(one.at) <= kept })
	if from < 0 {
		from = len(before)
	}
	m.all = append(before[from:], moment{at, partial})
	maps.DeleteFunc(m.traces, func(_ Thing, t *Trace) bool { return !t.begin(from, len(before)) })
}

// begin keeps the rows of some moments, and adds an empty one. It returns false if no number is
// known at the others either.
func (t *Trace) begin(from, to int) bool {
	kept := t.numbers[from*t.width : to*t.width]
	known := slices.ContainsFunc(kept, func(n int64) bool { return n != unknownNumber })
	t.numbers = append(t.numbers[:0], kept...)
	for range t.width {
		t.numbers = append(t.numbers, unknownNumber)
	}
	return known
}

// Put sets the numbers of a thing at the last moment, always as many. Some may be [unknownNumber].
func (m *Moments) Put(of Thing, numbers ...int64) {
	t := m.traces[of]
	if t == nil {
		if m.traces == nil {
			m.traces = map[Thing]*Trace{}
		}
		t = &Trace{m, len(numbers), slices.Repeat([]int64{unknownNumber}, len(m.all)*len(numbers))}
		m.traces[of] = t
	}
	copy(t.numbers[len(t.numbers)-t.width:], numbers)
}

// Trace returns the numbers of a thing, nil if none are known.
func (m *Moments) Trace(of Thing) *Trace { return m.traces[of] }

// First returns the index of the oldest moment of the last so much time. If none but the last is in
// it, it is the one before that.
func (m *Moments) First(over time.Duration) int {
	last := len(m.all) - 1
	i := last
	for i > 0 && m.Took(i-1) <= over {
		i--
	}
	if i == last {
		i = max(last-1, 0)
	}
	return i
}

// Took is the time from a moment to the last one.
func (m *Moments) Took(from int) time.Duration { return m.all[len(m.all)-1].at.Sub(m.all[from].at) }

// HasGaps reports whether some moments from one on are partial.
func (m *Moments) HasGaps(from int) bool {
	return slices.ContainsFunc(m.all[from:], func(one moment) bool { return one.partial })
}

// At returns the number in a column at a moment. It is 0 and false if that is not known.
func (t *Trace) At(moment, column int) (n int64, known bool) {
	if n = t.numbers[moment*t.width+column]; n == unknownNumber {
		return 0, false
	}
	return n, true
}

// Now returns the number at the last moment, 0 if it is not known.
func (t *Trace) Now(column int) int64 {
	n, _ := t.At(len(t.of.all)-1, column)
	return n
}

// First returns the first number from a moment on that is known. It is false if none is.
func (t *Trace) First(from, column int) (n int64, known bool) {
	for i := from; i < len(t.of.all) && !known; i++ {
		n, known = t.At(i, column)
	}
	return n, known
}

// Least returns the least number from a moment on. Unknown numbers count as 0.
func (t *Trace) Least(from, column int) int64 {
	least := t.Now(column)
	for i := from; i < len(t.of.all); i++ {
		n, _ := t.At(i, column)
		least = min(least, n)
	}
	return least
}

// grown returns the growth of a counter since a moment, and the time in which it grew. It is false
// if the counter is new or was reset in the last interval; if that was earlier, growth is counted
// from then.
func (t *Trace) grown(from, column int) (growth int64, in time.Duration, known bool) {
	last := len(t.of.all) - 1
	now, ok := t.At(last, column)
	was, i := now, last
	for ; ok && i > from; i-- {
		before, found := t.At(i-1, column)
		if !found || before > was {
			break
		}
		was = before
	}
	return now - was, t.of.Took(i), ok && i < last
}

// Growth returns the growth of a counter since a moment, nil if it is not known. If the counter
// began anew since then, it is the growth since that.
func (t *Trace) Growth(from, column int) *int64 {
	growth, _, known := t.grown(from, column)
	if !known {
		return nil
	}
	return &growth
}

// Rate returns the same growth by the second.
func (t *Trace) Rate(from, column int) *float64 {
	growth, in, known := t.grown(from, column)
	if !known || in <= 0 {
		return nil
	}
	rate := float64(growth) / in.Seconds()
	return &rate
}
